"""No symbolic link that others put into a local table's folder leads its readers and writers elsewhere."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance import DatasetBasePath
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.namespace.storage import table_links
from airflow_provider_lancens.namespace.storage.allowed_locations import AllowedLocations
from airflow_provider_lancens.namespace.storage.object_store import latest_version
from airflow_provider_lancens.namespace.storage.referenced_files import check_bases
from airflow_provider_lancens.namespace.storage.table_files import TableFiles
from airflow_provider_lancens.namespace.storage.table_links import check_links

ROWS = pa.table({"n": [1, 2]})
LINK = "is a symbolic link below a table's location, through which nothing is read or written"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The folder of a table."""
    lance.write_dataset(ROWS, str(tmp_path / "lake" / "t.lance"))
    return tmp_path / "lake" / "t.lance"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder of somebody else."""
    lance.write_dataset(ROWS, str(tmp_path / "elsewhere.lance"))
    return tmp_path / "elsewhere.lance"


def data_file(table: Path) -> Path:
    return next((table / "data").iterdir())


def test_a_table_and_the_folders_above_it_may_be_links(table: Path, tmp_path: Path) -> None:
    (tmp_path / "table").symlink_to(table)
    (tmp_path / "above").symlink_to(table.parent)
    for location in (tmp_path / "table", tmp_path / "above" / "t.lance"):
        check_links(str(location))
        assert latest_version(str(location), {}) == 1


def test_a_link_inside_a_table_may_lead_to_another_file_of_it(table: Path) -> None:
    file = data_file(table)
    (table / "data" / "again.lance").symlink_to(file)
    (table / "data" / "loop.lance").symlink_to("loop.lance")
    check_links(str(table))
    (table / "data" / "relative.lance").symlink_to("../../other.lance")
    with pytest.raises(InvalidInputError, match=rf"data/relative\.lance {LINK}"):
        check_links(str(table))


def test_a_poll_follows_no_link(table: Path, elsewhere: Path) -> None:
    (table / "_versions").rename(table / "moved")
    (table / "_versions").symlink_to(elsewhere / "_versions")
    with pytest.raises(InvalidInputError, match=rf"_versions {LINK}"):
        latest_version(str(table), {})


LISTINGS: list[Callable[[TableFiles], object]] = [
    lambda files: files.below("_lancens"),
    lambda files: files.folders("_lancens"),
    lambda files: list(files.all_below("_lancens")),
]
USES: list[Callable[[TableFiles], object]] = [
    lambda files: files.read("_lancens/x"),
    lambda files: files.stat("_lancens/x"),
    lambda files: files.missing(["_lancens/x"]),
    lambda files: files.create("_lancens/x", b"mine"),
    lambda files: files.put("_lancens/x", b"mine"),
]


@pytest.mark.parametrize("use", [*LISTINGS, *USES])
@pytest.mark.parametrize("linked", ["_lancens", "_lancens/x"])
def test_own_files_are_not_read_or_created_through_links(
    table: Path, tmp_path: Path, linked: str, use: Callable[[TableFiles], object]
) -> None:
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "x").write_bytes(b"theirs")
    (table / linked).parent.mkdir(exist_ok=True)
    (table / linked).symlink_to(tmp_path / "others" / linked.removeprefix("_lancens").removeprefix("/"))
    refused = pytest.raises(InvalidInputError, match=LINK)
    lists_it = linked == "_lancens/x" and use in LISTINGS
    with contextlib.nullcontext() if lists_it else refused:
        use(TableFiles(str(table), {}))
    assert (tmp_path / "others" / "x").read_bytes() == b"theirs"


def test_a_listing_of_all_files_leaves_out_what_is_behind_a_link(table: Path, elsewhere: Path) -> None:
    (table / "_lancens" / "keys").mkdir(parents=True)
    (table / "_lancens" / "keys" / "own").write_bytes(b"")
    (table / "_lancens" / "keys" / "linked").symlink_to(elsewhere / "data")
    pages = TableFiles(str(table), {}).all_below("_lancens/keys")
    assert [file.path for page in pages for file in page] == ["_lancens/keys/own"]


def test_a_link_in_a_table_that_was_cloned_is_not_followed(table: Path, tmp_path: Path) -> None:
    lance.dataset(str(table)).shallow_clone(str(tmp_path / "clone.lance"), 1)
    opened = lance.dataset(str(tmp_path / "clone.lance"))
    check_bases(opened, opened.uri, AllowedLocations())
    data_file(table).rename(tmp_path / "moved")
    (table / "data" / "linked.lance").symlink_to(tmp_path / "moved")
    with pytest.raises(InvalidInputError, match=LINK):
        check_bases(opened, opened.uri, AllowedLocations())


def test_of_a_folder_that_is_no_table_only_the_files_are_checked_that_are_referred_to(
    table: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "more"
    folder.mkdir()
    base = DatasetBasePath(str(folder), "more", False, 1)
    written = lance.write_dataset(
        ROWS, str(tmp_path / "u.lance"), initial_bases=[base], target_bases=["more"]
    )
    (folder / "unused.lance").symlink_to(data_file(table))
    check_bases(written, written.uri, AllowedLocations())
    file = next(path for path in folder.rglob("*.lance") if not path.is_symlink())
    file.rename(tmp_path / "moved")
    file.symlink_to(tmp_path / "moved")
    with pytest.raises(InvalidInputError, match=LINK):
        check_bases(written, written.uri, AllowedLocations())


def test_a_branch_is_not_behind_a_link(table: Path, tmp_path: Path) -> None:
    branch = lance.dataset(str(table)).create_branch("of/mine")
    lance.write_dataset(ROWS, branch, mode="append")
    check_links(str(table), "of/mine")
    place = table / "tree" / "of" / "mine"
    (place / "data" / "again.lance").symlink_to(data_file(table))
    check_links(str(table), "of/mine")
    (place / "data" / "linked.lance").symlink_to(tmp_path)
    with pytest.raises(InvalidInputError, match=rf"linked\.lance {LINK}"):
        check_links(str(table), "of/mine")
    (table / "tree" / "of").rename(tmp_path / "of")
    (table / "tree" / "of").symlink_to(tmp_path / "of")
    with pytest.raises(InvalidInputError, match=rf"tree/of {LINK}"):
        check_links(str(table), "of/mine")


def test_a_table_with_many_files_is_not_searched_at_each_opening(
    table: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_links, "_MANY", 1)
    monkeypatch.setattr(table_links, "_PAUSE", 1e9)
    check_links(str(table))
    (table / "data" / "linked.lance").symlink_to(data_file(elsewhere))
    check_links(str(table))
    table_links._searched_until.clear()
    with pytest.raises(InvalidInputError, match=LINK):
        check_links(str(table))
    (table / "data" / "linked.lance").unlink()
    check_links(str(table))
    (table / "_deletions").symlink_to(elsewhere)
    with pytest.raises(InvalidInputError, match=rf"_deletions {LINK}"):
        check_links(str(table))  # folders always are
