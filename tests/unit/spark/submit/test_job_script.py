"""A write as a script, for a driver that runs elsewhere."""

import json
from typing import Any

import pytest

from airflow_provider_lancens.spark.options import TableLayout, Upsert, WriteIdentity, WriteRequest
from airflow_provider_lancens.spark.submit import Job


def test_a_job_is_the_same_after_it_was_serialized() -> None:
    request = WriteRequest(
        Upsert(on=["id"], schema_mode="merge"),
        WriteIdentity("january", "f", "write_again"),
        TableLayout(10, vector_columns={"v": 2}),
    )
    job = Job("dir", {"root": "/lake"}, "db$t", "a.module:function", kwargs={"month": 1}, request=request)

    assert Job.parse(json.dumps(job.as_dict())) == job


@pytest.mark.parametrize(
    ("limits", "argument"),
    [
        ({1: 10}, r"op_kwargs\['limits'\]: has the name 1"),
        ([{"a": {None: 1}}], r"\['a'\]: has the name None"),
    ],
)
def test_a_job_is_refused_whose_driver_would_get_other_names(limits: Any, argument: str) -> None:
    job = Job("dir", {"root": "/lake"}, "db$t", "a.module:function", kwargs={"limits": limits})

    with pytest.raises(TypeError, match=argument):
        job.as_dict()
