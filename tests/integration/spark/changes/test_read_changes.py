"""Changes between two versions, of tables with stable row ids and without."""

from datetime import timedelta
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError, TableColumnNotFoundError, TableVersionNotFoundError

from airflow_provider_lancens.spark import TableLayout
from airflow_provider_lancens.spark.commit.delete import delete_rows
from airflow_provider_lancens.spark.compute.compute_column import compute_column
from airflow_provider_lancens.spark.maintenance.compact import compact_table
from airflow_provider_lancens.spark.schema import alter_columns
from tests.integration.spark.row_ids import OPTIONS_OF_BOTH_KINDS
from tests.support.changed_tables import Changes, start, upsert
from tests.support.maintained_tables import Maintained, by_path_alone, on, rows
from tests.support.reads import read_changes
from tests.support.results import number_of
from tests.support.writes import write_table


def clean_up(table: Maintained) -> None:
    """Remove all versions but the newest and those with tags, as another client does."""
    table.by_path.cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)


@on("hive")
def test_rows_of_appends_are_inserts_of_their_versions(table: Maintained, changes: Changes) -> None:
    start(table)
    table.write(rows(table.spark, 6, 7))
    table.write(rows(table.spark, 7, 8))

    assert changes(1, 3) == [(6, "word 6", "insert", 2), (7, "word 7", "insert", 3)]
    assert changes(2, 3) == [(7, "word 7", "insert", 3)]
    assert changes(3, 3) == []


@on("on_glue")
def test_upserts_and_deletes_are_reported_through_a_compaction(table: Maintained, changes: Changes) -> None:
    start(table)
    upsert(table, {1: "one", 9: "nine"})
    delete_rows(table.spec, table.id, "id = 4")
    compact_table(table.spark, table.spec, table.id)

    assert changes(1, table.newest.version) == [
        (1, "one", "insert", 2),
        (1, "word 1", "delete", None),
        (4, "word 4", "delete", None),
        (9, "nine", "insert", 2),
    ]


