"""Tasks on Lance namespaces and tables."""
