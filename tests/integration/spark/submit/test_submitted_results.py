"""The result of a job that another process ran: its commit is found by the key."""

import json
import logging
import subprocess
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from lance_namespace import DeclareTableRequest
from pyspark.sql import SparkSession

from airflow_provider_lancens.operators._spark.submission import committed_by, run_job
from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.options import Append, WriteIdentity, WriteRequest
from airflow_provider_lancens.spark.submit import PROCESS_ARGS, Driver, Job, Submission

pytestmark = pytest.mark.thorough


def rows(spark: Any) -> Any:
    """Three rows."""
    return spark.range(3)


def changed(spark: Any, orders: Any, others: Any) -> Any:
    """The rows that have changed in one table, and none of the others."""
    return orders.changes().read(columns=["id"]).select("id").union(others.read().limit(0))


@pytest.fixture
def job(spec: NamespaceSpec, table: str) -> Job:
    return Job(spec.impl, spec.properties, table, f"{__name__}:rows")


def test_a_staged_version_is_the_result_of_its_job(
    spark: SparkSession, spec: NamespaceSpec, job: Job
) -> None:
    hook: Any = SimpleNamespace(get_conn=spec.connect)
    keyed = [
        WriteRequest(Append(stage=key == "second"), WriteIdentity(key, execution_id="1"))
        for key in ("first", "second")
    ]
    first, second = (replace(job, request=request) for request in keyed)
    first.run(spark)
    assert committed_by(second, hook, 0.0) is None

    staged = second.run(spark)
    ended = Submission(subprocess.Popen(["true"], **PROCESS_ARGS), Driver())
    result = run_job(second, hook, ended, logging.getLogger(__name__))

    assert (result.version, result.previous_version) == (staged.version, 1)
    assert (result.written, result.outcome) == (3, "staged")
    assert committed_by(second, hook, 0.0) is not None


def test_a_job_that_reads_changes_writes_under_the_key_of_their_range(
    spark: SparkSession, spec: NamespaceSpec, job: Job
) -> None:
    hook: Any = SimpleNamespace(get_conn=spec.connect)
    for number in (1, 2):
        key = WriteIdentity(f"orders {number}", execution_id="1")
        replace(job, request=WriteRequest(identity=key)).run(spark)
    spec.connect().declare_table(DeclareTableRequest(id=["copy"]))
    job = replace(
        job,
        table="copy",
        source=f"{__name__}:changed",
        inputs={"orders": ("orders", 2, 1), "others": ("orders", 2, 0)},
        request=WriteRequest(identity=WriteIdentity("copy", "whole", execution_id="1")),
        readings=[(["others"], "copy/0", "0"), (["orders"], "copy/1", "1"), (["orders", "others"], "x", "x")],
    )
    job = Job.parse(json.dumps(job.as_dict()))
    assert committed_by(job, hook, 0.0) is None

    written = job.run(spark)

    assert (written.key, written.inserted) == ("copy/1", 3)
    found = committed_by(job, hook, 0.0)
    assert found is not None
    assert (found.key, found.version) == ("copy/1", 1)
