"""Tables for Spark code: resolved by a namespace, opened at a version."""
