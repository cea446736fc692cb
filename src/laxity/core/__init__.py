"""Deciders: plain Python that turns a few numbers into a decision. No clock, no engine."""
