"""The identity of a task's drivers: the same in all tries, another one for any other job."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.operators._spark.reattachment import driver_identity
from airflow_provider_lancens.spark.options import Overwrite, WriteIdentity, WriteRequest
from airflow_provider_lancens.spark.submit import Job

JOB = Job(
    impl="airflow_provider_lancens.namespace.Hive2Namespace",
    properties={
        "uri": "thrift://hub",
        "storage.aws_secret_access_key": "hush",
        "storage.session_token": "hush",
    },
    table="db$orders",
    source="lake.jobs:orders",
    inputs={"raw": ("db$raw", 3)},
    kwargs={"day": "2026-01-01"},
    request=WriteRequest(identity=WriteIdentity("orders/1", "f", execution_id="1/-1/0")),
)


def identity(job: Job = JOB, run_id: str = "1", **more: Any) -> str:
    instance = {"dag_id": "lake", "task_id": "load", "map_index": -1, "try_number": 1, "max_tries": 0, **more}
    context: Any = {"ti": SimpleNamespace(**instance), "run_id": run_id}
    return driver_identity(job, context)


def requested(**fields: Any) -> Job:
    return replace(JOB, request=replace(JOB.request, identity=replace(JOB.request.identity, **fields)))


def test_all_tries_of_a_task_instance_have_one_identity() -> None:
    assert identity() == identity(try_number=2)
    assert len(identity()) == 32


def test_renewed_credentials_do_not_change_it() -> None:
    renewed = {
        **JOB.properties,
        "storage.session_token": "renewed",
        "storage.access_key_id": "new",
        "storage.azure_storage_master_key": "new",
        "storage.aws_sse_customer_key_base64": "new",
        "storage.something_that_the_operator_allows": "new",
    }

    assert identity(replace(JOB, properties=renewed)) == identity()
    assert identity(replace(JOB, kwargs={**JOB.kwargs, "api_key": "new"})) == identity()


@pytest.mark.parametrize(
    "other",
    [
        {"run_id": "2"},
        {"dag_id": "pond"},
        {"task_id": "reload"},
        {"map_index": 1},
        {"job": replace(JOB, properties={**JOB.properties, "uri": "thrift://test"})},
        {"job": replace(JOB, table="db$returns")},
        {"job": replace(JOB, source="lake.jobs:returns")},
        {"job": replace(JOB, inputs={"raw": ("db$raw", 4)})},
        {"job": replace(JOB, kwargs={"day": "2026-01-02"})},
        {"job": requested(key="orders/2")},
        {"job": requested(fingerprint="g")},
        {"job": replace(JOB, request=replace(JOB.request, change=Overwrite()))},
    ],
    ids=str,
)
def test_any_other_job_has_another_identity(other: dict[str, Any]) -> None:
    assert identity(**other) != identity()


def test_a_cleared_task_has_another_identity_only_if_it_writes_again() -> None:
    def cleared(policy: str) -> bool:
        first = requested(on_existing_key=policy)
        again = requested(on_existing_key=policy, execution_id="1/-1/3")
        return identity(first) == identity(again)

    assert [cleared("skip"), cleared("redo"), cleared("write_again")] == [True, False, False]


def test_arguments_that_json_cannot_hold_fail_without_retry() -> None:
    with pytest.raises(AirflowFailException, match=r"spark-submit: .* not JSON serializable"):
        identity(replace(JOB, kwargs={"day": object()}))
