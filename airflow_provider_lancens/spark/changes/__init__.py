"""The rows that changed between two versions of a table."""
