"""Everything that touches Java; nothing else does."""
