"""SQL queries on pinned versions of tables, by DuckDB in this process. No Airflow, no Spark."""
