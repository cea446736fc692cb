"""Answers at once, and again what late rows change."""
