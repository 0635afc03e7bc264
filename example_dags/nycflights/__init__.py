"""The parts of `lance_flights` that aren't about Airflow: the data, its months, and the join."""
