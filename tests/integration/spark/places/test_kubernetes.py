"""A driver in a pod: spark-submit is the real one, and the API that it speaks to a double."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from airflow_provider_lancens.spark.job import Job
from airflow_provider_lancens.spark.submit import Submission, submitted
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
        place = {
            "spark.master": kubernetes.master,
            "spark.kubernetes.namespace": "jobs",
            "spark.kubernetes.container.image": "spark",
            "spark.kubernetes.file.upload.path": tmp_path.as_uri(),
        }
        return submitted(job, {**place, **conf})

    return start


Submit = Callable[..., AbstractContextManager[Submission]]


def test_a_killed_submission_takes_its_pod_along(submit: Submit, kubernetes: Kubernetes) -> None:
    with submit() as submission:
        pod = kubernetes.wait_for_pod()

        submission.kill()

    assert pod["metadata"]["name"].startswith("lance-")
    assert not kubernetes.pods


def test_a_pod_that_the_user_named_ends_too(submit: Submit, kubernetes: Kubernetes) -> None:
    with submit(**NAMED) as submission:
        kubernetes.wait_for_pod()

        submission.kill()

    assert submission.told_by == "kubectl logs --namespace jobs orders-driver"
    assert not kubernetes.pods


@pytest.mark.parametrize(("phase", "code"), [("Succeeded", 0), ("Failed", 1)])
def test_a_driver_that_fails_fails_the_submission(
    submit: Submit, kubernetes: Kubernetes, phase: str, code: int
) -> None:
    with submit() as submission:
        kubernetes.put(kubernetes.wait_for_pod(), phase)

        list(submission.lines())

        assert submission.wait() == code


def test_a_pod_that_goes_away_fails_the_submission(submit: Submit, kubernetes: Kubernetes) -> None:
    with submit(**NAMED) as submission:
        for line in submission.lines():
            if "phase: Pending" in line:
                kubernetes.delete("orders-driver")

        assert submission.wait() == 1
