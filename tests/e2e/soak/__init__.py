"""A soak test: Airflow with many waits, commits and maintenance for an hour, and what it may cost."""