@by_path_alone
def test_updates_by_another_client_have_values_before_and_after(table: Maintained, changes: Changes) -> None:
    start(table)
    new = pa.table({"id": [2, 7], "word": ["two", "seven"]})
    merge = lance.dataset(table.described.location).merge_insert("id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute(new)

    assert changes(1, 2) == [
        (2, "two", "update_postimage", 2),
        (2, "word 2", "update_preimage", 2),
        (7, "seven", "insert", 2),
    ]
    assert changes(1, 2, columns=["id"], filter="word = 'two'") == [(2, "update_postimage", 2)]


@by_path_alone
def test_a_restore_is_reported_as_the_reverse_changes(table: Maintained, changes: Changes) -> None:
    start(table)
    upsert(table, {1: "one"})
    delete_rows(table.spec, table.id, "id = 3")
    table.by_path.checkout_version(1).restore()

    assert changes(1, 4) == []
    assert changes(3, 4) == [
        (1, "one", "delete", None),
        (1, "word 1", "insert", None),
        (3, "word 3", "insert", None),
    ]


@on("stored")
def test_an_overwrite_deletes_all_rows_and_inserts_others(table: Maintained, changes: Changes) -> None:
    start(table)
    table.write(rows(table.spark, 0, 1), mode="overwrite")

    found = changes(1, 2, columns=["id"])
    assert found == [(0, "delete", None), (0, "insert", 2), *((n, "delete", None) for n in range(1, 6))]


@on("stored")
@pytest.mark.parametrize("compacted", [False, True])
def test_a_computed_column_updates_all_rows_that_have_it(
    table: Maintained, changes: Changes, compacted: bool
) -> None:
    start(table)
    computed = compute_column(
        table.spark, table.spec, table.id, column="size", function=_length, columns=["word"], dtype="int"
    )
    if compacted:
        compact_table(table.spark, table.spec, table.id)
    version = table.newest.version

    found = changes(1, version)
    images = ((None, "update_preimage"), (6, "update_postimage"))
    # Version 2 added the column; both fragments are committed together if they are ready at one time.
    versions = range(3, computed.version + 1)
    assert {row[2:] for row in found} == {(*image, made_by) for image in images for made_by in versions}
    assert len(found) == 12
    if not compacted:  # which hides whose files have changed
        assert changes(1, version, columns=["id", "word"]) == []


@by_path_alone
def test_columns_that_another_client_rewrote_update_all_rows_of_their_fragments(
    table: Maintained, changes: Changes
) -> None:
    start(table)
    dataset = table.by_path
    fragment = dataset.get_fragments()[0]
    words = pa.table({"_rowid": pa.array(range(3), pa.uint64()), "word": ["a", "b", "c"]})
    updated, fields = fragment.update_columns(words, left_on="_rowid", right_on="_rowid")
    operation = lance.LanceOperation.Update(
        updated_fragments=[updated], fields_modified=fields, update_mode="rewrite_columns"
    )
    lance.LanceDataset.commit(dataset, operation, read_version=1)

    images = [
        ((n, f"word {n}", "update_preimage", None), (n, word, "update_postimage", None))
        for n, word in enumerate("abc")
    ]
    assert changes(1, 2) == sorted((image for both in images for image in both), key=repr)


@on("stored")
def test_rows_are_read_under_the_names_and_types_of_the_newer_version(
    table: Maintained, changes: Changes
) -> None:
    start(table)
    alter_columns(table.spec, table.id, rename={"word": "text"})
    delete_rows(table.spec, table.id, "id = 0")

    frame = read_changes(table.spark, table.spec, table.id, after_version=1, version=3)
    assert frame.columns == ["id", "text", "_change_type", "_commit_version"]
    assert changes(1, 3) == [(0, "word 0", "delete", None)]


@on("hive")
def test_appends_are_reported_without_stable_row_ids(table: Maintained, changes: Changes) -> None:
    start(table, None)
    table.write(rows(table.spark, 6, 8))
    compact_table(table.spark, table.spec, table.id)
    table.write(rows(table.spark, 8, 9))
    last = table.newest.version

    assert changes(1, last, columns=["id"]) == [(6, "insert", 2), (7, "insert", 2), (8, "insert", last)]
    assert changes(1, last, columns=["id"], filter="id > 6") == [(7, "insert", 2), (8, "insert", last)]

    delete_rows(table.spec, table.id, "id = 0")
    with pytest.raises(InvalidInputError, match=r"isn't an append .* layout={'stable_row_ids': True}"):
        changes(1, last + 1)
    everything = changes(1, last + 1, columns=["id"], if_unavailable="read_all")
    assert everything == [(number, "snapshot", last + 1) for number in range(1, 9)]


@on("stored")
def test_versions_in_between_are_needed_only_without_stable_row_ids(
    table: Maintained, changes: Changes
) -> None:
    start(table)
    upsert(table, {0: "zero"})
    table.write(rows(table.spark, 6, 7))
    table.by_path.tags.create("bookmark", 1)
    clean_up(table)

    assert len(changes(1, 3)) == 3
    table.by_path.tags.delete("bookmark")
    clean_up(table)
    with pytest.raises(TableVersionNotFoundError, match="after_version=1 was cleaned up"):
        changes(1, 3)
    assert {row[-2] for row in changes(1, 3, if_unavailable="read_all")} == {"snapshot"}


@on("hive")
@pytest.mark.parametrize("options", OPTIONS_OF_BOTH_KINDS)
def test_the_rows_of_a_staged_version_are_read_alone(
    table: Maintained, changes: Changes, options: TableLayout
) -> None:
    start(table, options)
    staged = number_of(write_table(rows(table.spark, 6, 8), table.spec, table.id, key="day", stage=True))

    assert changes(1, staged, columns=["id"]) == [(6, "insert", None), (7, "insert", None)]
    assert len(changes(None, staged)) == 8


@on("stored")
def test_without_an_older_version_all_rows_are_inserts(table: Maintained, changes: Changes) -> None:
    start(table)
    assert changes(0, 1, columns=["id"]) == changes(None, 1, columns=["id"])
    assert changes(None, 1, columns=["id"]) == [(number, "insert", 1) for number in range(6)]


@on("stored")
def test_wrong_arguments_are_refused(table: Maintained, changes: Changes) -> None:
    start(table)
    table.write(rows(table.spark, 6, 7))

    with pytest.raises(InvalidInputError, match="after_version=2 is newer than version=1"):
        changes(2, 1)
    for after, version in [(-1, 2), ("1", 2), (True, 2), (1, "2"), (1, -2), (1, True)]:
        with pytest.raises(InvalidInputError, match=r"version=.* isn't a version; expected a whole number"):
            changes(after, version)  # type: ignore[arg-type]
    for columns in (["id", "id"], "id"):
        with pytest.raises(InvalidInputError, match="columns: expected a list of names, each once"):
            changes(1, 2, columns=columns)
    with pytest.raises(InvalidInputError, match="filter: expected a condition as text"):
        changes(1, 2, filter=5)
    with pytest.raises(TableVersionNotFoundError, match="has no version 7"):
        changes(1, 7)
    with pytest.raises(TableColumnNotFoundError, match="nope"):
        changes(1, 2, columns=["nope"])
    with pytest.raises(InvalidInputError, match="filter: no column 'nope'"):
        changes(1, 2, filter="nope = 1")


def _length(batch: pa.RecordBatch) -> Any:
    import pyarrow.compute as pc

    return pc.utf8_length(batch["word"])
