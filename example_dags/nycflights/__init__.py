"""The parts of `lance_flights` without Airflow: the data, its months, and the join."""
