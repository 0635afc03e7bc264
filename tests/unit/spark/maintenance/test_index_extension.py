"""An extended index finds what a scan finds, whoever wrote the rows; a wrong one is found and rebuilt."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import LanceOperation
from lance.fragment import write_fragments

from airflow_provider_lancens.spark.maintenance.index import check_column, plan_extension
from airflow_provider_lancens.spark.maintenance.maintenance_options import IndexSpec, Thresholds
from airflow_provider_lancens.spark.maintenance.table_state import Coverage, described_index, has_old_values
from airflow_provider_lancens.spark.table.index_coverage import deleted_share, misses_rows
from tests.unit.spark.indexed_rows import (
    INDICES,
    NEW,
    OLD,
    column_of,
    found,
    rows_of,
    write_indexed,
    write_indexed_deleted_compacted,
)

_TOLD = {"s": "'omega'", "tags": "['omega']", "vector": "[9.0, 9.0]"}


def update(dataset: lance.LanceDataset) -> None:
    dataset.update(_TOLD, where=f"id < {NEW}")


def merge(dataset: lance.LanceDataset) -> None:
    dataset.merge_insert("id").when_matched_update_all().execute(rows_of(range(NEW), "omega", 9))


def update_and_compact(dataset: lance.LanceDataset) -> None:
    update(dataset)
    dataset.optimize.compact_files()


def claim(dataset: lance.LanceDataset) -> None:
    """Upsert with Lance's update mode, by which the new fragments count as covered by other indices."""
    new = rows_of(range(NEW), "omega", 9)
    matched: Any = dataset.merge_insert("id").when_matched_delete().execute_uncommitted(new.select(["id"]))
    operation = LanceOperation.Update(
        removed_fragment_ids=matched[0].operation.removed_fragment_ids,
        updated_fragments=matched[0].operation.updated_fragments,
        new_fragments=write_fragments(new, dataset, mode="append"),
        update_mode=matched[0].operation.update_mode,
    )
    lance.LanceDataset.commit(dataset, operation, read_version=dataset.version)


def extend(location: str, spec: IndexSpec) -> bool:
    """Extend an index, or rebuild it, as `build_index` does on executors; return whether it was extended."""
    dataset = lance.dataset(location)
    present = described_index(dataset, spec.name)
    plan = plan_extension(dataset, {}, spec, present, len(present.segments))
    fragments = dataset.get_fragments() if plan is None else plan.fragments
    if fragments:
        ids = [fragment.fragment_id for fragment in fragments]
        shared = dict(spec.options if plan is None else plan.shared)
        segment = dataset.create_index_uncommitted(
            spec.column, spec.index_type, name=spec.name, replace=True, fragment_ids=ids, **shared
        )
        dataset.commit_existing_index_segments(spec.name, spec.column, [segment])
    return plan is not None


@pytest.mark.parametrize("write", [update, merge, update_and_compact])
@pytest.mark.parametrize("stable_row_ids", [False, True])
@pytest.mark.parametrize("index_type", [one for one in INDICES if not one.startswith("IVF")])
def test_an_extended_index_does_not_find_old_values(
    tmp_path: Path, index_type: str, stable_row_ids: bool, write: Callable[[lance.LanceDataset], None]
) -> None:
    location = str(tmp_path / "t.lance")
    write_indexed(location, index_type, stable_row_ids=stable_row_ids)
    write(lance.dataset(location))

    extend(location, IndexSpec(column_of(index_type), index_type, "", INDICES[index_type]))

    dataset = lance.dataset(location)
    assert found(dataset, index_type, "omega", 9) == list(range(NEW))
    assert found(dataset, index_type, "alpha", 0) == list(range(NEW, OLD))


def test_an_index_of_appended_rows_alone_is_extended(tmp_path: Path) -> None:
    location = str(tmp_path / "t.lance")
    write_indexed(location, "BITMAP", stable_row_ids=True)
    lance.write_dataset(rows_of(range(OLD, OLD + 5), "omega", 9), location, mode="append")

    assert extend(location, IndexSpec("s", "BITMAP"))
    assert found(lance.dataset(location), "BITMAP", "omega", 9) == list(range(OLD, OLD + 5))


@pytest.mark.parametrize("index_type", ["INVERTED", "NGRAM", "IVF_FLAT"])
def test_an_index_that_claims_rows_it_has_not_seen_is_found_and_rebuilt(
    tmp_path: Path, index_type: str
) -> None:
    location, column = str(tmp_path / "t.lance"), column_of(index_type)
    spec = IndexSpec(column, index_type, "", INDICES[index_type])
    write_indexed(location, index_type, stable_row_ids=True)
    before = lance.dataset(location)
    assert not misses_rows(before, described_index(before, spec.name).segments)

    claim(before)
    lance.dataset(location).optimize.compact_files()
    wrong = lance.dataset(location)
    assert found(wrong, index_type, "omega", 9) == []
    assert misses_rows(wrong, described_index(wrong, spec.name).segments)

    assert plan_extension(wrong, {}, spec, described_index(wrong, spec.name), 2) is None
    if not spec.is_vector:
        assert not extend(location, spec)
        mended = lance.dataset(location)
        assert found(mended, index_type, "omega", 9) == list(range(NEW))
        assert not misses_rows(mended, described_index(mended, spec.name).segments)


