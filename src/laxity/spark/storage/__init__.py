"""What must not be forgotten: checkpoint, lock, state tables, reports."""
