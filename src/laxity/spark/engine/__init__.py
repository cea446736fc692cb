"""The batch protocol: knows no system."""
