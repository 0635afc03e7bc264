"""Staged versions that are published after others committed."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidTableStateError

from airflow_provider_lancens.spark import TableLayout, WriteResult
from airflow_provider_lancens.spark.commit.delete import delete_rows
from airflow_provider_lancens.spark.maintenance.compact import compact_table
from airflow_provider_lancens.spark.maintenance.restore import restore_version
from tests.integration.spark.publish.staging import publish, stage, words
from tests.integration.spark.row_ids import BOTH_KINDS
from tests.support.maintained_tables import Maintained, by_path_alone, on, rows
from tests.support.results import number_of
from tests.support.writes import write_table

pytestmark = pytest.mark.thorough


@on("hive")
def test_rows_of_others_are_kept_when_it_is_published(table: Maintained) -> None:
    table.write(rows(table.spark, 0, 3))
    staged = stage(table, 3, 5)
    table.write(rows(table.spark, 5, 8))
    compact_table(table.spark, table.spec, table.id)

    publish(table, staged)

    assert table.ids() == list(range(8))


@on("hive")
@pytest.mark.parametrize("stable", BOTH_KINDS)
def test_an_upsert_is_published_onto_later_rows(table: Maintained, stable: bool) -> None:
    options = TableLayout(stable_row_ids=stable)
    table.write(rows(table.spark, 0, 3), options=options)
    changed = table.spark.range(2, 4).selectExpr("id", "'changed' AS word")
    staged = write_table(changed, table.spec, table.id, mode="upsert", on=["id"], stage=True)
    table.write(rows(table.spark, 8, 9))

    published = publish(table, staged)

    assert staged.changes == published.changes == {"inserted": 1, "updated": 1, "deleted": 0}
    assert words(table) == {0: "word 0", 1: "word 1", 2: "changed", 3: "changed", 8: "word 8"}
    assert words(table, number_of(staged)) == {0: "word 0", 1: "word 1", 2: "changed", 3: "changed"}


def stage_changed(table: Maintained, ids: range, how: dict[str, Any]) -> WriteResult:
    """Stage an upsert of changed rows with these ids."""
    changed = table.spark.range(ids.start, ids.stop).selectExpr("id", "'changed' AS word", "2 AS n")
    return write_table(changed, table.spec, table.id, mode="upsert", on=["id"], stage=True, **how)


COMPARING: list[dict[str, Any]] = [
    {"update_columns": ["word"]},
    {"sequence_by": "id"},
    {"when_matched": "keep"},
]


@on("hive")
@pytest.mark.parametrize("how", COMPARING, ids=["update_columns", "sequence_by", "keep"])
def test_an_upsert_that_compared_rows_brings_no_deleted_row_back(
    table: Maintained, how: dict[str, Any]
) -> None:
    table.write(rows(table.spark, 0, 3).selectExpr("*", "1 AS n"))
    staged = stage_changed(table, range(1, 4), how)
    delete_rows(table.spec, table.id, "id = 1")

    if staged.changes["updated"]:
        with pytest.raises(InvalidTableStateError, match="can't be published any more; discard it"):
            publish(table, staged)
        assert table.ids() == [0, 2]
    else:
        publish(table, staged)
        assert table.ids() == [0, 2, 3]


@on("hive")
@pytest.mark.parametrize("how", COMPARING, ids=["update_columns", "sequence_by", "keep"])
def test_an_upsert_that_compared_rows_is_not_published_onto_one_that_a_restore_brings_back(
    table: Maintained, how: dict[str, Any]
) -> None:
    table.write(rows(table.spark, 0, 3).selectExpr("*", "1 AS n"))
    delete_rows(table.spec, table.id, "id = 1")
    staged = stage_changed(table, range(1, 2), how)
    restore_version(table.spec, table.id, 1)

    with pytest.raises(InvalidTableStateError, match="can't be published any more; discard it"):
        publish(table, staged)
    assert words(table) == {number: f"word {number}" for number in range(3)}


@on("hive")
def test_an_overwrite_is_published_only_if_nothing_was_written_since(table: Maintained) -> None:
    table.write(rows(table.spark, 0, 3))
    refused = stage(table, 10, 12, mode="overwrite")
    table.write(rows(table.spark, 5, 6))

    with pytest.raises(InvalidTableStateError, match="can't be published any more; discard it, and write"):
        publish(table, refused)
    assert table.ids() == [0, 1, 2, 5]
    publish(table, stage(table, 10, 12, mode="overwrite"))

    assert table.ids() == [10, 11]


@on("hive")
def test_new_rows_are_published_after_an_overwrite_and_again_after_a_restore(table: Maintained) -> None:
    table.write(rows(table.spark, 0, 3))
    staged = stage(table, 3, 5)
    table.write(rows(table.spark, 8, 9), mode="overwrite")
    assert publish(table, staged).version == 3
    assert table.ids() == [3, 4, 8]
    restore_version(table.spec, table.id, 1)
    assert table.ids() == [0, 1, 2]

    again = publish(table, staged)

    assert (again.version, again.is_done) == (5, True)
    assert table.ids() == [0, 1, 2, 3, 4]


@by_path_alone
def test_new_rows_are_published_whatever_others_did_to_other_columns(table: Maintained) -> None:
    table.write(rows(table.spark, 0, 3))
    staged = stage(table, 3, 5)
    table.by_path.add_columns({"note": "concat(word, '!')"})
    delete_rows(table.spec, table.id, "id = 0")
    table.by_path.cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)

    publish(table, staged)

    assert words(table) == {number: f"word {number}" for number in range(1, 5)}


def _overwrite(table: Maintained) -> None:
    other = pa.table({"word": ["a"], "id": pa.array([9], pa.int64())})
    lance.write_dataset(other, table.by_path.uri, mode="overwrite")
    table.by_path.cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)


def _restore(table: Maintained) -> None:
    restore_version(table.spec, table.id, 1)
    table.by_path.add_columns({"name": "'b'"})


def _drop_and_compact(table: Maintained) -> None:
    table.write(rows(table.spark, 6, 7))
    table.by_path.drop_columns(["word"])
    table.by_path.optimize.compact_files()
    table.by_path.add_columns({"name": "'b'"})


@by_path_alone
@pytest.mark.parametrize("others", [_overwrite, _restore, _drop_and_compact])
def test_new_rows_are_not_published_into_columns_that_have_the_ids_of_theirs(
    table: Maintained, others: Callable[[Maintained], None]
) -> None:
    table.write(rows(table.spark, 0, 3).select("id"))
    table.by_path.add_columns({"word": "'a'"})
    staged = stage(table, 3, 5)
    others(table)
    before = table.by_path.to_table()

    with pytest.raises(InvalidTableStateError, match="can't be published any more; discard it"):
        publish(table, staged)
    assert table.by_path.to_table() == before


@on("stored")
def test_a_part_is_replaced_when_it_is_published(table: Maintained) -> None:
    table.write(rows(table.spark, 0, 5))
    staged = stage(table, 3, 6, mode="overwrite", where="id >= 3")
    table.write(rows(table.spark, -2, 0))

    publish(table, staged)

    assert table.ids() == [-2, -1, 0, 1, 2, 3, 4, 5]
