"""Files given by paths, folders and patterns."""

from pathlib import Path

import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.spark.write.files.file_system import find_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shown = ("b.csv", "a.csv", "a[1].csv", "2013/01/c.csv", "2013/d.json")
    for name in (*shown, "_SUCCESS", ".x", "_tmp/e.csv"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    return tmp_path


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        (["b.csv", "a.csv"], ["b.csv", "a.csv"]),
        (["a.csv", "a.csv"], ["a.csv"]),
        (["_SUCCESS"], ["_SUCCESS"]),
        (["2013"], ["2013/01/c.csv", "2013/d.json"]),
        ([""], ["2013/01/c.csv", "2013/d.json", "a.csv", "a[1].csv", "b.csv"]),
        (["*.csv"], ["a.csv", "a[1].csv", "b.csv"]),
        (["[!b].csv"], ["a.csv"]),
        (["?.csv"], ["a.csv", "b.csv"]),
        (["[^a].csv"], ["b.csv"]),
        (["a[[]1].csv"], ["a[1].csv"]),
        (["*/*"], ["2013/d.json"]),
        (["**/*.csv"], ["2013/01/c.csv", "a.csv", "a[1].csv", "b.csv"]),
        (["20*/**"], ["2013/01/c.csv", "2013/d.json"]),
        (["b.csv", "*.csv"], ["b.csv", "a.csv", "a[1].csv"]),
    ],
)
def test_paths_folders_and_patterns_are_expanded_to_files(
    folder: Path, paths: list[str], found: list[str]
) -> None:
    files = find_files([f"{folder}/{path}" for path in paths], {})

    assert [file.location for file in files] == [f"{folder}/{name}" for name in found]
    assert [file.bytes for file in files] == [len(name) for name in found]


@pytest.mark.parametrize(
    "path", ["nothing.csv", "*.parquet", "nowhere/*.csv", "nowhere/at/all", "2013[!x]d.json", "[a"]
)
def test_a_path_without_any_file_is_named(folder: Path, path: str) -> None:
    with pytest.raises(InvalidInputError, match=r"paths\[1\]: no file found at"):
        find_files([f"{folder}/a.csv", f"{folder}/{path}"], {})


def test_a_relative_path_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"paths\[0\]: expected an absolute path"):
        find_files(["data/a.csv"], {})


def test_what_is_no_pattern_is_refused(folder: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"'\[z-a\]\.csv' isn't a pattern: bad character range z-a"):
        find_files([f"{folder}/[z-a].csv"], {})
