"""Changes of rows between versions whose columns differ."""

from datetime import timedelta

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError, TableVersionNotFoundError

from airflow_provider_lancens.spark import TableLayout
from airflow_provider_lancens.spark.changes.changed_values import changed_values
from airflow_provider_lancens.spark.commit.delete import delete_rows
from tests.support.changed_tables import Changes
from tests.support.maintained_tables import Maintained, by_path_alone, rows
from tests.support.reads import read_changes

pytestmark = pytest.mark.thorough

STABLE = TableLayout(stable_row_ids=True)


@pytest.fixture
def dataset(table: Maintained) -> lance.LanceDataset:
    """Version 1: the rows 0 to 2 in one file, with a number each."""
    frame = rows(table.spark, 0, 3).selectExpr("id", "word", "cast(id * 10 as int) as number")
    table.write(frame, options=STABLE)
    return table.by_path


@by_path_alone
def test_rows_before_a_cast_have_their_values_in_the_new_type(
    table: Maintained, dataset: lance.LanceDataset, changes: Changes
) -> None:
    dataset.alter_columns({"path": "number", "data_type": pa.int64()})
    delete_rows(table.spec, table.id, "id = 2")

    found = changes(1, 3, columns=["id", "number"])
    assert [row[:3] for row in found if row[0] == 2] == [(2, 20, "delete")]
    assert changed_values(table.spec, table.id, "number", after_version=1, version=3) == ["0", "10", "20"]


@by_path_alone
def test_columns_keep_their_values_through_an_overwrite_with_another_order(
    table: Maintained, dataset: lance.LanceDataset, changes: Changes
) -> None:
    lance.write_dataset(pa.table({"number": [7], "id": [0]}), dataset.uri, mode="overwrite")

    found = changes(1, 2, columns=["id", "number"])
    assert [row[:3] for row in found] == [
        (0, 0, "delete"),
        (0, 7, "insert"),
        (1, 10, "delete"),
        (2, 20, "delete"),
    ]


@by_path_alone
def test_a_column_that_an_overwrite_gave_another_kind_of_type_is_refused_unless_left_out(
    table: Maintained, dataset: lance.LanceDataset, changes: Changes
) -> None:
    lance.write_dataset(pa.table({"id": ["0"], "number": [7]}), dataset.uri, mode="overwrite")

    with pytest.raises(InvalidInputError, match=r"'id' was int64, and is string.*leave the column out"):
        changes(1, 2)
    numbers = sorted(row[:2] for row in changes(1, 2, columns=["number"]))
    assert numbers == [(0, "delete"), (7, "insert"), (10, "delete"), (20, "delete")]
    assert [row[:3] for row in changes(1, 2, if_unavailable="read_all")] == [("0", 7, "snapshot")]


@by_path_alone
def test_a_column_that_was_dropped_and_added_with_another_kind_of_type_is_a_new_one_also_beside_an_overwrite(
    table: Maintained, dataset: lance.LanceDataset, changes: Changes
) -> None:
    dataset.drop_columns(["number"])
    table.by_path.add_columns({"number": "cast(id as string)"})
    lance.write_dataset(pa.table({"id": [7], "number": ["seven"]}), dataset.uri, mode="overwrite")

    found = changes(1, table.by_path.version, columns=["id", "number"])
    assert [row[:3] for row in found if row[2] == "insert"] == [(7, "seven", "insert")]
    assert {row[1] for row in found if row[2] == "delete"} == {None}


@by_path_alone
def test_a_column_has_no_values_of_one_that_a_restore_removed(
    table: Maintained, dataset: lance.LanceDataset, changes: Changes
) -> None:
    dataset.add_columns({"secret": "'hidden'"})
    lance.dataset(dataset.uri, version=1).restore()
    table.by_path.add_columns({"open": "'shown'"})

    found = changes(2, 4, columns=["id", "open"])
    assert [row[1] for row in found if row[2] == "update_preimage"] == [None] * 3


@by_path_alone
def test_a_filter_is_refused_on_columns_that_had_other_names(
    table: Maintained, dataset: lance.LanceDataset, changes: Changes
) -> None:
    for name, new in [("number", "kept"), ("word", "number"), ("kept", "word")]:
        table.by_path.alter_columns({"path": name, "name": new})
    delete_rows(table.spec, table.id, "id = 2")

    assert [row[:2] for row in changes(1, 5, columns=["id", "word"], filter="id = 2")] == [(2, 20)]
    for condition in ("word = 20", "word IS NOT NULL AND id = 2"):
        with pytest.raises(InvalidInputError, match=r"replaced between versions 1 and 5.*DataFrame"):
            changes(1, 5, columns=["id"], filter=condition)
    assert changes(1, 5, columns=["id"], filter="word = 20", if_unavailable="read_all") == []


