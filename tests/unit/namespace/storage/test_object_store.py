"""The newest version at a local location, read without Lance."""

import subprocess
import sys
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from airflow_provider_lancens.namespace.storage.object_store import latest_version, manifest_names, version_of

ROWS = pa.table({"x": [1]})


@pytest.mark.parametrize("version", [1, 2, 999, 2**63 - 1])
def test_a_version_is_read_from_either_name_of_its_manifest(version: int) -> None:
    assert [version_of(f"t.lance/_versions/{name}") for name in manifest_names(version)] == [version] * 2


@pytest.mark.parametrize(
    "name",
    [
        "d123.manifest",
        "1.manifest-0b1c",
        "1.tmp",
        "latest.manifest",
        "manifest",
        ".manifest",
        "-1.manifest",
        f"{2**63}.manifest",
    ],
)
def test_other_files_are_not_versions(name: str) -> None:
    assert version_of(f"_versions/{name}") is None


def test_an_empty_location_has_no_version(tmp_path: Path) -> None:
    assert latest_version(str(tmp_path / "missing"), {}) is None
    assert latest_version(str(tmp_path), {}) is None
    (tmp_path / "_versions").mkdir()
    assert latest_version(str(tmp_path), {}) is None


@pytest.mark.parametrize("v2", [True, False], ids=["V2", "V1"])
@pytest.mark.parametrize("spelling", ["{}", "file:{}", "file://{}"])
def test_the_newest_version_equals_the_one_that_lance_finds(tmp_path: Path, v2: bool, spelling: str) -> None:
    location = str(tmp_path / "a table")
    lance.write_dataset(ROWS, location, enable_v2_manifest_paths=v2)
    for _ in range(10):  # V1 names don't sort as numbers
        written = lance.write_dataset(ROWS, location, mode="append")
    assert latest_version(spelling.format(location), {}) == written.version == 11


@pytest.mark.parametrize(
    ("others", "newest"),
    [
        ([], 3),
        (["9.manifest"], 9),
        (
            [
                "d18446744073709551615.manifest",
                "18446744073709551611.manifest-0b1c",
                "latest_version_hint.json",
            ],
            3,
        ),
        ([".a-file-of-as-many-letters---"], 3),
    ],
    ids=["V2", "V1 too", "others", "as long"],
)
def test_the_newest_version_is_found_among_files_of_any_name(
    tmp_path: Path, others: list[str], newest: int
) -> None:
    (tmp_path / "_versions").mkdir()
    for name in [*(manifest_names(version)[0] for version in (1, 2, 3)), *others]:
        (tmp_path / "_versions" / name).touch()

    assert latest_version(str(tmp_path), {}) == newest


def test_a_detached_commit_is_not_the_newest_version(tmp_path: Path) -> None:
    location = str(tmp_path / "t")
    written = lance.write_dataset(ROWS, location)
    fragments = [fragment.metadata for fragment in written.get_fragments()]
    operation = lance.LanceOperation.Overwrite(written.schema, fragments)
    lance.LanceDataset.commit(location, operation, read_version=1, detached=True)
    assert list(Path(location, "_versions").glob("d*.manifest"))
    assert latest_version(location, {}) == 1


def test_options_of_other_stores_are_passed_on(tmp_path: Path) -> None:
    lance.write_dataset(ROWS, str(tmp_path / "t"))
    assert latest_version(str(tmp_path / "t"), {"aws_region": "eu-west-1", "timeout": "5s"}) == 1


def test_reading_a_version_loads_neither_lance_nor_arrow(tmp_path: Path) -> None:
    script = (
        "import sys; from airflow_provider_lancens.namespace.storage.object_store import latest_version; "
        "latest_version(sys.argv[1], {}); print(sorted({'lance', 'pyarrow', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
