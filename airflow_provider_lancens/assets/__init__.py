"""The room for Lance tables as Airflow assets: their URIs and events."""
