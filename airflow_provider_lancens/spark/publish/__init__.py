"""Versions that a write stages without publishing them: staged, read, then published or discarded."""
