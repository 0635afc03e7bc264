"""Spark's configuration to read the Hive tables of a connection's metastore."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException, airflow_errors

_SASL_SECURITY = "spark.hadoop.hadoop.security.authentication"


def spark_conf_of_hive_tables(
    conn_id: str, properties: Mapping[str, str], given: Mapping[str, str]
) -> dict[str, str]:
    """Return the configuration by which Spark reads the Hive tables of a metastore.

    Two settings of Spark's client have no equivalent among the properties, and must be given: the realm of
    the metastore's Kerberos principal, and a Java keystore with the trusted authorities of TLS.

    Args:
        conn_id: the connection, for messages.
        properties: the namespace's properties.
        given: Spark's other configuration, in which these settings are given.

    Raises:
        AirflowFailException: a property is invalid, a setting is missing, or Spark's client can't log in that
            way; the message names the setting.
    """
    from airflow_provider_lancens.namespace.hive.authentication import AUTH, KERBEROS, PLAIN
    from airflow_provider_lancens.namespace.hive.settings import ClientSettings, hive_properties
    from airflow_provider_lancens.namespace.hive.tls import CERT_FILE
    from airflow_provider_lancens.spark.hive_tables import CATALOG, HIVE, METASTORE, URIS

    def refused(reason: str) -> AirflowFailException:
        return AirflowFailException(f"connection {conn_id!r}, hive_tables: {reason}")

    def required(name: str, example: str, why: str) -> None:
        if f"{METASTORE}{name}" not in given:
            raise refused(f"set {METASTORE}{name} in spark_conf, such as {example}: {why}")

    with airflow_errors(f"reading connection {conn_id!r}"):
        settings = ClientSettings.parse(hive_properties(properties))
    conf = {CATALOG: HIVE, URIS: str(settings)}
    kind = settings.authentication.kind
    if kind == PLAIN:
        raise refused(f"Spark's client can't log in with a user and a password ({AUTH}={PLAIN})")
    if kind == KERBEROS:
        service = settings.authentication.service_name
        required(
            "kerberos.principal",
            f"{service}/_HOST@EXAMPLE.COM",
            "Spark's client needs the realm of the metastore, which the connection doesn't tell",
        )
        conf |= {f"{METASTORE}sasl.enabled": "true", _SASL_SECURITY: KERBEROS}
    if settings.tls:
        if settings.tls.cert_file:
            raise refused(f"Spark's client presents no client certificate ({CERT_FILE})")
        required(
            "truststore.path",
            "/etc/pki/java/cacerts",
            "Spark's client reads the authorities that it trusts from a keystore of Java, whose password is "
            f"{METASTORE}truststore.password",
        )
        conf |= {f"{METASTORE}use.SSL": "true"}
    return conf