@pytest.mark.parametrize("write", [update, merge, update_and_compact])
@pytest.mark.parametrize("stable_row_ids", [False, True])
@pytest.mark.parametrize("index_type", INDICES)
def test_an_index_that_another_client_extended_after_an_update_is_found_and_rebuilt_if_it_finds_old_values(
    tmp_path: Path, index_type: str, stable_row_ids: bool, write: Callable[[lance.LanceDataset], None]
) -> None:
    location, column = str(tmp_path / "t.lance"), column_of(index_type)
    spec = IndexSpec(column, index_type, "", INDICES[index_type])
    write_indexed(location, index_type, stable_row_ids=stable_row_ids)
    before = lance.dataset(location)
    assert not has_old_values(before, described_index(before, spec.name))

    write(before)
    lance.dataset(location).optimize.optimize_indices(num_indices_to_merge=0)
    after = lance.dataset(location)
    is_wrong = found(after, index_type, "alpha", 0) != list(range(NEW, OLD))
    assert is_wrong == (stable_row_ids and index_type in ("BITMAP", "LABEL_LIST", "INVERTED"))
    assert has_old_values(after, described_index(after, spec.name)) == is_wrong

    assert (plan_extension(after, {}, spec, described_index(after, spec.name), 2) is None) == is_wrong
    if is_wrong:
        assert not extend(location, spec)
        mended = lance.dataset(location)
        assert found(mended, index_type, "alpha", 0) == list(range(NEW, OLD))
        assert not has_old_values(mended, described_index(mended, spec.name))


def test_an_index_with_old_values_is_due_whatever_the_thresholds() -> None:
    coverage = Coverage(IndexSpec("s", "BITMAP"), 100, "BITMAP", 100, 2, has_old_values=True)

    assert coverage.decide(Thresholds()).is_due


def test_an_index_that_misses_rows_is_due_whatever_the_thresholds() -> None:
    coverage = Coverage(IndexSpec("s", "BITMAP"), 100, "BITMAP", 100, 1, misses_rows=True)

    assert coverage.decide(Thresholds()).is_due


def nearest(dataset: lance.LanceDataset) -> int:
    """How many rows a query for fifty finds."""
    query = {"column": "vector", "q": [0.0, 0.0], "k": 50}
    return dataset.to_table(["id", "_distance"], nearest=query).num_rows


@pytest.mark.parametrize("index_type", ["IVF_FLAT", "IVF_PQ"])
def test_a_vector_index_that_keeps_deleted_rows_after_a_compaction_is_found_and_built_anew(
    tmp_path: Path, index_type: str
) -> None:
    spec = IndexSpec("vector", index_type, "", INDICES[index_type])
    short = write_indexed_deleted_compacted(str(tmp_path / "t.lance"), index_type, stable_row_ids=True)
    present = described_index(short, spec.name)
    assert nearest(short) < 50

    share = deleted_share(short, present)

    assert share == pytest.approx(1 / 3)
    assert plan_extension(short, {}, spec, present, 2) is None
    coverage = Coverage(spec, OLD, index_type, OLD, 1, deleted_share=share)
    decision = coverage.decide(Thresholds(max_deleted_share=0.3))
    assert decision.rebuild
    assert decision.reason == "33.3% of the rows in the index are deleted (max_deleted_share=0.3)"
    assert not coverage.decide(Thresholds(max_deleted_share=0.4)).is_due
    short.create_index("vector", index_type, replace=True, **spec.options)
    whole = lance.dataset(short.uri)
    assert nearest(whole) == 50
    assert deleted_share(whole, described_index(whole, spec.name)) == 0


def test_a_vector_index_without_stable_row_ids_loses_deleted_rows_by_a_compaction(tmp_path: Path) -> None:
    compacted = write_indexed_deleted_compacted(str(tmp_path / "t.lance"), "IVF_FLAT", stable_row_ids=False)

    assert deleted_share(compacted, described_index(compacted, "vector_idx")) == 0
    assert nearest(compacted) == 50


@pytest.mark.parametrize(
    "kind", [pa.decimal128(5, 2), pa.float16(), pa.bool_(), pa.duration("us"), pa.binary(4)]
)
def test_a_bloom_filter_of_a_type_that_lance_cannot_hash_is_refused_before_any_work(
    kind: pa.DataType,
) -> None:
    from lance_namespace.errors import InvalidInputError

    schema = pa.schema([("v", kind)])
    check_column("t", IndexSpec("v", "BTREE"), schema)
    with pytest.raises(InvalidInputError, match=r"index_type 'BLOOMFILTER' requires whole numbers"):
        check_column("t", IndexSpec("v", "BLOOMFILTER"), schema)
