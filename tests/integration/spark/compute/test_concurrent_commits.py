"""What others commit while a column is computed: nothing is lost, and no value gets to another row."""

from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance_namespace.errors import ConcurrentModificationError

from airflow_provider_lancens.spark import TableLayout
from airflow_provider_lancens.spark.compute.compute_column import ColumnRun
from airflow_provider_lancens.spark.maintenance.compact import compact_table
from airflow_provider_lancens.spark.maintenance.restore import restore_version
from tests.support.computed_tables import Meanwhile, compute, expected, fill, values
from tests.support.indices import build_index
from tests.support.maintained_tables import Maintained, rows
from tests.support.writes import write_table

pytestmark = pytest.mark.thorough

NULL = "cast(null AS bigint) AS n"


def test_rows_appended_meanwhile_are_computed_by_the_next_run(
    table: Maintained, meanwhile: Meanwhile, stable: TableLayout
) -> None:
    fill(table, options=stable)
    meanwhile(lambda: table.write(rows(table.spark, 40, 50).selectExpr("*", NULL)))

    first = compute(table)

    assert values(table) == expected(range(40)) | dict.fromkeys(range(40, 50))
    assert (first.computed, compute(table).computed) == (40, 10)
    assert values(table) == expected(range(50))


def test_a_compaction_meanwhile_is_survived(
    table: Maintained, meanwhile: Meanwhile, stable: TableLayout
) -> None:
    fill(table, options=stable)
    table.newest.delete("id IN (3, 17)")
    meanwhile(lambda: compact_table(table.spark, table.spec, table.id))

    result = compute(table)

    assert values(table) == expected(set(range(40)) - {3, 17})
    assert (result.files, len(table.newest.get_fragments())) == (1, 1)
    table.newest.validate()


def test_rows_deleted_meanwhile_stay_deleted(
    table: Maintained, meanwhile: Meanwhile, stable: TableLayout
) -> None:
    fill(table, options=stable)
    table.newest.delete("id = 5")
    meanwhile(lambda: table.newest.delete("id IN (6, 15) OR id >= 30"))

    compute(table)

    assert values(table) == expected(set(range(30)) - {5, 6, 15})
    table.newest.validate()


def test_rows_that_a_restore_brings_back_meanwhile_are_computed(
    table: Maintained, meanwhile: Meanwhile, stable: TableLayout
) -> None:
    fill(table, options=stable)
    compute(table, where="id < 0")  # only adds the column
    whole = table.newest.version
    table.newest.delete("id IN (3, 17)")
    meanwhile(lambda: restore_version(table.spec, table.id, whole))

    result = compute(table)

    assert values(table) == expected(range(40))
    assert (result.computed, compute(table).outcome) == (40, "unchanged")
    table.newest.validate()


