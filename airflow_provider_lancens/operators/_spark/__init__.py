"""Shared code of the operators that run on Spark."""
