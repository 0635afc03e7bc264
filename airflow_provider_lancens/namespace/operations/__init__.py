"""The specification's operations, written once over a Metastore."""
