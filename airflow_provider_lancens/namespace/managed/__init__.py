"""Implementation-managed tables: the metastore is the version authority."""
