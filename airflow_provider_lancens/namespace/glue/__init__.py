"""AWS Glue Data Catalog: its client and its namespace."""
