"""What makes each step of a table's maintenance due, by the metadata of real tables."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pytest
from lance_namespace.errors import TableIndexAlreadyExistsError

from airflow_provider_lancens.spark import MaintenanceResult
from airflow_provider_lancens.spark.maintenance import CompactionOptions, IndexSpec, Thresholds
from airflow_provider_lancens.spark.maintenance.compact import compact_table
from airflow_provider_lancens.spark.maintenance.maintain import maintain_table
from airflow_provider_lancens.spark.maintenance.maintenance_options import MaintenancePlan
from tests.integration.spark.maintenance.maintaining import maintained, no_spark, overwrite, write
from tests.support.maintained_tables import Maintained, on
from tests.unit.spark.maintenance.ages import age

NOW = timedelta(0)


def indices_of(did: MaintenanceResult) -> list[Any]:
    """Return the results of the indices."""
    return [step for name, step in did.steps.items() if name.startswith("index.")]


@on("stored")
def test_an_index_is_extended_by_what_it_lacks_and_rebuilt_when_it_has_many_segments(
    table: Maintained,
) -> None:
    plan: Any = {
        "indices": (IndexSpec("id", "BTREE"),),
        "segments": 1,
        "thresholds": Thresholds(99, max_unindexed_share=0.1),
    }
    write(table, 0, 100)
    built = maintained(table, **plan)
    found = []
    for first in (100, 200, 300):
        write(table, first, first + 100)
        [index] = indices_of(maintained(table, **plan))
        found.append((index.is_done, index.rows, index.segments))

    assert (indices_of(built)[0].segments, indices_of(built)[0].reason) == (1, "the index does not exist")
    assert found == [(True, 200, 2), (True, 300, 1), (True, 400, 2)]
    assert "ScalarIndexQuery" in table.newest.scanner(filter="id = 342").explain_plan()
    assert table.newest.to_table(filter="id = 342")["word"].to_pylist() == ["word 342"]


def test_an_index_that_loses_rows_in_a_compaction_covers_them_again(stored: Maintained) -> None:
    plan: Any = {"indices": (IndexSpec("id", "ZONEMAP"),)}
    write(stored, 0, 1000)
    maintained(stored, **plan)
    write(stored, 0, 100, 10)

    did = maintained(stored, **plan)

    assert did.done_steps == ["compact", "index.id_idx"]
    assert (indices_of(did)[0].rows, indices_of(did)[0].segments) == (1100, 2)
    assert stored.newest.to_table(filter="id = 42").num_rows == 2


@pytest.mark.long
def test_a_vector_index_is_extended_only_above_the_threshold(stored: Maintained) -> None:
    plan: Any = {"indices": (IndexSpec("v", "IVF_FLAT", options={"num_partitions": 2}),)}
    write(stored, 0, 100)
    first = indices_of(maintained(stored, **plan))[0]
    write(stored, 100, 105)
    few = indices_of(maintained(stored, **plan))[0]
    write(stored, 105, 120)
    many = indices_of(maintained(stored, **plan))[0]

    assert [(one.is_done, one.rows) for one in (first, few, many)] == [(True, 100), (False, 100), (True, 120)]


def test_an_index_of_another_type_is_rebuilt_as_asked(stored: Maintained) -> None:
    write(stored, 0, 10, 1)
    maintained(stored, indices=(IndexSpec("id", "BTREE"),))

    did = maintained(stored, indices=(IndexSpec("id", "BITMAP"),))

    assert did.done_steps == ["index.id_idx"]
    assert did.steps["index.id_idx"].reason == "the index is BTree, not BITMAP"
    assert [found.index_type for found in stored.newest.describe_indices()] == ["Bitmap"]


def test_an_index_of_that_name_on_another_column_is_an_error(stored: Maintained) -> None:
    write(stored, 0, 10)
    maintained(stored, indices=(IndexSpec("id", "BTREE", name="mine"),))

    with pytest.raises(TableIndexAlreadyExistsError, match=r"^index 'mine' failed: .*BTree on id; if_exists"):
        maintained(stored, indices=(IndexSpec("word", "BTREE", name="mine"),))


def test_fragments_of_one_segment_can_still_be_merged(stored: Maintained) -> None:
    write(stored, 0, 60, 6)
    unlimited = Thresholds()
    maintained(
        stored,
        indices=(IndexSpec("id", "BTREE"),),
        segments=2,
        thresholds=Thresholds(min_small_fragments=99),
    )

    did = maintained(stored, thresholds=unlimited)

    compacted: Any = did.steps["compact"]
    assert (compacted.fragments_removed, compacted.fragments_added) == (6, 2)


def test_deleted_rows_alone_make_a_compaction_pay(stored: Maintained) -> None:
    write(stored, 0, 100)
    stored.newest.delete("id < 10")
    few = compact_table(no_spark, stored.spec, stored.id, thresholds=Thresholds(max_deleted_share=0.1))
    stored.newest.delete("id < 11")

    many = maintained(stored).steps["compact"]

    assert (few.is_done, many.is_done) == (False, True)
    assert few.reason.endswith("10.0% of the rows are deleted (max_deleted_share=0.1)")
    assert stored.newest.get_fragments()[0].physical_rows == 89


@on("hive")
def test_old_versions_are_removed_once_they_are_many(table: Maintained) -> None:
    plan: Any = {"older_than": NOW, "thresholds": Thresholds(99, min_removable_versions=3)}
    overwrite(table, 4)
    table.newest.tags.create("pinned", 2)

    few = maintain_table(no_spark, table.spec, table.id, MaintenancePlan(**plan)).steps["expire"]
    write(table, 4, 14, mode="overwrite")
    many = maintain_table(no_spark, table.spec, table.id, MaintenancePlan(**plan)).steps["expire"]
    again = maintain_table(no_spark, table.spec, table.id, MaintenancePlan(**plan)).steps["expire"]

    assert (few.outcome, few.versions) == ("unchanged", 0)
    assert few.reason.startswith("2 versions can be removed (min_removable_versions=3), the oldest for 0:00")
    assert (many.outcome, many.versions, many.kept_by_tag) == ("done", 3, 1)
    assert (again.outcome, again.reason) == ("unchanged", "no version can be removed")
    assert sorted(one["version"] for one in table.by_path.version_refs()) == [2, 5]


def test_one_version_that_is_overdue_is_removed(stored: Maintained) -> None:
    plan = MaintenancePlan(
        older_than=NOW, thresholds=Thresholds(min_removable_versions=9, max_removal_delay=timedelta(days=7))
    )
    overwrite(stored, 3)
    before = maintain_table(no_spark, stored.spec, stored.id, plan).steps["expire"]
    for version in (1, 2):  # the second has replaced the first
        [manifest] = Path(stored.by_path.uri, "_versions").glob(f"{2**64 - 1 - version}.manifest")
        age(manifest, by=timedelta(days=8))

    after = maintain_table(no_spark, stored.spec, stored.id, plan).steps["expire"]

    assert (before.outcome, after.outcome, after.versions) == ("unchanged", "done", 2)
    assert "the oldest for 8 days, 0:00:" in after.reason


def test_orphans_are_removed_where_asked_for_and_a_clean_up_is_due(stored: Maintained) -> None:
    overwrite(stored, 2)
    orphan = Path(stored.by_path.uri, "data", "of_a_failed_write.lance")
    orphan.write_bytes(b"0123456789")
    age(orphan, by=timedelta(hours=1))
    cleaning: Any = {"older_than": NOW, "thresholds": Thresholds()}

    unasked = maintained(stored, **cleaning).steps.get("orphans")
    write(stored, 9, 10, mode="overwrite")
    did: Any = maintained(stored, **cleaning, orphans_older_than=timedelta(minutes=30))
    asked = did.steps["orphans"]

    assert (unasked, asked.files, asked.bytes, orphan.exists()) == (None, 1, 10, False)


def test_a_branch_keeps_the_version_that_it_begins_at(stored: Maintained) -> None:
    overwrite(stored, 3)
    lance.dataset(stored.by_path.uri, version=1).create_branch("mine")
    plan = MaintenancePlan(older_than=NOW, thresholds=Thresholds())

    first_run = maintain_table(no_spark, stored.spec, stored.id, plan).steps["expire"]
    again = maintain_table(no_spark, stored.spec, stored.id, plan).steps["expire"]

    assert (first_run.versions, again.outcome) == (1, "unchanged")


def test_a_target_of_fewer_rows_counts_fewer_fragments_as_small(stored: Maintained) -> None:
    write(stored, 0, 60, 6)

    did = maintain_table(
        no_spark,
        stored.spec,
        stored.id,
        MaintenancePlan(compaction=CompactionOptions(target_rows_per_fragment=10), thresholds=Thresholds(1)),
    )

    assert did.steps["compact"].reason.startswith("0 of 6 fragments are small")
