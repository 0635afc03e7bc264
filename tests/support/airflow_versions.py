"""What the lowest supported Airflow lacks outside of its own servers."""

from importlib.metadata import version

import pytest

IS_LOWEST = version("apache-airflow-core") == "3.1.0"


class NoServer:
    """Stands in for the connection to Airflow's supervisor in a process that has none.

    In Airflow 3.1.0 an event loop reads a connection, even one of the environment, only where the triggerer
    has connected to the supervisor.
    """

    def send(self, asked: object) -> object:
        """Answer as the API server does if there is no such connection."""
        from airflow.sdk.exceptions import ErrorType
        from airflow.sdk.execution_time.comms import ErrorResponse

        return ErrorResponse(error=ErrorType.CONNECTION_NOT_FOUND, detail={"asked": str(asked)})

    async def asend(self, asked: object) -> object:
        """Do the same in an event loop."""
        return self.send(asked)


renders_forms = pytest.mark.skipif(
    IS_LOWEST, reason="Airflow 3.1.0 renders no provider's fields without flask-appbuilder"
)
