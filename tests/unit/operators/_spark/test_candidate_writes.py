"""The writes that a task may be making: how their keys are looked up."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from airflow_provider_lancens import LanceCatalog
from airflow_provider_lancens.operators._spark.candidate_writes import CandidateWrites
from airflow_provider_lancens.spark.function_inputs import WHOLE, Reading
from airflow_provider_lancens.spark.options import Append, WriteIdentity, WriteRequest
from airflow_provider_lancens.spark.table.resolved_table import resolved_table
from tests.servers.s3_double import S3Double
from tests.servers.s3_requests import GET
from tests.unit.spark.commit.memory_lake import NAME, Lake

CHANGES: Reading = frozenset({"orders"})
REQUESTS = {
    WHOLE: WriteRequest(Append(), WriteIdentity("task")),
    CHANGES: WriteRequest(Append(), WriteIdentity("task/changes@orders/3")),
    CHANGES | {"returns"}: WriteRequest(Append(), WriteIdentity("task/changes@orders/3/changes@returns/1")),
}


@pytest.fixture(params=["storage", "impl"])
def lake(request: pytest.FixtureRequest) -> Iterator[Lake]:
    """A table to which a task has written what it read of changes."""
    with S3Double() as s3:
        made = Lake(s3, request.param)
        made.declare(request.param)
        table = LanceCatalog(lambda: made.namespace).table(NAME)
        table.append(pa.table({"n": [1]}))
        table.append(pa.table({"n": [2]}), key=REQUESTS[CHANGES].identity)
        yield made


def test_all_keys_are_looked_up_in_the_table_as_it_was_opened_once(lake: Lake) -> None:
    with resolved_table(lake.namespace, NAME) as target:
        before = len(lake.s3.requests)
        writes = CandidateWrites.begin(target, REQUESTS)
        lake.s3.wait_until_quiet()
        opened = [one for one in lake.s3.requests[before:] if one.kind == GET and "/_versions/" in one.key]

    assert {context.latest for context in writes.begun.values()} == {writes.begun[WHOLE].latest}
    found = {reading: context.repeated for reading, context in writes.begun.items() if context.repeated}
    assert found.keys() == {CHANGES}
    assert len(opened) == 2  # its manifest, and the transaction of the commit that was found
