"""A write as a script, for a driver that runs elsewhere."""

import json
from dataclasses import asdict

from airflow_provider_lancens.spark.options import WriteOptions, WriteRequest
from airflow_provider_lancens.spark.submit import Job


def test_a_job_is_the_same_after_it_was_serialized() -> None:
    request = WriteRequest(
        mode="upsert",
        idempotency_key="january",
        fingerprint="f",
        on_existing_key="write_again",
        on=["id"],
        options=WriteOptions(10, vector_columns={"v": 2}),
        schema_mode="merge",
    )
    job = Job("dir", {"root": "/lake"}, "db$t", "a.module:function", kwargs={"month": 1}, request=request)

    assert Job.parse(json.dumps(asdict(job))) == job
