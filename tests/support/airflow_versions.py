"""What tests depend on of the installed Airflow: features of its versions, and what the lowest one lacks."""

from importlib.metadata import version

import pytest
from packaging.version import Version

_INSTALLED = Version(version("apache-airflow-core"))
AIRFLOW_V_3_2_PLUS = Version("3.2") <= _INSTALLED
AIRFLOW_V_3_3_PLUS = Version("3.3") <= _INSTALLED
IS_LOWEST = Version("3.1.0") == _INSTALLED

WARNINGS_OF_LOWEST = (
    ("cannot be called outside of the Task Runner", "shall not contain '_' according to RFC3986")
    if IS_LOWEST
    else ()
)
"""What Airflow 3.1.0 warns of in tests, whatever an operator does."""


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