def test_values_that_a_restore_undoes_meanwhile_are_computed_again(
    table: Maintained, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(table)
    compute(table, where="id < 0")
    before, genuine, commits = table.newest.version, ColumnRun.commit, count()

    def commit(run: ColumnRun, files: Any) -> bool:
        if next(commits) == 2:
            restore_version(table.spec, table.id, before)
        return genuine(run, files)

    monkeypatch.setattr(ColumnRun, "commit", commit)

    result = compute(table, where="TRUE", commit_every=1, max_tasks=1)

    assert values(table) == expected(range(40))
    assert (result.computed, next(commits)) == (40, 6)


def test_a_restore_meanwhile_that_undoes_the_column_is_a_conflict(
    stored: Maintained, meanwhile: Meanwhile
) -> None:
    fill(stored)
    before = stored.newest.version
    meanwhile(lambda: restore_version(stored.spec, stored.id, before))

    with pytest.raises(ConcurrentModificationError, match="changed column 'n'"):
        compute(stored)
    assert "n" not in stored.newest.schema.names


def test_rows_upserted_meanwhile_get_no_value_of_earlier_rows(
    table: Maintained, meanwhile: Meanwhile, stable: TableLayout
) -> None:
    fill(table, options=stable)
    changed = rows(table.spark, 8, 12).selectExpr("id", "'changed' AS word", NULL)

    def upsert() -> None:
        write_table(changed, table.spec, table.id, mode="upsert", on=["id"])

    meanwhile(upsert)
    lengths = {"column": "n", "columns": ["word"], "dtype": "int64"}

    compute(table, lambda batch: pc.cast(pc.utf8_length(batch["word"]), pa.int64()), **lengths)

    assert [values(table)[number] for number in (7, 8, 11, 12)] == [6, None, None, 7]
    compute(table, lambda batch: pc.cast(pc.utf8_length(batch["word"]), pa.int64()), **lengths)
    assert [values(table)[number] for number in (7, 8, 11, 12)] == [6, 7, 7, 7]


def test_another_run_of_the_same_column_wins_and_nothing_is_mixed(
    stored: Maintained, meanwhile: Meanwhile
) -> None:
    fill(stored)
    meanwhile(lambda: compute(stored, lambda batch: pc.multiply(batch["id"], 3)))

    result = compute(stored)

    assert (result.computed, result.files) == (0, 0)
    assert values(stored) == {number: 3 * number for number in range(40)}


def test_a_run_of_another_column_preempts_nothing(stored: Maintained, meanwhile: Meanwhile) -> None:
    fill(stored)
    meanwhile(lambda: compute(stored, lambda batch: pc.multiply(batch["id"], 3), column="m"))

    result = compute(stored)

    assert result.computed == 40
    assert values(stored) == expected(range(40))
    assert values(stored, "m") == {number: 3 * number for number in range(40)}


def test_a_change_of_an_input_column_meanwhile_is_taken_into_account(
    stored: Maintained, meanwhile: Meanwhile
) -> None:
    fill(stored)
    compute(stored, column="m")
    again = {"column": "m", "where": "TRUE"}
    meanwhile(lambda: compute(stored, lambda batch: pc.multiply(batch["id"], 100), **again))

    compute(stored, lambda batch: pc.add(batch["m"], 1), columns=["m"])

    assert values(stored) == {number: 100 * number + 1 for number in range(40)}


def test_a_column_that_gets_another_type_meanwhile_is_a_conflict(
    stored: Maintained, meanwhile: Meanwhile
) -> None:
    fill(stored)

    def drop_and_add() -> None:
        stored.newest.drop_columns(["n"])
        stored.newest.add_columns(pa.field("n", pa.string()))

    meanwhile(drop_and_add)

    with pytest.raises(ConcurrentModificationError, match="changed column 'n'"):
        compute(stored)
    assert set(values(stored).values()) == {None}


def test_a_run_gives_up_if_it_is_preempted_again_and_again(
    stored: Maintained, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(stored, 1)
    genuine = ColumnRun.commit

    def preempted(run: ColumnRun, files: list[object]) -> bool:
        stored.write(rows(stored.spark, 100, 101).selectExpr("*", NULL), mode="overwrite")
        return genuine(run, files)  # type: ignore[arg-type]

    monkeypatch.setattr("airflow_provider_lancens.spark.compute.compute_column._ROUNDS", 2)
    monkeypatch.setattr(ColumnRun, "commit", preempted)

    with pytest.raises(ConcurrentModificationError, match="other commits rewrote its fragments 2 times"):
        compute(stored)


def test_rows_of_an_append_can_be_replaced_with_their_values(stored: Maintained) -> None:
    fill(stored, 1)
    compute(stored)
    more = rows(stored.spark, 100, 110).selectExpr("*", NULL)
    stored.write(more, key="january")
    compute(stored)

    stored.write(more.where("id < 105"), key="january", on_existing_key="redo")

    assert values(stored) == expected(range(10)) | dict.fromkeys(range(100, 105))


def test_an_index_returns_no_old_value(stored: Maintained, stable: TableLayout) -> None:
    fill(stored, options=stable)
    compute(stored)
    build_index(stored.spark, stored.spec, stored.id, "n", "BTREE")
    compute(stored, lambda batch: pc.multiply(batch["id"], 1000), where="id < 15")

    def found(value: int) -> list[int]:
        return stored.newest.to_table(filter=f"n = {value}")["id"].to_pylist()

    asked = (10, 5000, 5, 14000, 38, 60)
    assert [found(value) for value in asked] == [[], [5], [], [14], [19], [30]]
    compact_table(stored.spark, stored.spec, stored.id)

    extended = build_index(stored.spark, stored.spec, stored.id, "n", "BTREE", if_exists="extend")

    assert extended.rows == 40
    assert [found(value) for value in asked] == [[], [5], [], [14], [19], [30]]


def test_an_index_is_extended_by_new_rows_alone(stored: Maintained) -> None:
    fill(stored)
    compute(stored)
    build_index(stored.spark, stored.spec, stored.id, "n", "BTREE", segments=1)
    before = {segment.uuid for index in stored.newest.describe_indices() for segment in index.segments}
    stored.write(rows(stored.spark, 40, 50).selectExpr("*", "2 * id AS n"))

    extended = build_index(stored.spark, stored.spec, stored.id, "n", "BTREE", if_exists="extend", segments=1)

    after = {segment.uuid for index in stored.newest.describe_indices() for segment in index.segments}
    assert (before < after, extended.rows, extended.segments) == (True, 50, 2)
