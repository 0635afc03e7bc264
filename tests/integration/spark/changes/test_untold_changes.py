"""Changes that neither files nor Lance's versions of rows tell: found by the columns, or by the values."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import LanceOperation
from lance_namespace.errors import TableVersionNotFoundError

from airflow_provider_lancens.spark import TableLayout
from airflow_provider_lancens.spark.changes.changed_values import changed_values
from airflow_provider_lancens.spark.maintenance.restore import restore_version
from airflow_provider_lancens.spark.schema import add_columns, drop_columns
from tests.histories.table import Table
from tests.support.reads import read_changes
from tests.support.writes import write_table

Rows = list[tuple[Any, ...]]
STABLE = TableLayout(stable_row_ids=True)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Version 1: six rows in one file, with a price each."""
    made = Table.stored(tmp_path)
    rows = pa.table({"id": range(6), "v": list("abcdef"), "price": [10, 20, 30, 40, 50, None]})
    write_table(made.frame(rows), made.namespace, made.id, options=STABLE)
    return made


def changes(
    table: Table,
    after: int,
    version: int | None = None,
    columns: list[str] | None = None,
    where: str | None = None,
) -> Rows:
    """Return the changed rows and their types."""
    newest = version or table.open().version
    frame = read_changes(
        *(table.spark, table.namespace, table.id),
        after_version=after,
        version=newest,
        columns=columns,
        filter=where,
    )
    return sorted((tuple(row.values())[:-1] for row in table.collected(frame)), key=repr)


def replayed(table: Table, after: int) -> Counter[tuple[Any, ...]]:
    """Return the rows of a version with the changes since it."""
    rows = Counter(tuple(row.values()) for row in table.open(after).to_table().to_pylist())
    for *row, change in changes(table, after):
        rows[tuple(row)] += 1 if change in ("insert", "update_postimage") else -1
    return +rows


def rows(table: Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in table.open().to_table().to_pylist())


def compact(table: Table) -> None:
    table.open().delete("id = 5")
    table.open().optimize.compact_files()


@pytest.mark.parametrize("compacted", [False, True])
def test_a_column_that_a_restore_brings_back_is_an_update_of_the_rows_that_have_a_value(
    table: Table, compacted: bool
) -> None:
    drop_columns(table.namespace, table.id, ["price"])
    restore_version(table.namespace, table.id, 1)
    if compacted:
        compact(table)

    found = [row for row in changes(table, 2) if row[0] < 5]
    before = [(n, v, None, "update_preimage") for n, v in enumerate("abcde")]
    after = [(n, v, 10 * n + 10, "update_postimage") for n, v in enumerate("abcde")]
    assert found == sorted([*before, *after], key=repr)
    assert changes(table, 1, 3) == []
    assert [row for row in changes(table, 2, columns=["id", "v"]) if row[0] < 5] == []


def test_days_of_a_column_that_the_older_version_lacks_are_those_of_the_newer_rows(table: Table) -> None:
    add_columns(table.namespace, table.id, {"day": "string"})
    rows = pa.table({"id": [9], "v": ["z"], "price": [1], "day": ["2026-11-01"]})
    write_table(table.frame(rows), table.namespace, table.id, mode="upsert", on=["id"])
    table.open().delete("id = 1")

    found = changed_values(table.namespace, table.id, "day", after_version=1, version=table.open().version)
    assert found == ["2026-11-01"]


def test_values_of_rows_that_a_restore_brings_back_are_named(table: Table) -> None:
    table.open().delete("id < 2")
    restore_version(table.namespace, table.id, 1)

    found = changed_values(table.namespace, table.id, "v", after_version=2, version=3)
    assert found == ["a", "b"]


@pytest.mark.parametrize("compacted", [False, True])
def test_rows_that_begin_or_cease_to_match_a_filter_have_changed_whatever_columns_are_read(
    table: Table, compacted: bool
) -> None:
    replace_column(table)  # all prices are 7
    if compacted:
        compact(table)

    begin = [row for row in changes(table, 1, columns=["id", "v"], where="price < 25") if row[0] < 5]
    assert begin == [(n, "abcde"[n], "update_postimage") for n in (2, 3, 4)]
    cease = [row for row in changes(table, 1, columns=["id", "v"], where="price > 35") if row[0] < 5]
    assert cease == [(3, "d", "update_preimage"), (4, "e", "update_preimage")]


def test_values_of_rows_are_named_in_which_another_column_was_replaced(table: Table) -> None:
    replace_column(table)

    found = changed_values(table.namespace, table.id, "v", after_version=1, version=2)
    assert found == list("abcdef")


def lose_versions(table: Table) -> None:
    """Commit an update as lance-spark 0.4.0 does: without the versions of rows, which are 1 then."""
    dataset = table.open()
    fragments = [
        replace(one.metadata, created_at_version_meta=None, last_updated_at_version_meta=None)
        for one in dataset.get_fragments()
    ]
    operation = LanceOperation.Update([], fragments, [])
    lance.LanceDataset.commit(dataset, operation, read_version=dataset.version)


