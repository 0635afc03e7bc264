"""A driver of an earlier submission: found while it is running, waited for, and ended."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_provider_lancens.operators._spark.reattachment import wait_for_earlier
from airflow_provider_lancens.spark import submit
from airflow_provider_lancens.spark.submit import ClusterError, EarlierDriver, driver_of

YARN = {"spark.master": "yarn"}
FIRST, SECOND = "application_1795557741097_0001", "application_1795557741097_0002"
RUNNING, SUCCEEDED, KILLED = "RUNNING UNDEFINED", "FINISHED SUCCEEDED", "KILLED KILLED"
FAILS = "failure"

log = logging.getLogger(__name__)
Cluster = Callable[..., EarlierDriver]


@pytest.fixture
def cluster(
    binary: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., EarlierDriver]:
    """An earlier driver on a cluster that answers each search as the test defines."""
    monkeypatch.setattr(submit, "_PAUSES", ())
    monkeypatch.setattr(submit, "_INTERVAL", 0.0)

    def start(*answers: dict[str, str] | str) -> EarlierDriver:
        for number, answer in enumerate(answers, 1):
            lines = [answer] if isinstance(answer, str) else [row(*one) for one in answer.items()]
            (tmp_path / f"answer-{number}").write_text("\n".join(lines))
        # A search prints the next answer, and fails if that says so; a kill prints nothing.
        search = f"n=$(grep -c -e -list {tmp_path}/asked); cat {tmp_path}/answer-$n"
        command = binary(f'case "$*" in *-list*) {search}; ! grep -q {FAILS} {tmp_path}/answer-$n;; esac')
        return EarlierDriver(driver_of(command, YARN, "cluster", "abc"))

    return start


def row(application: str, states: str) -> str:
    """A line of YARN's list."""
    return "\t".join([application, "dag.task", "SPARK", "me", "default", *states.split(), "0%", "N/A"])


@pytest.mark.parametrize(("final", "succeeded"), [(SUCCEEDED, True), (KILLED, False)])
def test_a_running_driver_is_waited_for(cluster: Cluster, final: str, succeeded: bool) -> None:
    earlier = cluster({FIRST: RUNNING}, {FIRST: "ACCEPTED UNDEFINED"}, FAILS, {FIRST: final})

    assert earlier.find() == FIRST
    assert earlier.wait() == succeeded


def test_a_driver_that_the_cluster_has_forgotten_did_not_succeed(cluster: Cluster) -> None:
    earlier = cluster({FIRST: RUNNING}, {})

    assert earlier.find() == FIRST
    assert not earlier.wait()


def test_a_driver_is_given_up_after_ten_searches_without_an_answer(
    cluster: Cluster, asked: Callable[[], list[str]]
) -> None:
    earlier = cluster({FIRST: RUNNING}, FAILS, {FIRST: RUNNING}, *[FAILS] * 10)
    earlier.find()

    with pytest.raises(ClusterError, match=FAILS):
        earlier.wait()

    assert len(asked()) == 13


def test_a_driver_that_ended_is_not_adopted(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    assert not wait_for_earlier(cluster({FIRST: SUCCEEDED, SECOND: KILLED}), log)

    assert not caplog.text


def test_the_log_says_which_driver_the_task_waits_for(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    assert wait_for_earlier(cluster({FIRST: RUNNING}, {FIRST: SUCCEEDED}), log)

    assert f"Reattached to driver {FIRST}, which an earlier try" in caplog.text
    assert f"run: yarn logs -applicationId {FIRST}" in caplog.text
    assert f"Driver {FIRST} has succeeded" in caplog.text


def test_after_a_failed_driver_another_one_that_is_running_is_waited_for(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    both = {FIRST: KILLED, SECOND: RUNNING}

    assert wait_for_earlier(
        cluster({FIRST: RUNNING, SECOND: RUNNING}, both, both, {**both, SECOND: SUCCEEDED}), log
    )

    assert f"Driver {FIRST} failed or was killed" in caplog.text


def test_a_cluster_that_does_not_answer_is_logged_and_another_driver_may_be_submitted(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    assert not wait_for_earlier(cluster(FAILS), log)

    assert "The search for the driver of an earlier try failed, so another one is submitted. " in caplog.text
    assert FAILS in caplog.text


def test_a_found_driver_is_killed_once(cluster: Cluster, asked: Callable[[], list[str]]) -> None:
    earlier = cluster({FIRST: RUNNING})
    earlier.find()

    earlier.kill()
    earlier.kill()

    _, killed = asked()
    assert killed.endswith(f"application -kill {FIRST}")


def test_a_kill_during_the_search_ends_the_driver_too(
    cluster: Cluster, asked: Callable[[], list[str]]
) -> None:
    cluster({FIRST: RUNNING}).kill()

    assert asked()[1].endswith(f"application -kill {FIRST}")


def test_a_kill_that_the_cluster_does_not_answer_is_logged(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster(FAILS).kill()

    assert "may still be running" in caplog.text
