"""Streams, queries, sources, sinks and sessions: what users call."""
