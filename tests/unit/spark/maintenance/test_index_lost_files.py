"""An index of which the storage has lost files is built anew by extension and maintenance, and told of."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import lance
import pytest
from lance_namespace import DeclareTableRequest
from lance_namespace.errors import InvalidTableStateError

from airflow_provider_lancens.doctor.checks import check_tables
from airflow_provider_lancens.namespace.storage.missing_files import StoredVersions
from airflow_provider_lancens.spark.maintenance import IndexSpec, Thresholds
from airflow_provider_lancens.spark.maintenance.compact import compact_table
from airflow_provider_lancens.spark.maintenance.maintain import maintain_table
from airflow_provider_lancens.spark.maintenance.maintenance_options import MaintenancePlan
from airflow_provider_lancens.spark.maintenance.restore import check_files
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec
from tests.servers.s3_double import S3Double
from tests.support.indices import build_index
from tests.unit.spark.every_verb import NAME, SPARK, Lake, create, fill
from tests.unit.spark.indexed_rows import INDICES, NEW, OLD, column_of, found, rows_of, write_indexed


def remove(segments: Path) -> None:
    shutil.rmtree(segments)


def remove_one_of_each(segments: Path) -> None:
    for folder in segments.iterdir():
        min(folder.iterdir()).unlink()


def truncate_one(segments: Path) -> None:
    file = max(segments.glob("*/*"), key=lambda one: one.stat().st_size)
    os.truncate(file, file.stat().st_size - 1)


def extend(lake: NamespaceSpec, spec: IndexSpec) -> None:
    column, index_type, name = spec.column, spec.index_type, spec.name
    built = build_index(
        SPARK, lake, "t", column, index_type, name=name, if_exists="extend", options=spec.options
    )
    assert built.is_done


def maintain(lake: NamespaceSpec, spec: IndexSpec) -> None:
    plan = MaintenancePlan(indices=(spec,), thresholds=Thresholds(max_unindexed_share=1))
    assert maintain_table(SPARK, lake, "t", plan).done_steps == [f"index.{spec.name}"]
    assert maintain_table(SPARK, lake, "t", plan).done_steps == []


def lake_of(folder: Path, index_type: str, *, stable_row_ids: bool = False) -> tuple[NamespaceSpec, str]:
    """Return a lake with an indexed table `t`, and the table's location."""
    lake = NamespaceSpec("dir", {"root": str(folder)})
    lake.connect().declare_table(DeclareTableRequest(id=["t"]))
    location = str(folder / "t.lance")
    write_indexed(location, index_type, stable_row_ids=stable_row_ids)
    return lake, location


def spec_of(index_type: str) -> IndexSpec:
    return IndexSpec(column_of(index_type), index_type, "", INDICES[index_type])


@pytest.mark.parametrize(("stable_row_ids", "mend"), [(False, extend), (True, maintain)])
@pytest.mark.parametrize("lose", [remove, remove_one_of_each, truncate_one])
@pytest.mark.parametrize("index_type", INDICES)
def test_an_index_that_lost_files_is_built_anew(
    tmp_path: Path,
    index_type: str,
    stable_row_ids: bool,
    lose: Callable[[Path], None],
    mend: Callable[[NamespaceSpec, IndexSpec], None],
) -> None:
    lake, location = lake_of(tmp_path, index_type, stable_row_ids=stable_row_ids)
    lance.write_dataset(rows_of(range(OLD, OLD + NEW), "omega", 9), location, mode="append")
    before = lance.dataset(location)
    segments = {segment.uuid for index in before.describe_indices() for segment in index.segments}

    lose(Path(location, "_indices"))
    assert before.version in check_files(lake, "t").missing
    mend(lake, spec_of(index_type))

    dataset = lance.dataset(location, session=lance.Session())
    [index] = dataset.describe_indices()
    assert segments.isdisjoint(segment.uuid for segment in index.segments)
    assert index.num_rows_indexed == OLD + NEW
    assert dataset.version not in check_files(lake, "t").missing
    assert found(dataset, index_type, "omega", 9) == list(range(OLD, OLD + NEW))
    assert found(dataset, index_type, "alpha", 0) == list(range(OLD))


