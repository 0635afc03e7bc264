"""A driver in a pod: a real spark-submit, and a double of the Kubernetes API."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_lancens.spark import submit as earlier_drivers
from airflow_provider_lancens.spark.submit import ClusterError, Job, Submission, earlier_driver, submitted
from tests.servers.kubernetes import Kubernetes

pytestmark = pytest.mark.long

NAMED = {"spark.kubernetes.driver.pod.name": "orders-driver"}


@pytest.fixture
def kubernetes() -> Iterator[Kubernetes]:
    with Kubernetes("jobs") as double:
        yield double


@pytest.fixture
def deployment(kubernetes: Kubernetes, tmp_path: Path) -> dict[str, str]:
    """Spark's configuration."""
    return {
        "spark.master": kubernetes.master,
        "spark.kubernetes.namespace": "jobs",
        "spark.kubernetes.container.image": "spark",
        "spark.kubernetes.file.upload.path": tmp_path.as_uri(),
    }


@pytest.fixture
def submit(deployment: dict[str, str], tmp_path: Path) -> Callable[..., AbstractContextManager[Submission]]:
    def start(identity: str | None = None, **conf: str) -> AbstractContextManager[Submission]:
        job = Job("dir", {"root": str(tmp_path)}, "orders", "a.module:function")
        return submitted(job, {**deployment, **conf}, identity=identity)

    return start


Submit = Callable[..., AbstractContextManager[Submission]]


def test_a_killed_submission_deletes_its_pod(submit: Submit, kubernetes: Kubernetes) -> None:
    with submit() as submission:
        pod = kubernetes.wait_for_pod()

        submission.kill()

    assert pod["metadata"]["name"].startswith("lance-")
    assert not kubernetes.pods


def test_a_pod_named_by_the_user_is_deleted_too(submit: Submit, kubernetes: Kubernetes) -> None:
    with submit(**NAMED) as submission:
        kubernetes.wait_for_pod()

        submission.kill()

    assert submission.log_command == "kubectl logs --namespace jobs orders-driver"
    assert not kubernetes.pods


@pytest.mark.parametrize(("phase", "code"), [("Succeeded", 0), ("Failed", 1)])
def test_a_failed_driver_fails_the_submission(
    submit: Submit, kubernetes: Kubernetes, phase: str, code: int
) -> None:
    with submit() as submission:
        kubernetes.put(kubernetes.wait_for_pod(), phase)

        list(submission.lines())

        assert submission.wait() == code


def test_a_deleted_pod_fails_the_submission(submit: Submit, kubernetes: Kubernetes) -> None:
    with submit(**NAMED) as submission:
        for line in submission.lines():
            if "phase: Pending" in line:
                kubernetes.delete("orders-driver")

        assert submission.wait() == 1


@pytest.mark.parametrize("named", [{}, NAMED], ids=["by-this-package", "by-the-user"])
def test_the_pod_of_a_lost_worker_is_found_waited_for_and_ended(
    submit: Submit,
    kubernetes: Kubernetes,
    deployment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    named: dict[str, str],
) -> None:
    monkeypatch.setattr(earlier_drivers, "_PAUSES", (0.0,))
    where: dict[str, Any] = {"deploy_mode": "cluster", "binary": "spark-submit"}
    with submit("abc", **named):
        pod = kubernetes.wait_for_pod()
        name = pod["metadata"]["name"]

        with earlier_driver({**deployment, **named}, **where, identity="def") as another:
            assert another.find() is None
        with earlier_driver({**deployment, **named}, **where, identity="abc") as earlier:
            assert earlier.find() == name
            assert earlier.log_command == f"kubectl logs --namespace jobs {name}"
            kubernetes.put(pod, "Succeeded")
            assert earlier.wait()
            assert earlier.find() is None

            kubernetes.put(pod, "Running")
            assert earlier.find() == name
            earlier.kill()
        assert not kubernetes.pods


def test_a_cluster_that_refuses_the_search_is_an_error_that_says_why(
    kubernetes: Kubernetes, deployment: dict[str, str]
) -> None:
    conf = {**deployment, "spark.kubernetes.namespace": "others"}  # the double knows only one

    with (
        earlier_driver(conf, deploy_mode="cluster", binary="spark-submit", identity="abc") as earlier,
        pytest.raises(ClusterError, match="NotFound"),
    ):
        earlier.find()
