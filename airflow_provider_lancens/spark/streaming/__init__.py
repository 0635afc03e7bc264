"""Structured Streaming: epochs of queries that are written once, and tables that are read as streams."""
