"""A table of a real metastore is written, read and maintained on Spark by its methods."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError, InvalidTableStateError

from airflow_provider_lancens import LanceCatalog, Table, WriteIdentity, connect
from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.spark import FileSource, TableLayout
from tests.support.writes import write_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lake(metastore: MetastoreServer, tmp_path: Path, spark: SparkSession) -> Iterator[LanceCatalog]:
    with connect("hive2", {"uri": metastore.uri, "root": str(tmp_path)}, spark=spark) as lake:
        yield lake


@pytest.fixture
def orders(lake: LanceCatalog, database: str) -> Table:
    lake.create_namespace(database)
    return lake.declare_table(f"{database}.orders")


def ids(table: Table) -> list[int]:
    return sorted(row["id"] for row in table.read(columns=["id"]).collect())


def frame(lake: LanceCatalog, *rows: tuple[Any, ...]) -> Any:
    return lake.spark.createDataFrame(list(rows), "id long, day string")


def test_rows_are_appended_overwritten_upserted_and_read_at_each_version(
    lake: LanceCatalog, orders: Table
) -> None:
    first = orders.append(frame(lake, (1, "a"), (2, "b")), key="load")
    again = orders.append(frame(lake, (1, "a"), (2, "b")), key=WriteIdentity("load", on_existing_key="skip"))
    orders.overwrite(frame(lake, (3, "b")), where="day = 'b'")
    merged = orders.upsert(frame(lake, (3, "c"), (4, "d")), ["id"])

    assert (first.version, first.is_done, again.version, again.is_done) == (1, True, 1, False)
    assert merged.changes == {"inserted": 1, "updated": 1, "deleted": 0}
    assert [ids(orders.at(version)) for version in (1, 2, 3)] == [[1, 2], [1, 3], [1, 3, 4]]
    assert ids(lake.table(again)) == [1, 2]
    assert orders.to_arrow(filter="day = 'c'").to_pylist() == [{"id": 3, "day": "c"}]


def test_the_first_write_has_the_layout_of_the_declaration_and_others_only_what_they_change(
    lake: LanceCatalog, database: str
) -> None:
    lake.create_namespace(database)
    layout = {"stable_row_ids": True, "vector_columns": {"v": 2}}
    table = lake.declare_table(f"{database}.images", layout=layout)
    rows = lake.spark.sql("SELECT 1L AS id, array(1.0f, 2.0f) AS v")

    write_table(rows, lake.source, f"{database}$images", options=TableLayout(max_rows_per_file=1))

    dataset = table.dataset()
    assert dataset.has_stable_row_ids
    assert str(dataset.schema.field("v").type) == "fixed_size_list<item: float>[2]"
    assert lake.declare_table(f"{database}.images", layout=layout).name == table.name
    with pytest.raises(InvalidInputError, match=r"exists with layout=\{.*\}, not \{\}: the layout is chosen"):
        lake.declare_table(f"{database}.images", layout={})
    with pytest.raises(InvalidInputError, match=r"layout: .*'rows'"):
        lake.declare_table(f"{database}.others", layout={"rows": 1})


def test_staged_rows_are_read_by_their_result_and_published(lake: LanceCatalog, orders: Table) -> None:
    orders.append(frame(lake, (1, "a")))
    staged = orders.append(frame(lake, (2, "b")), stage=True, key="staged")

    assert ids(lake.table(staged)) == [1, 2]
    assert ids(orders) == [1]
    assert orders.publish(staged).version == 2
    assert ids(orders) == [1, 2]


def test_files_are_appended_and_none_of_their_rows_is_compared(
    lake: LanceCatalog, orders: Table, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("id,day\n1,a\n")
    files = FileSource(format="csv", paths=[str(tmp_path / "a.csv")])

    orders.append(files)
    orders.append({"format": "csv", "paths": [str(tmp_path / "a.csv")]})
    assert orders.count_rows() == 2
    with pytest.raises(InvalidInputError, match="not allowed for a FileSource"):
        orders.upsert(files, ["id"], when_matched="keep")


def test_changes_since_a_bookmark_are_read_on_spark(lake: LanceCatalog, orders: Table) -> None:
    orders.append(frame(lake, (1, "a")))
    orders.move_bookmark("billing")
    orders.append(frame(lake, (2, "b")))

    with orders.changes(bookmark="billing") as changes:
        rows = changes.read(columns=["id"], filter="id > 0").collect()
    assert [(row["id"], row["_change_type"], row["_commit_version"]) for row in rows] == [(2, "insert", 2)]
    assert orders.changes(bookmark="billing").is_empty


def test_a_table_is_indexed_computed_and_compacted_on_spark(lake: LanceCatalog, orders: Table) -> None:
    orders.append(frame(lake, (1, "a")))
    orders.append(frame(lake, (2, "b")))
    assert orders.compact().is_done
    assert orders.stats().fragments == 1
    orders.compute_column("same", lambda batch: batch["id"], ["id"], dtype="bigint")
    assert orders.count_rows(filter="same = id") == 2
    assert orders.create_index("id", "BTREE").is_done
    assert [one.name for one in orders.indices()] == ["id_idx"]


def test_a_table_is_checked_advanced_and_given_another_version_authority(orders: Table) -> None:
    rows = pa.table({"id": [1], "day": ["a"]})
    orders.append(rows)
    assert (orders.check().verdict, orders.check().checked) == ("consistent", 1)
    assert orders.set_version_authority("catalog")
    assert not orders.set_version_authority("catalog")

    lance.write_dataset(rows, orders.location, mode="append")  # a direct writer
    with pytest.raises(InvalidTableStateError, match="a direct writer committed"):
        orders.check()
    found = orders.check(if_inconsistent="report")
    assert (found.verdict, found.catalog_version, found.storage_version) == ("storage_ahead", 1, 2)

    assert orders.advance(2, expected_version=1)
    assert not orders.advance(2, expected_version=1)
    lance.write_dataset(rows, orders.location, mode="append")
    adopted = orders.check(if_inconsistent="adopt")
    assert (adopted.outcome, adopted.verdict, orders.check().catalog_version) == ("done", "storage_ahead", 3)
