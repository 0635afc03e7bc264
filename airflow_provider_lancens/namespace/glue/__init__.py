"""AWS Glue Data Catalog: its client, and the shape of its namespace."""
