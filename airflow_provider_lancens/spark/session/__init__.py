"""Spark sessions: opened as a connection configures them, ended with their task."""
