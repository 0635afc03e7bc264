"""Drivers on a cluster: identified by spark-submit's output, and killed by spark-submit."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_provider_lancens.spark.submit.cluster_drivers import driver_of

ID = "application_1795332690234_0001"
YARN = {"spark.master": "yarn", "spark.yarn.queue": "night", "spark.kerberos.principal": "me@REALM"}
PODS = {"spark.master": "k8s://https://hub", "spark.kubernetes.context": "jobs", "spark.app.name": "dag.task"}


@pytest.fixture
def binary(tmp_path: Path) -> Callable[[str], str]:
    """A command that records its arguments, and does what the test defines."""

    def make(does: str) -> str:
        file = tmp_path / "spark-submit"
        file.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n{does}\n')
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return str(file)

    return make


@pytest.fixture
def asked(tmp_path: Path) -> Callable[[], list[str]]:
    """The recorded arguments of that command."""
    return lambda: (tmp_path / "asked").read_text().splitlines()


def test_an_application_is_killed_by_the_id_in_the_log(
    binary: Callable[[str], str], asked: Callable[[], list[str]]
) -> None:
    driver = driver_of(binary("true"), YARN, "cluster")
    driver.read_line("26/11/22 07:49:58 INFO Client: Preparing resources for our AM container")
    assert not driver.taken_over
    driver.read_line(f"26/11/22 07:49:58 INFO Client: Submitting application {ID} to ResourceManager")
    driver.read_line(f"26/11/22 07:49:59 INFO Client: Application report for {ID} (state: ACCEPTED)")

    assert driver.taken_over
    assert driver.end()

    [command] = asked()
    assert command.endswith(f"ApplicationCLI spark-internal application -kill {ID}")
    assert "--master local --deploy-mode client --conf spark.kerberos.principal=me@REALM " in command
    assert driver.log_command == f"yarn logs -applicationId {ID}"


def test_an_application_is_killed_by_its_tag_if_the_log_has_no_id(
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


def test_an_application_that_was_never_submitted_is_not_killed(
    binary: Callable[[str], str], asked: Callable[[], list[str]]
) -> None:
    assert not driver_of(binary("echo none"), YARN, "cluster").end()

    assert len(asked()) == 1


@pytest.mark.parametrize("conf", [YARN, PODS], ids=["yarn", "kubernetes"])
def test_an_unreachable_cluster_is_logged_and_does_not_hide_the_error(
    binary: Callable[[str], str], caplog: pytest.LogCaptureFixture, conf: dict[str, str]
) -> None:
    driver = driver_of(binary("echo no route to host; exit 1"), conf, "cluster")

    assert not driver.end()

    assert "no route to host" in caplog.text


def test_a_missing_command_is_logged_and_does_not_hide_the_error(caplog: pytest.LogCaptureFixture) -> None:
    assert not driver_of("/none/spark-submit", PODS, "cluster").end()

    assert "may still be running" in caplog.text


def test_a_pod_is_deleted_in_its_namespace(
    binary: Callable[[str], str], asked: Callable[[], list[str]]
) -> None:
    driver = driver_of(binary("true"), PODS, "cluster")
    pod = driver.conf["spark.kubernetes.driver.pod.name"]
    driver.read_line("\t namespace: jobs\n")

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
def test_the_result_of_a_pod_is_its_last_phase(phases: list[str], failed: bool) -> None:
    driver = driver_of("spark-submit", PODS, "cluster")

    for phase in phases:
        driver.read_line(f"\t phase: {phase}\n")

    assert driver.failed == failed


def test_driver_names_are_unique() -> None:
    drivers = [driver_of("spark-submit", conf, "cluster") for conf in (YARN, PODS) for _ in range(2)]

    assert len({str(driver.conf) for driver in drivers}) == 4


@pytest.mark.parametrize("master", ["spark://hub:7077", "local[*]"])
def test_cluster_mode_is_refused_on_other_clusters(master: str) -> None:
    with pytest.raises(ValueError, match="use deploy-mode client"):
        driver_of("spark-submit", {"spark.master": master}, "cluster")


def test_in_client_mode_the_driver_ends_with_spark_submit() -> None:
    driver = driver_of("spark-submit", YARN, "client")

    assert (driver.conf, driver.taken_over, driver.end(), driver.failed, driver.log_command) == (
        {},
        False,
        False,
        False,
        "",
    )
