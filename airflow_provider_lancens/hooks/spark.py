"""Where Spark runs, as a connection of the Spark provider says it; that provider need not be installed.

Whatever it says becomes Spark's own configuration, so that the rest of us knows nothing of connections.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_lancens.hooks.arguments import parse_settings
from airflow_provider_lancens.hooks.base import read_connection
from airflow_provider_lancens.hooks.extras import read_extra

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Connection

_MASTERS = ("local", "spark://", "yarn", "k8s://")
_BINARIES = ("spark-submit", "spark2-submit", "spark3-submit")
_DEPLOY_MODES = ("client", "cluster")
_CONF_OF_EXTRA = {
    "queue": "spark.yarn.queue",
    "namespace": "spark.kubernetes.namespace",
    "principal": "spark.kerberos.principal",
}


@dataclass(frozen=True, slots=True)
class SparkPlace:
    """A place where Spark runs. Its repr shows no configuration: a token may stand there."""

    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Spark's configuration: ``spark.master``, or ``spark.remote`` for Connect, and what belongs to it."""
    deploy_mode: str = "client"
    """``client``: the driver is the task's process; ``cluster``: spark-submit gives it to the cluster."""
    binary: str = "spark-submit"
    """By which command, where spark-submit is used."""

    @classmethod
    def of(cls, conn_id: str | None, conf: Any = None) -> SparkPlace:
        """Where a task's Spark runs, by its arguments.

        Args:
            conn_id: a connection; nothing is the task's process.
            conf: Spark's configuration, over the connection's: a mapping, or nothing.

        Raises:
            AirflowFailException: the connection describes no such place, or `conf` is no mapping.
        """
        settings = parse_settings("spark_conf", conf)
        place = cls.of_connection(conn_id) if conn_id else cls()
        return replace(place, conf={**place.conf, **settings})

    @classmethod
    def of_connection(cls, conn_id: str) -> SparkPlace:
        """Read a connection of type ``spark`` or ``spark_connect``, as the Spark provider reads it.

        Raises:
            AirflowFailException: its type is another one, or a field can't be what it is.
        """
        connection = read_connection(conn_id)
        readers = {"spark": _cluster, "spark_connect": _server}
        if connection.conn_type not in readers:
            raise _refusal(
                connection, "Connection Type", f"is {connection.conn_type!r}", " or ".join(readers)
            )
        if not connection.host:
            raise _refusal(connection, "Host", "is empty", "such as local[*], spark://host, yarn, sc://host")
        return readers[connection.conn_type](connection, read_extra(connection))

    def check_driver_here(self) -> None:
        """Return where the driver is the task's process.

        Raises:
            AirflowFailException: the connection gives it to the cluster.
        """
        if self.deploy_mode != "client":
            raise AirflowFailException(
                f"deploy-mode {self.deploy_mode}: the driver of a task's own PySpark is the task; use a "
                "connection with deploy-mode client, or LanceSparkIngestOperator"
            )


def _cluster(connection: Connection, extra: Mapping[str, Any]) -> SparkPlace:
    deploy_mode = extra.get("deploy-mode") or "client"
    if deploy_mode not in _DEPLOY_MODES:
        raise _refusal(connection, "deploy-mode", f"is {deploy_mode!r}", " or ".join(_DEPLOY_MODES))
    binary = extra.get("spark-binary") or _BINARIES[0]
    if binary not in _BINARIES:
        raise _refusal(connection, "spark-binary", f"is {binary!r}", ", ".join(_BINARIES))
    if extra.get("keytab"):
        raise _refusal(
            connection,
            "keytab",
            "holds a keytab",
            "nothing: name a file by spark.kerberos.keytab in spark_conf",
        )
    named = {conf: str(extra[key]) for key, conf in _CONF_OF_EXTRA.items() if extra.get(key)}
    return SparkPlace({"spark.master": _master(connection), **named}, deploy_mode, binary)


def _master(connection: Connection) -> str:
    host = str(connection.host)
    master = host if "://" in host or not connection.port else f"spark://{host}"
    if connection.port:
        master = f"{master}:{connection.port}"
    if not master.startswith(_MASTERS):
        raise _refusal(
            connection, "Host", f"makes the master {master!r}", ", ".join(f"{m}…" for m in _MASTERS)
        )
    return master


def _server(connection: Connection, extra: Mapping[str, Any]) -> SparkPlace:
    scheme, _, address = str(connection.host).rpartition("://")
    if scheme not in ("", "sc") or "/" in address:
        raise _refusal(connection, "Host", f"is {connection.host!r}", "host, or sc://host, without a path")
    if connection.port:
        address = f"{address}:{connection.port}"
    parameters = {
        "user_id": connection.login,
        "token": connection.password,
        "use_ssl": None if extra.get("use_ssl") is None else str(extra["use_ssl"]).lower(),
    }
    given = [f"{key}={quote(value)}" for key, value in parameters.items() if value]
    return SparkPlace(
        {"spark.remote": "/;".join([f"sc://{address}", ";".join(given)]) if given else f"sc://{address}"}
    )


def _refusal(connection: Connection, name: str, found: str, allowed: str) -> AirflowFailException:
    return AirflowFailException(
        f"connection {connection.conn_id!r}, field {name}: {found}; allowed: {allowed}"
    )
