"""Several streams in one order, joined, and tuned to a deadline."""
