"""Why Spark can't read the Hive tables of a metastore, by the error that the JVM has."""

from typing import Any

import pytest
from lance_namespace.errors import (
    LanceNamespaceError,
    ServiceUnavailableError,
    UnauthenticatedError,
    UnsupportedOperationError,
)

from airflow_provider_lancens.spark.hive_tables import CATALOG, HIVE, URIS, check_hive_tables

CONF = {CATALOG: HIVE, URIS: "thrift://metastore:9083"}


class Cause:
    """An exception of the JVM."""

    def __init__(self, message: str, cause: "Cause | None" = None) -> None:
        self.message, self.cause = message, cause

    def getMessage(self) -> str:  # noqa: N802 as in Java
        return self.message

    def getCause(self) -> "Cause | None":  # noqa: N802 as in Java
        return self.cause


class JavaError(Exception):
    """As py4j raises it."""

    def __init__(self, message: str, cause: Cause) -> None:
        super().__init__(message)
        self.java_exception = cause


class Session:
    """A session whose metastore can't be read. A real one fails so only with a client of Hive 4."""

    def __init__(self, cause: Cause) -> None:
        self.cause = cause
        self.conf, self.catalog = self, self

    def get(self, name: str, default: Any = None) -> Any:
        return CONF.get(name, default)

    def tableExists(self, name: str) -> bool:  # noqa: N802 as in PySpark
        try:
            return self.call()
        except JavaError:
            # PySpark converts the error, which fails with another client of Hive.
            raise TypeError("'JavaPackage' object is not callable")  # noqa: B904

    def call(self) -> bool:
        raise JavaError("An error occurred while calling o42.tableExists", self.cause)


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("GSS initiate failed", UnauthenticatedError),
        ("Could not connect to meta store using any of the URIs provided", ServiceUnavailableError),
        ("Invalid method name: 'get_table'", UnsupportedOperationError),
    ],
)
def test_the_reason_is_found_although_pyspark_could_not_convert_the_error(
    reason: str, kind: type[LanceNamespaceError]
) -> None:
    session = Session(Cause("Unable to instantiate the client", Cause(reason)))

    with pytest.raises(kind) as raised:
        check_hive_tables(session, CONF)
    assert "JavaPackage" not in str(raised.value)
    if kind is not UnsupportedOperationError:
        assert reason in str(raised.value)
