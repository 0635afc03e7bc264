"""A driver in a pod: a real spark-submit, and a double of the Kubernetes API."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from airflow_provider_lancens.spark.submit.job_script import Job
from airflow_provider_lancens.spark.submit.spark_submit import Submission, submitted
from tests.servers.kubernetes import Kubernetes

pytestmark = pytest.mark.long

NAMED = {"spark.kubernetes.driver.pod.name": "orders-driver"}


@pytest.fixture
def kubernetes() -> Iterator[Kubernetes]:
    with Kubernetes("jobs") as double:
        yield double


@pytest.fixture
def submit(kubernetes: Kubernetes, tmp_path: Path) -> Callable[..., AbstractContextManager[Submission]]:
    def start(**conf: str) -> AbstractContextManager[Submission]:
        job = Job("dir", {"root": str(tmp_path)}, "orders", "a.module:function")
        deployment = {
            "spark.master": kubernetes.master,
            "spark.kubernetes.namespace": "jobs",
            "spark.kubernetes.container.image": "spark",
            "spark.kubernetes.file.upload.path": tmp_path.as_uri(),
        }
        return submitted(job, {**deployment, **conf})

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