@by_path_alone
def test_a_filter_is_refused_on_nested_fields_that_had_other_names(
    table: Maintained, changes: Changes
) -> None:
    columns = "id, struct(id * 10 AS x, 5L AS y) AS a, cast(id AS int) AS n"
    frame = table.spark.sql(f"SELECT {columns} FROM range(3)")
    table.write(frame, options=STABLE)
    table.by_path.alter_columns({"path": "n", "data_type": pa.int64()})
    delete_rows(table.spec, table.id, "id = 2")
    assert [row[0] for row in changes(2, 3, columns=["id"], filter="a.x = 20")] == [2]
    assert 2 in [row[0] for row in changes(1, 3, columns=["id"], filter="n = 2 AND a.x = 20")]

    for name, new in [("a.x", "k"), ("a.y", "x"), ("a.k", "y")]:
        table.by_path.alter_columns({"path": name, "name": new})
    with pytest.raises(InvalidInputError, match=r"filter 'a\.y = 20': a column that it uses"):
        changes(1, 6, columns=["id"], filter="a.y = 20")


@by_path_alone
def test_a_new_column_has_no_values_of_a_renamed_one(
    table: Maintained, dataset: lance.LanceDataset, changes: Changes
) -> None:
    dataset.alter_columns({"path": "number", "name": "amount"})
    table.by_path.add_columns({"number": "cast(1 as int)"})
    delete_rows(table.spec, table.id, "id = 2")

    found = changes(1, 4, columns=["id", "amount", "number"])
    assert [row[:4] for row in found if row[0] == 2] == [(2, 20, None, "delete")]


@by_path_alone
def test_columns_named_as_labels_are_refused(table: Maintained) -> None:
    frame = rows(table.spark, 0, 3).selectExpr("id", "word as _change_type")
    table.write(frame, options=STABLE)

    with pytest.raises(InvalidInputError, match=r"'_change_type'.*leave them out with columns="):
        read_changes(table.spark, table.spec, table.id, after_version=None, version=1)


@by_path_alone
def test_a_staged_version_has_no_changes_since_a_version_that_it_does_not_follow(table: Maintained) -> None:
    table.write(rows(table.spark, 0, 3), options=STABLE)
    staged = table.write(rows(table.spark, 3, 4), stage=True, key="staged")
    table.write(rows(table.spark, 4, 5))

    with pytest.raises(
        InvalidInputError, match="was staged onto version 1; expected that version or an older"
    ):
        read_changes(table.spark, table.spec, table.id, after_version=2, version=staged)


@by_path_alone
def test_a_renamed_column_keeps_its_values_through_a_compaction_and_a_new_column(
    table: Maintained, dataset: lance.LanceDataset, changes: Changes
) -> None:
    table.write(rows(table.spark, 3, 6).selectExpr("id", "word", "cast(id * 10 as int) as number"))
    table.by_path.alter_columns({"path": "number", "name": "amount"})
    table.by_path.optimize.compact_files()
    table.by_path.add_columns(pa.schema([("number", pa.int32())]))
    table.by_path.update({"amount": "amount + 1"}, where="id = 4")

    found = changes(2, table.by_path.version, columns=["id", "amount", "number"])
    assert [row[:4] for row in found] == [
        (4, 40, None, "update_preimage"),
        (4, 41, None, "update_postimage"),
    ]


@by_path_alone
def test_columns_that_cannot_be_identified_after_a_clean_up_are_refused_unless_left_out(
    table: Maintained, dataset: lance.LanceDataset, changes: Changes
) -> None:
    dataset.tags.create("bookmark", 1)
    for name, new in [("number", "kept"), ("word", "number"), ("kept", "word")]:
        table.by_path.alter_columns({"path": name, "name": new})
    table.by_path.delete("id = 2")
    table.by_path.optimize.compact_files()
    table.by_path.cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)
    newest = table.by_path.version

    with pytest.raises(TableVersionNotFoundError, match=r"columns of version 1 were \['number', 'word'\]"):
        changes(1, newest)
    assert [row[:2] for row in changes(1, newest, columns=["id"])] == [(2, "delete")]
    assert {row[3] for row in changes(1, newest, if_unavailable="read_all")} == {"snapshot"}
