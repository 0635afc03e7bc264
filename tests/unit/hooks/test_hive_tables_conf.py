"""Spark's configuration for the Hive tables of a connection's metastore."""

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_lancens.hooks import LanceHook
from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.spark_connection import SparkDeployment

Connect = Callable[..., str]

METASTORE = "spark.hadoop.hive.metastore."
ROOT = {"root": "/lake"}


@pytest.mark.parametrize("conn_type", ["lance_hive2", "lance_hive3"])
def test_spark_gets_the_servers_of_the_connection(connect: Connect, conn_type: str) -> None:
    hook = LanceHook(connect(conn_type=conn_type, host="hms-1,hms-2:9999", extra=ROOT))

    deployment = SparkDeployment.of(None).with_hive_tables(hook)

    assert deployment.conf == {
        "spark.sql.catalogImplementation": "hive",
        f"{METASTORE}uris": "thrift://hms-1:9083,thrift://hms-2:9999",
    }


def test_other_configuration_takes_precedence(connect: Connect) -> None:
    hook = LanceHook(connect(host="hms", extra=ROOT))
    given = {f"{METASTORE}uris": "thrift://another:9083", "spark.master": "local[1]"}

    deployment = SparkDeployment.of(None, given).with_hive_tables(hook)

    assert deployment.conf == {**given, "spark.sql.catalogImplementation": "hive"}


@pytest.mark.parametrize(
    ("extra", "given", "more"),
    [
        (
            {"client.auth": "kerberos"},
            {f"{METASTORE}kerberos.principal": "hive/_HOST@EXAMPLE.COM"},
            {
                f"{METASTORE}sasl.enabled": "true",
                "spark.hadoop.hadoop.security.authentication": "kerberos",
            },
        ),
        (
            {"client.tls": "true"},
            {f"{METASTORE}truststore.path": "/cacerts"},
            {f"{METASTORE}use.SSL": "true"},
        ),
    ],
)
def test_kerberos_and_tls_are_switched_on(
    connect: Connect, extra: dict[str, Any], given: dict[str, str], more: dict[str, str]
) -> None:
    hook = LanceHook(connect(host="hms", extra={**ROOT, **extra}))

    conf = SparkDeployment.of(None, given).with_hive_tables(hook).conf

    assert conf.items() >= {**given, **more}.items()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"extra": {**ROOT, "client.auth": "kerberos", "client.kerberos.service-name": "hms"}},
            r"set spark.hadoop.hive.metastore.kerberos.principal in spark_conf, such as hms/_HOST@EXAMPLE",
        ),
        (
            {"extra": {**ROOT, "client.tls": "true"}},
            r"set spark.hadoop.hive.metastore.truststore.path in spark_conf",
        ),
        (
            {"extra": {**ROOT, "client.tls": "true", "client.tls.cert-file": "/me.pem"}},
            r"presents no client certificate \(client.tls.cert-file\)",
        ),
        (
            {
                "login": "me",
                "password": "hush",
                "extra": {**ROOT, "client.tls": "true", "client.auth": "plain"},
            },
            r"can't log in with a user and a password \(client.auth=plain\)",
        ),
        ({"host": "http://hms"}, "Thrift over HTTP"),
    ],
)
def test_what_sparks_client_cannot_do_is_refused(
    connect: Connect, fields: dict[str, Any], message: str
) -> None:
    hook = LanceHook(connect(**{"host": "hms", "extra": ROOT, **fields}))

    with pytest.raises(AirflowFailException, match=message) as raised:
        SparkDeployment.of(None).with_hive_tables(hook)

    assert "connection 'lake'" in str(raised.value)
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize(
    ("conn_type", "extra", "message"),
    [
        ("lance_glue", {"region": "eu-west-1"}, "only with AWS's client.*HiveClientFactory"),
        ("lance", ROOT, "the connection has type lance; only those to a Hive Metastore"),
    ],
)
def test_a_connection_without_a_hive_metastore_is_refused(
    connect: Connect, conn_type: str, extra: dict[str, str], message: str
) -> None:
    hook = LanceHook(connect(conn_type=conn_type, extra=extra))

    with pytest.raises(AirflowFailException, match=message):
        SparkDeployment.of(None).with_hive_tables(hook)
