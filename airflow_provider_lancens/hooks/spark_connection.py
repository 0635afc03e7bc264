"""Where Spark runs, read from a connection of the Spark provider, which need not be installed.

The connection is converted to Spark configuration, so that other modules are independent of connections.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.connection_fields import read_extra
from airflow_provider_lancens.hooks.lance_hook import read_connection
from airflow_provider_lancens.hooks.template_args import parse_settings
from airflow_provider_lancens.redaction import redact

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from airflow_provider_lancens.hooks.lance_hook import LanceHook

_MASTERS = ("local", "spark://", "yarn", "k8s://")
_BINARIES = ("spark-submit", "spark2-submit", "spark3-submit")
_DEPLOY_MODES = ("client", "cluster")
_CONF_OF_EXTRA = {
    "queue": "spark.yarn.queue",
    "namespace": "spark.kubernetes.namespace",
    "principal": "spark.kerberos.principal",
}


@dataclass(frozen=True, slots=True)
class SparkDeployment:
    """Where Spark runs. Its repr doesn't show the configuration, which may contain a token."""

    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Spark configuration: ``spark.master``, or ``spark.remote`` for Spark Connect, and related settings."""
    deploy_mode: str = "client"
    """``client``: the driver is the task's process; ``cluster``: spark-submit starts it on the cluster."""
    binary: str = "spark-submit"
    """The spark-submit command, where it is used."""

    @classmethod
    def of(cls, conn_id: str | None, conf: Any = None) -> SparkDeployment:
        """Create it from a task's arguments.

        Args:
            conn_id: a connection; empty for the task's process.
            conf: Spark configuration, which overrides the connection's: a mapping, or None.

        Raises:
            AirflowFailException: the connection is invalid, or `conf` is not a mapping.
        """
        settings = parse_settings("spark_conf", conf)
        deployment = cls.of_connection(conn_id) if conn_id else cls()
        return replace(deployment, conf={**deployment.conf, **settings})

    @classmethod
    def of_connection(cls, conn_id: str) -> SparkDeployment:
        """Read a connection of type ``spark`` or ``spark_connect``, as the Spark provider reads it.

        Raises:
            AirflowFailException: it has another type, or a field is invalid.
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

    def with_hive_tables(self, hook: LanceHook) -> SparkDeployment:
        """Return the same, with the Hive tables of a connection's metastore.

        Raises:
            AirflowFailException: the connection isn't to a Hive Metastore, or Spark's client needs a setting
                that can't be derived from it.
        """
        return replace(self, conf={**hook.hive_tables_conf(self.conf), **self.conf})

    def check_driver_here(self) -> None:
        """Check that the driver is the task's process.

        Raises:
            AirflowFailException: the connection runs the driver on the cluster.
        """
        if self.deploy_mode != "client":
            raise AirflowFailException(
                f"deploy-mode {self.deploy_mode}: this task is itself the Spark driver; use a "
                "connection with deploy-mode client, or LanceAppendOperator"
            )


def _cluster(connection: Connection, extra: Mapping[str, Any]) -> SparkDeployment:
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
            "contains a keytab",
            "no value; set spark.kerberos.keytab in spark_conf to the path of a file",
        )
    named = {conf: str(extra[key]) for key, conf in _CONF_OF_EXTRA.items() if extra.get(key)}
    return SparkDeployment({"spark.master": _master(connection), **named}, deploy_mode, binary)


def _master(connection: Connection) -> str:
    host = str(connection.host)
    master = host if "://" in host or not connection.port else f"spark://{host}"
    if connection.port:
        master = f"{master}:{connection.port}"
    if not master.startswith(_MASTERS):
        raise _refusal(
            connection, "Host", f"results in the master {master!r}", ", ".join(f"{m}…" for m in _MASTERS)
        )
    return master


def _server(connection: Connection, extra: Mapping[str, Any]) -> SparkDeployment:
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
    # A slash, which a token in base64 may have, would end the path of the URL, which must be empty.
    given = [f"{key}={quote(value, safe='')}" for key, value in parameters.items() if value]
    return SparkDeployment(
        {"spark.remote": "/;".join([f"sc://{address}", ";".join(given)]) if given else f"sc://{address}"}
    )


def _refusal(connection: Connection, name: str, found: str, allowed: str) -> AirflowFailException:
    # A whole URL in the field Host may have a token or a password.
    return AirflowFailException(
        f"connection {connection.conn_id!r}, field {name}: {redact(found)}; expected {allowed}"
    )
