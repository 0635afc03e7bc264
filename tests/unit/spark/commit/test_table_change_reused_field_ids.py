"""Appends beside changes of columns that give field ids another meaning, as Lance itself does not check."""

from collections.abc import Callable

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import ConcurrentModificationError

from airflow_provider_lancens.spark.commit.committer import CommitOutcome, Committer
from airflow_provider_lancens.spark.keys import Counts, KeyedWrite
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from tests.support.prepared_tables import prepare

Write = Callable[..., CommitOutcome]
Change = Callable[[lance.LanceDataset], object]

STRUCTS = [{"x": 1, "y": 2}, {"x": 3, "y": 4}]
ROWS = pa.table({"n": [1, 2], "price": [1.5, 2.5], "s": STRUCTS})


def drop_then_add(dropped: str, added: pa.Field) -> Change:
    """Give a new column the id of a dropped one, which a compaction frees."""

    def change(dataset: lance.LanceDataset) -> None:
        dataset.drop_columns([dropped])
        dataset.optimize.compact_files()
        dataset.add_columns(added)

    return change


def overwrite(price: list[object]) -> Change:
    rows = pa.table({"n": [1, 2], "price": price, "s": STRUCTS})
    return lambda dataset: lance.write_dataset(rows, dataset.uri, mode="overwrite")


def rename(path: str, name: str) -> Change:
    return lambda dataset: dataset.alter_columns({"path": path, "name": name})


@pytest.fixture
def append_beside(target: ResolvedTable, write: Write) -> Callable[[Change], pa.Table]:
    """Append rows beside a change that another writer commits while they are written."""

    def append(change: Change) -> pa.Table:
        for key in ("january", "february"):
            write("append", key, ROWS)
        appended = prepare(target, "append", ROWS)
        location = target.dataset.location
        change(lance.dataset(location))
        appended.check_columns_kept(lance.dataset(location))
        Committer(target, KeyedWrite("march"), Counts(ROWS.num_rows, 1, 100)).commit(appended)
        return lance.dataset(location).to_table()

    return append


@pytest.mark.parametrize(
    "change",
    [
        drop_then_add("price", pa.field("cost", pa.float64())),
        drop_then_add("price", pa.field("price", pa.int64())),
        drop_then_add("price", pa.field("price", pa.string())),
        drop_then_add("s.y", pa.field("cost", pa.int64())),
        overwrite(["a", "b"]),
        rename("s.x", "z"),
    ],
    ids=["other-name", "other-number", "other-type", "nested", "overwritten-with-other-type", "nested-name"],
)
def test_rows_are_not_appended_to_fields_that_have_the_ids_of_theirs(
    append_beside: Callable[[Change], pa.Table], change: Change
) -> None:
    with pytest.raises(ConcurrentModificationError, match=r"gave other columns|changed its columns"):
        append_beside(change)


def test_rows_are_appended_to_a_column_that_was_renamed(
    append_beside: Callable[[Change], pa.Table],
) -> None:
    assert append_beside(rename("price", "cost"))["cost"].to_pylist() == [1.5, 2.5] * 3


def test_rows_are_appended_beside_a_new_column(append_beside: Callable[[Change], pa.Table]) -> None:
    rows = append_beside(lambda dataset: dataset.add_columns(pa.field("cost", pa.float64())))
    assert rows["price"].to_pylist() == [1.5, 2.5] * 3
