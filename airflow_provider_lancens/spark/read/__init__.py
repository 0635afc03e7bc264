"""Read a table at one version."""
