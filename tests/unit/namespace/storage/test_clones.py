"""Which files of its source a shallow clone refers to, however the two locations are written."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import lance
import pyarrow as pa
import pytest

from airflow_provider_lancens.namespace.storage.clones import Clone, clone_at
from airflow_provider_lancens.namespace.storage.location_overlap import ResolvedLocation

Made = Callable[[str], Clone | None]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A table with two data files, a deletion file and an index, and a clone of it."""
    folder = tmp_path / "lake" / "a source.lance"
    dataset = lance.write_dataset(pa.table({"id": range(100)}), str(folder), max_rows_per_file=50)
    dataset.delete("id = 3")
    dataset.create_scalar_index("id", "BTREE")
    dataset.shallow_clone(str(tmp_path / "clone.lance"), dataset.version)
    return folder


@pytest.fixture
def clone(source: Path, tmp_path: Path) -> Made:
    def read(location: str) -> Clone | None:
        return clone_at("db$clone", str(tmp_path / "clone.lance"), {}, ResolvedLocation(location))

    return read


def below(folder: Path, *folders: str) -> set[str]:
    found = (file for name in folders for file in (folder / name).rglob("*") if file.is_file())
    return {str(file.relative_to(folder)) for file in found}


def test_a_clone_needs_data_deletions_and_indices_and_nothing_else(source: Path, clone: Made) -> None:
    found = clone(str(source))

    assert found is not None
    every = below(source, ".")
    assert {path for path in every if found.needs(path)} == below(source, "data", "_deletions", "_indices")
    assert not found.needs("data/other.lance")


@pytest.mark.parametrize("how", ["file:{}", "file://{}", "{}/", "{}/../a source.lance"])
def test_the_source_is_recognized_in_any_notation(source: Path, clone: Made, how: str) -> None:
    written = quote(str(source)) if how == "file://{}" else str(source)

    assert clone(how.format(written)) == clone(str(source)) != None  # noqa: E711 - of the chain


def test_the_source_is_recognized_through_a_link(source: Path, clone: Made, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(source.parent)

    assert clone(str(tmp_path / "link" / source.name)) == clone(str(source))


def test_a_table_beside_the_source_or_without_references_is_no_clone(
    source: Path, clone: Made, tmp_path: Path
) -> None:
    assert clone(f"{source}2") is None
    assert clone_at("db$source", str(source), {}, ResolvedLocation(str(source))) is None


def test_a_clone_of_a_clone_needs_files_of_both(source: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "clone.lance", tmp_path / "second.lance"
    dataset = lance.write_dataset(pa.table({"id": [1000]}), str(first), mode="append")
    dataset.shallow_clone(str(second), dataset.version)

    found = {
        place: clone_at("second", str(second), {}, ResolvedLocation(str(place))) for place in (source, first)
    }

    assert {place: sum(map(one.needs, below(place, "data"))) for place, one in found.items() if one} == {
        source: 2,
        first: 1,
    }


def test_a_clone_that_was_overwritten_refers_to_nothing(clone: Made, source: Path, tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"id": [1]}), str(tmp_path / "clone.lance"), mode="overwrite")

    assert clone(str(source)) is None


@pytest.mark.parametrize("inner", ["", "data", "x/y"])
def test_the_path_of_a_place_below_another(tmp_path: Path, inner: str) -> None:
    (tmp_path / "a" / inner).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for around in ("a", "link"):
        outer = ResolvedLocation(str(tmp_path / around))
        assert ResolvedLocation(f"file:{tmp_path}/a/{inner}").path_below(outer) == inner
    remote = ResolvedLocation("s3://b/t.lance")
    assert ResolvedLocation(f"s3a://b/t.lance/{inner}").path_below(remote) == inner
    assert ResolvedLocation("s3://b/t").path_below(remote) is None
    assert outer.path_below(remote) is None


def test_values_of_a_blob_column_are_needed_with_their_data_file() -> None:
    clone = Clone("db$clone", frozenset({"data/a.lance", "_indices/uuid"}))

    needed = ["data/a.lance", "data/a/1.blob", "_indices/uuid/page.lance"]
    others = ["data/ab.lance", "data/b/1.blob", "_indices/uuid2/page.lance", "data", "_indices"]
    assert [path for path in (*needed, *others) if clone.needs(path)] == needed
