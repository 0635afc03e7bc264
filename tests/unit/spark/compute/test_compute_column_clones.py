"""Columns of shallow clones, whose source may have computed them: their files are in the source's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance.fragment import DataFile
from lance_namespace.errors import InvalidTableStateError

from airflow_provider_lancens import connect
from airflow_provider_lancens.namespace.storage.referenced_files import data_file_locations
from airflow_provider_lancens.spark import ComputeResult, Table
from airflow_provider_lancens.spark.compute.column_task import ColumnFileInfo, read_file_info
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef
from tests.histories.local_session import LocalSession
from tests.servers.s3_double import S3Double

SPARK: Any = LocalSession()


def compute(table: Table, factor: int = 2, **named: Any) -> ComputeResult:
    return table.compute_column(
        "n", lambda batch: pc.multiply(batch["id"], factor), ["id"], dtype="int64", **named
    )


def values(table: Table) -> dict[int, int | None]:
    return {row["id"]: row["n"] for row in table.to_arrow().to_pylist()}


@pytest.fixture
def source(tmp_path: Path) -> Table:
    """A table of two fragments, of which one has deletions."""
    return filled({"root": str(tmp_path / "a lake")})


def filled(properties: dict[str, str]) -> Table:
    table = connect("dir", properties, spark=SPARK).declare_table("orders")
    for first in (0, 4):
        table.append(pa.table({"id": range(first, first + 4)}))
    table.delete("id = 5")
    return table


def clone(source: Table, name: str = "copy", **named: Any) -> Table:
    dataset = source.dataset()
    dataset.shallow_clone(source.location.replace(source.name, name), dataset.version, **named)
    return source.lake.table(name)


ROWS = (0, 1, 2, 3, 4, 6, 7)


def test_a_clone_has_the_values_that_its_source_has(source: Table) -> None:
    compute(source)
    copy = clone(source)

    result = compute(copy, 9)

    assert (result.outcome, result.computed) == ("unchanged", 0)
    assert values(copy) == {number: 2 * number for number in ROWS}


def test_a_clone_computes_only_what_its_source_lacks(source: Table) -> None:
    compute(source)
    source.append(pa.table({"id": [8, 9], "n": pa.nulls(2, pa.int64())}))
    copy = clone(source)

    assert [compute(copy, 3).computed for _ in range(2)] == [2, 0]
    assert values(copy) == {number: 2 * number for number in ROWS} | {8: 24, 9: 27}


def test_a_column_of_a_clone_is_computed_anew_and_the_source_keeps_its_own(source: Table) -> None:
    compute(source)
    copy = clone(source)

    result = compute(copy, 3, where="id < 5")

    assert (result.computed, result.files) == (5, 2)
    assert values(copy) == {number: (3 if number < 5 else 2) * number for number in ROWS}
    assert values(source) == {number: 2 * number for number in ROWS}
    assert compute(copy, 9).outcome == "unchanged"


def test_a_clone_of_a_clone_finds_the_files_of_both(source: Table) -> None:
    compute(source)
    copy = clone(source)
    compute(copy, 3, where="id < 2")
    second = clone(copy, "second")

    assert compute(second, 9).outcome == "unchanged"
    assert values(second) == {number: (3 if number < 2 else 2) * number for number in ROWS}


def test_files_in_a_bucket_are_read_with_the_credentials_of_the_clone() -> None:
    with S3Double() as s3:
        options = {f"storage.{name}": value for name, value in s3.storage.items()}
        source = filled({"root": "s3://lake/a", **options})
        compute(source)
        copy = clone(source, storage_options=s3.storage)

        assert compute(copy, 9).outcome == "unchanged"
        assert values(copy) == {number: 2 * number for number in ROWS}


def test_a_base_may_be_the_folder_of_the_files_itself(tmp_path: Path) -> None:
    bases = [lance.DatasetBasePath(str(tmp_path / "files"), name="files")]
    location = str(tmp_path / "t.lance")
    rows = pa.table({"id": [1]})
    dataset = lance.write_dataset(rows, location, initial_bases=bases, target_bases=["files"])
    (fragment,) = dataset.get_fragments()

    (found,) = data_file_locations(dataset, location, fragment.metadata.files)

    assert Path(found).parent == tmp_path / "files"
    assert Path(found).is_file()


@pytest.mark.parametrize("name", ["computed-/../../secret.lance", "computed-/%2e%2e/x", "computed-//x"])
def test_a_name_that_leads_elsewhere_is_not_opened(name: str, source: Table) -> None:
    dataset, reference = source.dataset(), DatasetRef(source.location)

    with pytest.raises(InvalidTableStateError, match="is not the path of a file below it"):
        read_file_info(reference, dataset, [DataFile(name, [1], [0], 2, 0)])


def test_files_of_other_writers_are_not_read(source: Table) -> None:
    compute(source)
    dataset, reference = source.dataset(), DatasetRef(source.location)
    files = [file for fragment in dataset.get_fragments() for file in fragment.metadata.files]

    assert set(read_file_info(reference, dataset, files).values()) == {ColumnFileInfo(nulls=0)}
