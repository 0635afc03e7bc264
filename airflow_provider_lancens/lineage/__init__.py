"""What tasks read and write, for OpenLineage."""
