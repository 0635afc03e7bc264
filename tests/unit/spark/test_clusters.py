"""A driver that a cluster has taken over is told by what spark-submit says, and ended by spark-submit."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_provider_lancens.spark.clusters import driver_of

ID = "application_1795332690234_0001"
YARN = {"spark.master": "yarn", "spark.yarn.queue": "night", "spark.kerberos.principal": "me@REALM"}
PODS = {"spark.master": "k8s://https://hub", "spark.kubernetes.context": "jobs", "spark.app.name": "dag.task"}


@pytest.fixture
def binary(tmp_path: Path) -> Callable[[str], str]:
    """A command that writes down its arguments, and does what the test says."""

    def make(does: str) -> str:
        file = tmp_path / "spark-submit"
        file.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n{does}\n')
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return str(file)

    return make


@pytest.fixture
def asked(tmp_path: Path) -> Callable[[], list[str]]:
    """What that command was asked."""
    return lambda: (tmp_path / "asked").read_text().splitlines()


def test_an_application_is_ended_by_the_id_that_the_log_told(
    binary: Callable[[str], str], asked: Callable[[], list[str]]
) -> None:
    driver = driver_of(binary("true"), YARN, "cluster")
    driver.hear("26/11/22 07:49:58 INFO Client: Preparing resources for our AM container")
    assert not driver.taken_over
    driver.hear(f"26/11/22 07:49:58 INFO Client: Submitting application {ID} to ResourceManager")
    driver.hear(f"26/11/22 07:49:59 INFO Client: Application report for {ID} (state: ACCEPTED)")

    assert driver.taken_over
    assert driver.end()

    [words] = asked()
    assert words.endswith(f"ApplicationCLI spark-internal application -kill {ID}")
    assert "--master local --deploy-mode client --conf spark.kerberos.principal=me@REALM " in words
    assert driver.told_by == f"yarn logs -applicationId {ID}"


def test_an_application_is_ended_by_its_tag_where_the_log_is_silent(
    binary: Callable[[str], str], asked: Callable[[], list[str]]
) -> None:
    driver = driver_of(
        binary(f"echo {ID} SPARK http://proxy/{ID}/"), {**YARN, "spark.yarn.tags": "a,b"}, "cluster"
    )

    assert driver.end()

    listed, killed = asked()
    tags = driver.conf["spark.yarn.tags"].split(",")
    assert tags[:2] == ["a", "b"]
    assert listed.endswith(f"application -list -appTags {tags[2]}")
    assert killed.endswith(f"application -kill {ID}")


def test_what_was_never_handed_over_needs_no_end(
    binary: Callable[[str], str], asked: Callable[[], list[str]]
) -> None:
    assert not driver_of(binary("echo none"), YARN, "cluster").end()

    assert len(asked()) == 1


@pytest.mark.parametrize("conf", [YARN, PODS], ids=["yarn", "kubernetes"])
def test_a_cluster_that_can_not_be_reached_is_told_and_hides_nothing(
    binary: Callable[[str], str], caplog: pytest.LogCaptureFixture, conf: dict[str, str]
) -> None:
    driver = driver_of(binary("echo no route to host; exit 1"), conf, "cluster")

    assert not driver.end()

    assert "no route to host" in caplog.text


def test_a_command_that_is_gone_is_told_and_hides_nothing(caplog: pytest.LogCaptureFixture) -> None:
    assert not driver_of("/none/spark-submit", PODS, "cluster").end()

    assert "may live on" in caplog.text


def test_a_pod_is_ended_in_the_namespace_where_it_was_seen(
    binary: Callable[[str], str], asked: Callable[[], list[str]]
) -> None:
    driver = driver_of(binary("true"), PODS, "cluster")
    pod = driver.conf["spark.kubernetes.driver.pod.name"]
    driver.hear("\t namespace: jobs\n")

    assert driver.end()

    there = "--conf spark.master=k8s://https://hub --conf spark.kubernetes.context=jobs"
    assert asked() == [f"{there} --kill jobs:{pod}"]


@pytest.mark.parametrize(
    ("phases", "failed"),
    [
        pytest.param([], False, id="a-silent-log"),
        pytest.param(["Pending", "Running", "Succeeded"], False, id="ended-well"),
        pytest.param(["Pending", "Running", "Failed"], True, id="failed"),
        pytest.param(["Pending", "Running"], True, id="gone"),
    ],
)
def test_how_a_pod_ended_is_told_by_its_last_phase(phases: list[str], failed: bool) -> None:
    driver = driver_of("spark-submit", PODS, "cluster")

    for phase in phases:
        driver.hear(f"\t phase: {phase}\n")

    assert driver.failed == failed


def test_no_two_drivers_share_a_name() -> None:
    drivers = [driver_of("spark-submit", conf, "cluster") for conf in (YARN, PODS) for _ in range(2)]

    assert len({str(driver.conf) for driver in drivers}) == 4


@pytest.mark.parametrize("master", ["spark://hub:7077", "local[*]"])
def test_other_clusters_take_no_python_driver(master: str) -> None:
    with pytest.raises(ValueError, match="use deploy-mode client"):
        driver_of("spark-submit", {"spark.master": master}, "cluster")


def test_a_driver_of_a_client_ends_with_spark_submit() -> None:
    driver = driver_of("spark-submit", YARN, "client")

    assert (driver.conf, driver.taken_over, driver.end(), driver.failed, driver.told_by) == (
        {},
        False,
        False,
        False,
        "",
    )
