"""A Spark connection is read as the Spark provider reads it, and becomes Spark's configuration."""

from collections.abc import Callable
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_lancens.hooks.spark import SparkPlace

Connect = Callable[..., str]


@pytest.mark.parametrize(
    ("fields", "master"),
    [
        ({"host": "local[*]"}, "local[*]"),
        ({"host": "yarn"}, "yarn"),
        ({"host": "hub", "port": 7077}, "spark://hub:7077"),
        ({"host": "spark://hub", "port": 7077}, "spark://hub:7077"),
        ({"host": "spark://hub:7077,spare:7077"}, "spark://hub:7077,spare:7077"),
        ({"host": "k8s://https://kube", "port": 6443}, "k8s://https://kube:6443"),
    ],
)
def test_host_and_port_are_the_master(connect: Connect, fields: dict[str, Any], master: str) -> None:
    place = SparkPlace.of_connection(connect("hub", "spark", **fields))

    assert place == SparkPlace({"spark.master": master}, "client", "spark-submit")


def test_extras_become_configuration(connect: Connect) -> None:
    extra = {
        "queue": "night",
        "namespace": "jobs",
        "principal": "me@REALM",
        "deploy-mode": "cluster",
        "spark-binary": "spark3-submit",
        "rest-port": "6066",
    }

    place = SparkPlace.of_connection(connect("hub", "spark", host="yarn", extra=extra))

    assert (place.deploy_mode, place.binary) == ("cluster", "spark3-submit")
    assert place.conf == {
        "spark.master": "yarn",
        "spark.yarn.queue": "night",
        "spark.kubernetes.namespace": "jobs",
        "spark.kerberos.principal": "me@REALM",
    }


@pytest.mark.parametrize(
    ("fields", "remote"),
    [
        ({"host": "hub", "port": 15002}, "sc://hub:15002"),
        ({"host": "sc://hub"}, "sc://hub"),
        (
            {"host": "hub", "login": "me", "password": "a;b", "extra": {"use_ssl": True}},
            "sc://hub/;user_id=me;token=a%3Bb;use_ssl=true",
        ),
    ],
)
def test_a_server_of_spark_connect_is_its_address(
    connect: Connect, fields: dict[str, Any], remote: str
) -> None:
    place = SparkPlace.of_connection(connect("hub", "spark_connect", **fields))

    assert place.conf == {"spark.remote": remote}


def test_a_token_is_in_no_repr(connect: Connect) -> None:
    place = SparkPlace.of_connection(connect("hub", "spark_connect", host="hub", password="hush"))

    assert "hush" not in repr(place)


@pytest.mark.parametrize(
    ("conn_type", "fields", "message"),
    [
        ("spark_sql", {"host": "yarn"}, "Connection Type: is 'spark_sql'; allowed: spark or spark_connect"),
        ("spark", {}, "is empty"),
        ("spark", {"host": "mesos://hub"}, "makes the master 'mesos://hub'; allowed: local"),
        (
            "spark",
            {"host": "yarn", "extra": {"deploy-mode": "here"}},
            "deploy-mode: is 'here'; allowed: client",
        ),
        (
            "spark",
            {"host": "yarn", "extra": {"spark-binary": "bash"}},
            "spark-binary: is 'bash'; allowed: spark-",
        ),
        ("spark", {"host": "yarn", "extra": {"keytab": "aHVzaA=="}}, "keytab: .*spark.kerberos.keytab"),
        ("spark_connect", {"host": "https://hub"}, "is 'https://hub'"),
        ("spark_connect", {"host": "sc://hub/path"}, "without a path"),
    ],
)
def test_what_is_no_place_is_refused_by_its_field(
    connect: Connect, conn_type: str, fields: dict[str, Any], message: str
) -> None:
    connect("hub", conn_type, **fields)

    with pytest.raises(AirflowFailException, match=f"connection 'hub', field .*{message}"):
        SparkPlace.of_connection("hub")
