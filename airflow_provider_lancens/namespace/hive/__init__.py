"""Hive Metastore: its client, and the two shapes of its namespace."""
