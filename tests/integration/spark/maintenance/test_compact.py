import pytest
from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidTableStateError,
    ServiceUnavailableError,
    TableVersionNotFoundError,
)
from pyspark.sql import SparkSession

from airflow_provider_lancens.namespace.managed.publication import Publication
from airflow_provider_lancens.spark import TableLayout
from airflow_provider_lancens.spark.maintenance import CompactionOptions, compact
from airflow_provider_lancens.spark.maintenance.compact import compact_table
from tests.support.maintained_tables import Maintained, Meanwhile, on, rows

pytestmark = pytest.mark.thorough


@on("stored")
def test_small_fragments_are_merged_and_rows_unchanged(table: Maintained) -> None:
    table.write_small_files(6)

    result = compact_table(table.spark, table.spec, table.id)

    assert (result.previous_version, result.is_done, result.tasks) == (1, True, 1)
    assert (result.fragments_removed, result.fragments_added) == (6, 1)
    assert len(table.newest.get_fragments()) == 1
    assert table.newest.version == table.by_path.version == result.version
    assert table.ids() == table.ids(1) == list(range(60))


def test_an_unneeded_compaction_commits_nothing(hive: Maintained) -> None:
    hive.write_small_files(3)
    first = compact_table(hive.spark, hive.spec, hive.id)

    again = compact_table(hive.spark, hive.spec, hive.id)

    assert (again.version, again.previous_version, again.is_done) == (first.version, first.version, False)
    assert (again.tasks, again.fragments_removed, again.files_added) == (0, 0, 0)
    assert hive.newest.version == first.version


@on("on_glue")
def test_a_concurrent_append_is_kept(table: Maintained, meanwhile: Meanwhile) -> None:
    table.write_small_files(6)
    meanwhile(compact, lambda: table.write(rows(table.spark, 100, 110)))

    result = compact_table(table.spark, table.spec, table.id)

    assert table.newest.version == table.by_path.version == result.version
    assert table.ids() == [*range(60), *range(100, 110)]
    assert len(table.newest.get_fragments()) == 2


def test_a_concurrent_delete_from_the_same_fragments_is_not_undone(
    hive: Maintained, meanwhile: Meanwhile
) -> None:
    hive.write_small_files(6)
    meanwhile(compact, lambda: hive.newest.delete("id < 5"))

    with pytest.raises(ConcurrentModificationError, match="nothing was committed, run it again"):
        compact_table(hive.spark, hive.spec, hive.id)

    assert hive.ids() == list(range(5, 60))
    assert compact_table(hive.spark, hive.spec, hive.id).fragments_removed == 6
    assert hive.ids() == list(range(5, 60))


@pytest.mark.parametrize("other", ["overwrite", "restore"])
def test_a_compaction_beside_an_overwrite_or_a_restore_is_a_conflict(
    hive: Maintained, meanwhile: Meanwhile, other: str
) -> None:
    def commit() -> None:
        if other == "overwrite":
            hive.write(rows(hive.spark, 100, 110), mode="overwrite")
        else:
            hive.newest.checkout_version(1).restore()

    hive.write_small_files(6)
    hive.newest.delete("id < 5")
    meanwhile(compact, commit)

    with pytest.raises(ConcurrentModificationError, match="nothing was committed, run it again"):
        compact_table(hive.spark, hive.spec, hive.id)

    assert hive.ids() == list(range(100, 110) if other == "overwrite" else range(60))


def test_one_of_two_concurrent_compactions_is_refused(hive: Maintained, meanwhile: Meanwhile) -> None:
    hive.write_small_files(6)
    meanwhile(compact, lambda: hive.newest.optimize.compact_files())

    with pytest.raises(ConcurrentModificationError):
        compact_table(hive.spark, hive.spec, hive.id)

    assert hive.ids() == list(range(60))
    assert compact_table(hive.spark, hive.spec, hive.id).is_done is False