@pytest.mark.parametrize("index_type", INDICES)
def test_an_index_that_is_whole_is_extended(tmp_path: Path, index_type: str) -> None:
    lake, location = lake_of(tmp_path, index_type)
    [before] = lance.dataset(location).describe_indices()
    lance.write_dataset(rows_of(range(OLD, OLD + NEW), "omega", 9), location, mode="append")

    extend(lake, spec_of(index_type))

    [index] = lance.dataset(location).describe_indices()
    kept = {segment.uuid for segment in before.segments} & {segment.uuid for segment in index.segments}
    assert len(kept) == len(before.segments) == len(index.segments) - 1


def test_a_compaction_that_has_to_read_an_index_comes_after_it_was_built_anew(tmp_path: Path) -> None:
    lake, location = lake_of(tmp_path, "BTREE")
    remove_one_of_each(Path(location, "_indices"))
    with pytest.raises(InvalidTableStateError, match=r"a part of index 's_idx' is lost.*if_exists='replace'"):
        compact_table(SPARK, lake, "t")

    due = Thresholds(min_small_fragments=2)
    plan = MaintenancePlan(indices=(spec_of("BTREE"),), thresholds=due, segments=1)
    result = maintain_table(SPARK, lake, "t", plan)

    assert result.done_steps == ["compact", "index.s_idx"]
    assert result.steps["index.s_idx"].reason == "files of the index are lost"
    assert found(lance.dataset(location), "BTREE", "alpha", 0) == list(range(OLD))


@pytest.mark.parametrize("lose", [remove, remove_one_of_each])
def test_the_doctor_names_an_index_that_lost_files(tmp_path: Path, lose: Callable[[Path], None]) -> None:
    lake = Lake(str(tmp_path), "storage")
    fill(lake)
    lose(Path(lake.location, "_indices"))

    found = [finding for finding in check_tables(lake.hook, NAME) if finding.level == "problem"]

    compared, told = found
    assert compared.text.endswith(
        "only indices are lost, and no row: build them again, with if_exists='replace'"
    )
    assert told.text == "files of index 'n_btree' on n are lost, so reads and writes that use it fail"
    assert {one.advice for one in found} == {told.advice}
    assert told.advice.startswith("Rebuild it, with LanceMaintainOperator, or LanceCreateIndexOperator with")


@pytest.mark.parametrize("index_type", ["INVERTED", "IVF_FLAT"])
def test_the_doctor_reads_no_index_that_lost_files(tmp_path: Path, index_type: str) -> None:
    from airflow_provider_lancens.doctor.checks import check_state
    from airflow_provider_lancens.spark.maintenance.table_state import table_state

    lake, location = lake_of(tmp_path, index_type, stable_row_ids=True)
    remove(Path(location, "_indices"))

    with table_state(lake, "t") as state:
        told = [finding.text for finding in check_state("t", state) if finding.level == "problem"]
    column = column_of(index_type)
    [text] = told
    assert text.startswith(f"files of index '{column}_idx' on {column} are lost")


def test_a_lost_index_in_an_object_store_is_built_anew() -> None:
    with S3Double("lake") as s3:
        lake = create(s3, "storage")
        lost = next(key for key in s3.bucket.objects if "/_indices/" in key)
        s3.bucket.objects.pop(lost)

        [missing] = StoredVersions(lake.location, lake.storage).missing_files(lake.version)
        built = build_index(SPARK, lake.namespace, NAME, "n", "BTREE", name="n_btree", if_exists="extend")

        assert missing in lost
        assert built.is_done
        assert StoredVersions(lake.location, lake.storage).missing_files(built.version) == ()


def test_an_index_of_which_the_source_of_a_clone_lost_a_part_is_built_anew(tmp_path: Path) -> None:
    lake, source = lake_of(tmp_path, "BITMAP")
    dataset = lance.dataset(source)
    dataset.shallow_clone(str(tmp_path / "clone.lance"), dataset.version)
    truncate_one(Path(source, "_indices"))

    [missing] = check_files(lake, "clone").missing[lance.dataset(str(tmp_path / "clone.lance")).version]
    built = build_index(SPARK, lake, "clone", "s", "BITMAP", name="s_idx", if_exists="extend")

    assert missing.startswith(f"{source}/_indices/")
    assert built.is_done
    assert built.version not in check_files(lake, "clone").missing
