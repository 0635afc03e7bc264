"""Airflow's database on PostgreSQL, as in production.

With SQLite, requests that write wait for each other in a busy API server, until one of them fails.
"""

from typing import Any

from quickstart.home import Home
from tests.e2e.servers import RunningAirflow
from tests.servers.postgresql import USER, create_database

_NAME = "airflow"


def database_settings(port: int) -> dict[str, str]:
    """Create an empty database, and return the environment variables of an Airflow that uses it."""
    create_database(port, _NAME)
    uri = f"postgresql+psycopg://{USER}@127.0.0.1:{port}/{_NAME}"
    return {
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": uri,
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": uri,
    }


class AirflowOnPostgresql(RunningAirflow):
    """The servers of a home whose database is on PostgreSQL."""

    def __init__(self, home: Home, port: int, tasks_at_once: int) -> None:
        super().__init__(home, tasks_at_once)
        self._address = f"host=127.0.0.1 port={port} user={USER} dbname={_NAME}"

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Read from Airflow's database; values are named by ``%s``."""
        import psycopg  # only the soak itself needs it, not who collects the tests

        with psycopg.connect(self._address, autocommit=True) as database:
            return database.execute(query, values or None).fetchall()