def test_a_failed_commit_says_why_and_the_next_run_commits(
    hive: Maintained, meanwhile: Meanwhile, monkeypatch: pytest.MonkeyPatch
) -> None:
    hive.write_small_files(6)

    def out_of_reach(*_: object) -> None:
        raise ServiceUnavailableError("the storage is unreachable")

    meanwhile(compact, lambda: monkeypatch.setattr(Publication, "record", out_of_reach))
    with pytest.raises(ServiceUnavailableError, match="the storage is unreachable"):
        compact_table(hive.spark, hive.spec, hive.id)
    monkeypatch.undo()

    assert (hive.described.version, hive.ids()) == (1, list(range(60)))
    assert compact_table(hive.spark, hive.spec, hive.id).fragments_removed == 6


def test_many_fragments_are_distributed_over_tasks(stored: Maintained) -> None:
    stored.write_small_files(6)

    result = compact_table(
        stored.spark, stored.spec, stored.id, options=CompactionOptions(target_rows_per_fragment=20)
    )

    assert (result.tasks, result.fragments_added) == (3, 3)
    assert [fragment.count_rows() for fragment in stored.newest.get_fragments()] == [20, 20, 20]


def test_a_compaction_respects_its_limit(stored: Maintained) -> None:
    stored.write_small_files(6)
    few = CompactionOptions(target_rows_per_fragment=20, max_source_fragments=2)

    removed = [
        compact_table(stored.spark, stored.spec, stored.id, options=few).fragments_removed for _ in range(4)
    ]

    assert removed == [2, 2, 2, 0]


def test_deleted_rows_are_removed_from_the_files(stored: Maintained) -> None:
    stored.write_small_files(1)
    stored.newest.delete("id < 5")

    result = compact_table(stored.spark, stored.spec, stored.id)

    assert result.is_done
    assert stored.newest.get_fragments()[0].physical_rows == 5
    assert stored.ids() == list(range(5, 10))


def test_an_index_and_ingestion_keep_working_after_compaction(hive: Maintained) -> None:
    january = {"key": "january", "execution_id": "1"}
    hive.write(rows(hive.spark, 0, 60, 6), **january)
    hive.newest.create_scalar_index("id", "BTREE")

    compact_table(hive.spark, hive.spec, hive.id)

    plan = hive.newest.scanner(filter="id = 42").explain_plan()
    assert "ScalarIndexQuery" in plan
    assert hive.newest.to_table(filter="id = 42")["word"].to_pylist() == ["word 42"]
    again = hive.write(rows(hive.spark, 0, 60, 6), **january)
    later = hive.write(rows(hive.spark, 60, 70), key="february")
    assert (again, later, hive.ids()) == (1, hive.newest.version, list(range(70)))


@pytest.mark.parametrize("version", ["2.0", pytest.param("2.1", marks=pytest.mark.long)])
def test_a_table_keeps_its_format(stored: Maintained, version: str) -> None:
    stored.write(rows(stored.spark, 0, 60, 6), options=TableLayout(data_storage_version=version))

    compact_table(stored.spark, stored.spec, stored.id)

    (fragment,) = stored.newest.get_fragments()
    file = fragment.metadata.files[0]
    assert f"{file.file_major_version}.{file.file_minor_version}" == version


def test_nothing_is_committed_after_a_direct_write(hive: Maintained) -> None:
    hive.write_small_files(6)
    hive.append_directly(100)

    with pytest.raises(InvalidTableStateError, match="was bypassed: the storage has version 2"):
        compact_table(hive.spark, hive.spec, hive.id)

    assert hive.described.version == 1
    assert (hive.ids(), hive.by_path.count_rows()) == (list(range(60)), 61)


def test_a_table_without_data_is_named(spark: SparkSession, hive: Maintained) -> None:
    with pytest.raises(TableVersionNotFoundError, match=r"db_\w+.t is declared, but nothing has been"):
        compact_table(spark, hive.spec, hive.id)
