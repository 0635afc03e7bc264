"""A Spark connection as Spark's configuration, read as by the Spark provider."""

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.spark_connection import SparkDeployment

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
    deployment = SparkDeployment.of_connection(connect("hub", "spark", **fields))

    assert deployment == SparkDeployment({"spark.master": master}, "client", "spark-submit")


def test_extras_become_configuration(connect: Connect) -> None:
    extra = {
        "queue": "night",
        "namespace": "jobs",
        "principal": "me@REALM",
        "deploy-mode": "cluster",
        "spark-binary": "spark3-submit",
        "rest-port": "6066",
    }

    deployment = SparkDeployment.of_connection(connect("hub", "spark", host="yarn", extra=extra))

    assert (deployment.deploy_mode, deployment.binary) == ("cluster", "spark3-submit")
    assert deployment.conf == {
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
        (
            {"host": "hub", "login": "corp/me", "password": "a/b+c=="},
            "sc://hub/;user_id=corp%2Fme;token=a%2Fb%2Bc%3D%3D",
        ),
    ],
)
def test_a_spark_connect_server_is_given_by_its_address(
    connect: Connect, fields: dict[str, Any], remote: str
) -> None:
    deployment = SparkDeployment.of_connection(connect("hub", "spark_connect", **fields))

    assert deployment.conf == {"spark.remote": remote}


def test_no_repr_shows_a_token(connect: Connect) -> None:
    deployment = SparkDeployment.of_connection(connect("hub", "spark_connect", host="hub", password="hush"))

    assert "hush" not in repr(deployment)


@pytest.mark.parametrize(
    ("conn_type", "fields", "message"),
    [
        ("spark_sql", {"host": "yarn"}, "Connection Type: is 'spark_sql'; expected spark or spark_connect"),
        ("spark", {}, "is empty"),
        ("spark", {"host": "mesos://hub"}, "results in the master 'mesos://hub'; expected local"),
        (
            "spark",
            {"host": "yarn", "extra": {"deploy-mode": "here"}},
            "deploy-mode: is 'here'; expected client",
        ),
        (
            "spark",
            {"host": "yarn", "extra": {"spark-binary": "bash"}},
            "spark-binary: is 'bash'; expected spark-",
        ),
        ("spark", {"host": "yarn", "extra": {"keytab": "aHVzaA=="}}, "keytab: .*spark.kerberos.keytab"),
        ("spark_connect", {"host": "https://hub"}, "is 'https://hub'"),
        ("spark_connect", {"host": "sc://hub/path"}, "without a path"),
    ],
)
def test_an_invalid_deployment_is_refused_by_its_field(
    connect: Connect, conn_type: str, fields: dict[str, Any], message: str
) -> None:
    connect("hub", conn_type, **fields)

    with pytest.raises(AirflowFailException, match=f"connection 'hub', field .*{message}"):
        SparkDeployment.of_connection("hub")


@pytest.mark.parametrize(
    ("conn_type", "host"),
    [
        ("spark_connect", "sc://server:15002/;token=hush-hush"),
        ("spark_connect", "server/;user_id=me;token=hush-hush"),
        ("spark_connect", "https://me:hush-hush@server"),
        ("spark", "mesos://me:hush-hush@server"),
    ],
)
def test_a_refused_host_is_shown_without_its_secrets(connect: Connect, conn_type: str, host: str) -> None:
    with pytest.raises(AirflowFailException, match=r"field Host: .*server") as failed:
        SparkDeployment.of_connection(connect("hub", conn_type, host=host))
    assert "hush" not in str(failed.value)
