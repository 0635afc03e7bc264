"""Exactly-once commits under concurrent writers."""
