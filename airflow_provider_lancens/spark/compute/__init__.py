"""Columns computed by a Python function on Spark's executors, without rewriting the other columns."""
