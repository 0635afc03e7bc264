"""Hive tables for Spark: its settings for a Hive Metastore, and whether a session reads tables of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.redaction import redact

CATALOG, HIVE = "spark.sql.catalogImplementation", "hive"
METASTORE = "spark.hadoop.hive.metastore."
URIS = f"{METASTORE}uris"
_CLIENT = "spark.sql.hive.metastore."
CLIENT_VERSION = f"{_CLIENT}version"

_PROBED = "default.lancens_probe"
"""A table that need not exist: whether it does is asked to reach the metastore."""
_NOT_CONNECTED = "Could not connect to meta store"
_REMOVED_CALL = "Invalid method name"
_NOT_AUTHENTICATED = ("GSS initiate failed", "Failed to find any Kerberos tgt")


def settings_of_server(conf: Mapping[str, str]) -> set[str]:
    """Return the settings that a Spark Connect server has to be started with, which no client can set."""
    return {key for key in conf if key == CATALOG or key.startswith((METASTORE, _CLIENT))}


def check_hive_tables(spark: Any, conf: Mapping[str, str]) -> None:
    """Check that a session reads tables of the metastore that its configuration names; else do nothing.

    Args:
        spark: the session, of Spark Connect too.
        conf: the configuration; without ``spark.sql.catalogImplementation=hive`` nothing is checked.

    Raises:
        InvalidInputError: (13) the session has no Hive support, or uses another metastore.
        UnsupportedOperationError: (0) Spark's client is too old for the metastore.
        UnauthenticatedError: (16) there is no Kerberos ticket, or the metastore refuses it.
        ServiceUnavailableError: (17) Spark can't reach the metastore.
    """
    if conf.get(CATALOG) != HIVE:
        return
    if spark.conf.get(CATALOG, "in-memory") != HIVE:
        raise spec_errors.InvalidInputError(
            "the Spark session that is used has no Hive support, which is decided when a session starts; "
            f"start it with {CATALOG}={HIVE} and {URIS}={conf.get(URIS, 'thrift://host:9083')}, or let this "
            "task start its own session"
        )
    wanted, used = conf.get(URIS), _metastore_of(spark)
    if wanted and used and not _servers(wanted) & _servers(used):
        raise spec_errors.InvalidInputError(
            f"the Spark session that is used reads the tables of the metastore {used}, but the connection's "
            f"is {wanted}; stop that session first, or use a connection to its metastore"
        )
    try:
        spark.catalog.tableExists(_PROBED)
    except Exception as error:  # noqa: BLE001 Spark raises any class, and the reason is in a cause in the JVM
        raise _explained(_messages(error), used or wanted) from None


def _metastore_of(spark: Any) -> str | None:
    """Return the servers that the session was configured with; None if that is unknown."""
    if hasattr(spark, "_jsparkSession"):  # Hadoop's configuration includes a hive-site.xml
        hadoop = spark._jsparkSession.sessionState().newHadoopConf()
        found: str | None = hadoop.get("hive.metastore.uris")
        return found
    return spark.conf.get(URIS, None)  # type: ignore[no-any-return]


def _servers(uris: str) -> set[tuple[str | None, int]]:
    return {(uri.hostname, uri.port or 9083) for uri in _parsed(uris.split(","))}


def _parsed(uris: Iterable[str]) -> Iterable[Any]:
    return (urlsplit(uri.strip() if "://" in uri else f"thrift://{uri.strip()}") for uri in uris)


def _messages(error: Exception) -> list[str]:
    """Return the messages of an error of Spark's, and of its causes in the JVM.

    With another client of Hive, PySpark's own conversion of the JVM's error may fail; the JVM's error is
    then the context of the raised error.
    """
    messages: list[str] = []
    raised: BaseException | None = error
    while raised is not None:
        messages.append(str(raised))
        cause = getattr(raised, "_origin", None) or getattr(raised, "java_exception", None)
        while cause is not None:
            messages.append(str(cause.getMessage()))
            cause = cause.getCause()
        raised = raised.__context__
    return messages


def _explained(messages: Sequence[str], metastore: str | None) -> spec_errors.LanceNamespaceError:
    name = f"the metastore {metastore}" if metastore else "the metastore of the Spark session"
    if any(_REMOVED_CALL in message for message in messages):
        return spec_errors.UnsupportedOperationError(
            f"{name} is of Hive 4, which Spark's own client of Hive 2.3 can't read; give Spark the client of "
            f"Hive 4 in spark_conf: {CLIENT_VERSION}=4.0.1, {_CLIENT}jars=path, and "
            f"{_CLIENT}jars.path=file:///…/*.jar with the jars of Hive's lib folder on the worker"
        )
    reasons = (_NOT_CONNECTED, *_NOT_AUTHENTICATED)
    told = next(
        (message for message in messages if any(reason in message for reason in reasons)), messages[0]
    )
    lines = [line.strip() for line in told.splitlines() if line.strip() and not line.startswith("\tat ")]
    reason = redact(" ".join(lines))[:500]
    if any(text in message for text in _NOT_AUTHENTICATED for message in messages):
        return spec_errors.UnauthenticatedError(f"Spark can't log in to {name}: {reason}")
    return spec_errors.ServiceUnavailableError(f"Spark can't read the tables of {name}: {reason}")