def replace_column(table: Table) -> None:
    """Replace the prices of a fragment, as a client that doesn't update the rows to Lance."""
    dataset = table.open()
    fragment = dataset.get_fragments()[0]
    ids = dataset.to_table(columns=["_rowid"], with_row_id=True)["_rowid"]
    prices = pa.table({"_rowid": ids, "price": pa.array([7] * len(ids), pa.int64())})
    updated, fields = fragment.update_columns(prices, left_on="_rowid", right_on="_rowid")
    operation = LanceOperation.Update(
        updated_fragments=[updated], fields_modified=fields, update_mode="rewrite_columns"
    )
    lance.LanceDataset.commit(dataset, operation, read_version=dataset.version)


def clean_up(table: Table) -> None:
    table.open().cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)


@pytest.mark.parametrize(
    "then", [(), (compact,), (compact, clean_up)], ids=["newest", "compacted", "cleaned"]
)
def test_updates_whose_versions_another_client_lost_are_found_by_their_values(
    table: Table, then: tuple[Callable[[Table], None], ...]
) -> None:
    table.open().tags.create("consumer", 1)
    table.open().update({"v": "'new'"}, where="id = 2")
    lose_versions(table)
    for step in then:
        step(table)

    assert [row for row in changes(table, 1) if row[0] != 5] == [
        (2, "c", 30, "update_preimage"),
        (2, "new", 30, "update_postimage"),
    ]
    assert replayed(table, 1) == rows(table)


@pytest.mark.parametrize("then", [(), (clean_up,)], ids=["kept", "cleaned"])
def test_a_replaced_column_is_found_after_a_compaction(
    table: Table, then: tuple[Callable[[Table], None], ...]
) -> None:
    table.open().tags.create("consumer", 1)
    replace_column(table)
    compact(table)
    for step in then:
        step(table)

    assert len(changes(table, 1)) == 5 * 2 + 1
    assert replayed(table, 1) == rows(table)


def test_a_replaced_column_that_a_restore_undoes_is_found_after_a_compaction(table: Table) -> None:
    replace_column(table)
    restore_version(table.namespace, table.id, 1)
    compact(table)

    assert len(changes(table, 2)) == 5 * 2 + 1
    assert replayed(table, 2) == rows(table)


def test_rows_that_a_compaction_moved_are_no_changes_though_versions_in_between_are_gone(
    table: Table,
) -> None:
    table.open().tags.create("consumer", 1)
    compact(table)
    clean_up(table)

    assert changes(table, 1) == [(5, "f", None, "delete")]


def test_a_restored_column_that_may_be_the_one_it_was_cast_from_is_refused_after_a_clean_up(
    table: Table,
) -> None:
    table.open().tags.create("first", 1)
    table.open().alter_columns({"path": "price", "data_type": pa.int32()})
    table.open().delete("id = 0")
    table.open().delete("id = 1")
    table.open().cleanup_old_versions(
        older_than=timedelta(0), retain_versions=2, error_if_tagged_old_versions=False
    )
    restore_version(table.namespace, table.id, 1)

    with pytest.raises(TableVersionNotFoundError, match=r"columns of version 4 were \['price'\]"):
        changes(table, 4)
    assert changes(table, 4, columns=["id"]) == [(0, "insert"), (1, "insert")]


def structs(table: Table) -> None:
    """Version 1 of another table: two rows of a struct."""
    kind = pa.struct([("a", pa.int64()), ("b", pa.string())])
    meta = pa.array([{"a": 1, "b": "x"}, {"a": 2, "b": None}], kind)
    rows = pa.table({"id": pa.array([1, 2]), "meta": meta})
    options = TableLayout(stable_row_ids=True)
    write_table(
        table.frame(rows),
        table.namespace,
        table.id,
        mode="overwrite",
        schema_mode="overwrite",
        options=options,
    )


@pytest.mark.parametrize("compacted", [False, True])
def test_a_field_in_a_struct_that_is_renamed_or_brought_back_is_an_update(
    table: Table, compacted: bool
) -> None:
    structs(table)
    table.open().alter_columns({"path": "meta.b", "name": "c"})
    if compacted:
        write_table(
            table.frame(
                pa.table({"id": [3], "meta": pa.array([None], table.open().schema.field("meta").type)})
            ),
            table.namespace,
            table.id,
        )
        table.open().optimize.compact_files()

    found = [row for row in changes(table, 2) if row[0] < 3]
    assert found == [
        (1, {"a": 1, "c": "x"}, "update_postimage"),
        (1, {"a": 1, "c": None}, "update_preimage"),
    ]
    restore_version(table.namespace, table.id, 2)
    after = 5 if compacted else 3
    assert [row for row in changes(table, after) if row[0] < 3] == [
        (1, {"a": 1, "b": "x"}, "update_postimage"),
        (1, {"a": 1, "b": None}, "update_preimage"),
    ]
