"""Names of files that others wrote: none is read, written or removed outside of a table's location."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from lance_namespace.errors import InvalidInputError, InvalidTableStateError

from airflow_provider_lancens.namespace.storage.file_paths import FilePath, is_file_path
from airflow_provider_lancens.namespace.storage.table_files import TableFiles
from tests.hostile_names import file_names

SAME_FOLDER = settings(
    derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """A file beside a table, which nothing may touch."""
    (tmp_path / "t.lance" / "data").mkdir(parents=True)
    path = tmp_path / "canary"
    path.write_bytes(b"alive")
    return path


@pytest.mark.parametrize(
    "path", ["_lancens/1.manifest", "data/a b.lance", "data/x#1", "_refs/tags/a%b.json", "data/größe.lance"]
)
def test_the_names_that_writers_give_are_accepted(path: str) -> None:
    assert FilePath.of(path, "/t") == path


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "..",
        "../canary",
        "data/../../canary",
        "data//x",
        "data/./x",
        "data/",
        "data/%2e%2e/x",
        "%2Fetc%2Fpasswd",
        "data/a%2Fb",
        "data/%252e%252e%252f",
        "data/%00",
        "data/a\x00b",
        "data/a\nb",
        "data/\x1b[2J",
        "x" * 1025,
    ],
)
def test_a_path_that_may_mean_a_file_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(InvalidTableStateError, match="is not the path of a file below it") as refusal:
        FilePath.of(path, "/t")
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 500


@SAME_FOLDER
@given(path=file_names())
def test_no_operation_on_a_tables_files_reaches_another_file(canary: Path, path: str) -> None:
    files = TableFiles(str(canary.parent / "t.lance"), {})
    operations: list[Callable[[], object]] = [
        lambda: files.create(path, b"written"),
        lambda: files.put(path, b"written"),
        lambda: files.below(path),
        lambda: files.remove(path),
        lambda: files.remove("data/none", path),
    ]
    for operation in operations:
        if path and not is_file_path(path):
            with pytest.raises(InvalidTableStateError):
                operation()
    with pytest.raises(InvalidTableStateError) if not is_file_path(path) else contextlib.nullcontext():
        assert files.read(path) != b"alive"
    assert canary.read_bytes() == b"alive"
    assert sorted(path.name for path in canary.parent.iterdir()) == ["canary", "t.lance"]


def test_a_listing_leaves_out_names_that_no_writer_gives(canary: Path) -> None:
    folder = canary.parent / "t.lance" / "data"
    for name in ("a.lance", "%2e%2e", "%2Fetc%2Fpasswd", "%00.lance"):
        (folder / name).write_bytes(b"x")
    files = TableFiles(str(folder.parent), {})
    assert [file.path for file in files.below("data")] == ["data/a.lance"]
    assert [file.path for page in files.all_below("data") for file in page] == ["data/a.lance"]
    assert [file.path for page in files.all_below("") for file in page] == ["data/a.lance"]


def test_no_file_is_created_behind_a_link(canary: Path) -> None:
    elsewhere = canary.parent / "elsewhere"
    elsewhere.mkdir()
    table = canary.parent / "t.lance"
    (table / "_lancens").symlink_to(elsewhere)
    files = TableFiles(str(table), {})
    for write in (files.create, files.put):
        with pytest.raises(InvalidInputError, match=r"_lancens is a symbolic link"):
            write("_lancens/writes/1", b"x")
    assert not list(elsewhere.iterdir())
