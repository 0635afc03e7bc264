"""How often the methods of a table describe it to do their work: once each."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_lancens import LanceCatalog, Table
from airflow_provider_lancens.spark.execution import TaskExecution
from tests.histories.local_session import LocalSession
from tests.servers.s3_double import S3Double
from tests.unit.spark.commit.memory_lake import NAME, Lake
from tests.unit.spark.every_verb import PickledNamespace

ROWS = pa.table({"n": [1, 2]})
NOW = timedelta(0)


class ReadableLake(Lake):
    """One whose tables Spark's tasks can read."""

    kind = PickledNamespace


@pytest.fixture(params=["storage", "impl"])
def lake(request: pytest.FixtureRequest) -> Iterator[Lake]:
    """A table of three versions on the S3 double, the second of which has a bookmark."""
    with S3Double() as s3:
        made = ReadableLake(s3, request.param)
        made.declare(request.param)
        table = LanceCatalog(lambda: made.namespace).table(NAME)
        for number in range(3):
            table.append(ROWS, key=f"first {number}")
        table.move_bookmark("reader", 2)
        yield made


@pytest.fixture
def described(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The requests to describe a table."""
    requests: list[object] = []
    kind = type(lake.namespace)
    describe = kind.describe_table

    def counted(namespace: Any, request: Any) -> Any:
        requests.append(request)
        return describe(namespace, request)

    monkeypatch.setattr(kind, "describe_table", counted)
    return requests


def opened(lake: Lake) -> Table:
    """The table as a task has it."""
    spark: Any = LocalSession()
    execution = TaskExecution(lambda: "an execution")
    return LanceCatalog(lambda: lake.namespace, spark=spark, execution=execution).table(NAME)


@pytest.mark.parametrize(
    "method",
    [
        lambda table: table.version,
        lambda table: table.at(),
        lambda table: table.at("reader"),
        lambda table: table.schema,
        lambda table: table.read(),
        lambda table: table.to_arrow(),
        lambda table: table.append(ROWS),
        lambda table: table.append(ROWS, key="second"),
        lambda table: table.changes(1),
        lambda table: table.changes(bookmark="reader"),
        lambda table: table.find_changes("reader"),
        lambda table: table.find_changes("another"),
        lambda table: table.bookmarks(),
        lambda table: table.move_bookmark("reader"),
        lambda table: table.move_bookmark("reader", 3),
        lambda table: table.delete_bookmark("reader"),
        lambda table: table.tags(),
        lambda table: table.tag("mine"),
        lambda table: table.tag("mine", 1),
        lambda table: table.compact(thresholds={"min_small_fragments": 2}),
        lambda table: table.compact(thresholds={"min_small_fragments": 9}),
        lambda table: table.create_index(
            "n", "BTREE", if_exists="extend", thresholds={"max_unindexed_share": 0.1}
        ),
        lambda table: table.expire_versions(thresholds={"min_removable_versions": 1}, older_than=NOW),
        lambda table: table.drop_index("mine", if_missing="skip"),
    ],
)
def test_a_method_describes_its_table_once(
    lake: Lake, described: list[object], method: Callable[[Table], object]
) -> None:
    method(opened(lake))

    assert len(described) == 1


def test_a_block_of_changes_describes_its_table_at_its_beginning_and_at_its_end(
    lake: Lake, described: list[object]
) -> None:
    with opened(lake).changes(bookmark="reader") as changes:
        assert (changes.previous_version, changes.version) == (2, 3)

    assert len(described) == 2
    assert opened(lake).find_changes("reader").is_empty
