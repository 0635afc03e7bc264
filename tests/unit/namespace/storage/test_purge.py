"""The files that removing a table's data deletes, and those it keeps: links, siblings, foreign files."""

import os
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.namespace.storage import purge

ROWS = pa.table({"x": [1, 2, 3]})
Files = dict[str, bytes]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A dataset of one version."""
    folder = tmp_path / "orders.lance"
    lance.write_dataset(ROWS, str(folder))
    return folder


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Another dataset, which must not be affected."""
    folder = tmp_path / "elsewhere.lance"
    lance.write_dataset(ROWS, str(folder))
    return folder


def content(folder: Path) -> Files:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def remaining(folder: Path) -> list[Path]:
    """All files and links at any depth."""
    return [path for path in folder.rglob("*") if path.is_symlink() or path.is_file()]


def remove(root: Path) -> int:
    """Remove a table's data, and check that the plan said so."""
    plan = purge.plan(str(root), {})
    before = sum(path.lstat().st_size for path in remaining(root))
    removed = purge.remove(str(root), {})
    left = remaining(root)
    assert (plan.files, plan.other_files) == (removed, len(left))
    assert plan.bytes == before - sum(path.lstat().st_size for path in left)
    return removed


def test_all_files_of_lance_are_removed(root: Path) -> None:
    table = lance.write_dataset(
        pa.table({"i": range(40), "s": ["a b", "c"] * 20, "blob": lance.blob_array([b"x" * 2**17] * 40)}),
        str(root),
        mode="overwrite",
        data_storage_version="2.2",
    )
    table.delete("i = 1")
    table.create_scalar_index("i", "BTREE")
    table.create_scalar_index("s", "INVERTED")
    table.tags.create("kept", table.version)
    branch = table.create_branch("feature/x")
    branch.delete("i = 2")
    assert {path.name for path in root.iterdir()} >= {"data", "_indices", "_deletions", "_refs", "tree"}
    assert any(file.suffix == ".blob" for file in root.rglob("*"))
    assert purge.plan(str(root), {}).tags == ("kept",)
    remove(root)
    assert not root.exists()


def test_files_of_a_killed_writer_are_removed_too(root: Path) -> None:
    for name in ("data/.tmpAb12cD", "data/a.lance#1", "_versions/1.manifest-0f3c", "_lancens/running/w.json"):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"partial")
    remove(root)
    assert not root.exists()


@pytest.mark.parametrize("kind", ["a folder of another table", "a file"])
@pytest.mark.parametrize("folder", ["data", "_indices", "_transactions", "tree", "_lancens", "_versions"])
def test_a_link_inside_and_its_target_are_kept(root: Path, elsewhere: Path, folder: str, kind: str) -> None:
    before = content(elsewhere)
    file = next((elsewhere / "data").iterdir())
    (root / folder).mkdir(exist_ok=True)
    link = root / folder / (f"link{file.suffix}" if kind == "a file" else "link")
    link.symlink_to(file if kind == "a file" else elsewhere)
    remove(root)
    assert content(elsewhere) == before
    assert link.is_symlink()
    assert [str(path.relative_to(root)) for path in root.rglob("*")] == [folder, f"{folder}/{link.name}"]


@pytest.mark.parametrize("folder", ["data", "_transactions", "_lancens"])
def test_a_linked_lance_folder_and_its_target_are_kept(root: Path, elsewhere: Path, folder: str) -> None:
    before = content(elsewhere)
    if (root / folder).exists():
        (root / folder).rename(root.parent / f"moved{folder}")
    target = elsewhere / ("data" if folder == "_lancens" else folder)
    (root / folder).symlink_to(target)
    remove(root)
    assert content(elsewhere) == before
    assert [path.name for path in root.iterdir()] == [folder]


@pytest.mark.parametrize("linked", ["", "_versions"], ids=["the root", "the folder of versions"])
def test_a_link_at_the_location_is_refused_by_name(root: Path, elsewhere: Path, linked: str) -> None:
    before = content(root), content(elsewhere)
    location = root.parent / "location.lance"
    if linked:
        location.mkdir()
    (location / linked).symlink_to(elsewhere / linked)
    with pytest.raises(InvalidInputError, match="is a symbolic link"):
        remove(location)
    assert (content(root), content(elsewhere)) == before


def test_a_linked_parent_folder_is_allowed(root: Path) -> None:
    above = root.parent / "above"
    above.symlink_to(root.parent)
    assert remove(above / root.name)
    assert not root.exists()


@pytest.mark.parametrize(
    "name",
    [
        "notes.txt",
        "data/notes.txt",
        "data/sub/y.lance",
        "data/other.lance/data/1.lance",
        "data/other.lance/_versions/1.manifest",
        "_versions/notes.txt",
        "_indices/notes/1.idx",
        "_transactions/1.txt",
        "tree/notes.txt",
        "_refs/notes.json",
        "data/other.lance/1.blob",
    ],
)
def test_foreign_files_are_kept(root: Path, name: str) -> None:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"mine")
    remove(root)
    assert content(root) == {name: b"mine"}


def test_a_nested_data_set_is_kept(root: Path) -> None:
    nested = root / "data" / "nested.lance"
    lance.write_dataset(ROWS, str(nested))
    before = content(nested)
    remove(root)
    assert content(nested) == before


def test_an_interrupted_removal_is_finished_by_the_next_one(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lance.write_dataset(ROWS, str(root), mode="append").create_scalar_index("x", "BTREE")
    files = len(content(root))

    def stopping_after(count: int) -> Callable[..., None]:
        left = iter(range(count))
        real = os.unlink

        def unlink(*arguments: object, **more: object) -> None:
            if next(left, None) is None:
                raise KeyboardInterrupt
            real(*arguments, **more)  # type: ignore[arg-type]

        return unlink

    for count in range(1, files):
        with monkeypatch.context() as patch:
            patch.setattr(os, "unlink", stopping_after(1))
            with pytest.raises(KeyboardInterrupt):
                remove(root)
        assert len(content(root)) == files - count
    remove(root)
    assert not root.exists()


@pytest.mark.parametrize(
    ("path", "is_inner"),
    [
        ("data/inner.lance/data/a.lance", True),
        ("_indices/inner.lance/_versions/1.manifest", True),
        ("_transactions/inner/_transactions/a.txn", True),
        ("data/a.lance", False),
        ("data/fragment/a.blob", False),
        ("_indices/0b2cf2c1-7f0a-4a43-9b1c-0c5a1f0c2a11/data/a.idx", False),
        ("tree/trial/data/a.lance", False),
        ("data/unknown/a.lance", False),
    ],
)
def test_a_file_of_another_dataset_in_lance_s_folders_is_told_by_its_path(path: str, is_inner: bool) -> None:
    assert purge.is_of_inner_dataset(path) is is_inner
