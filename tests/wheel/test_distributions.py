"""The content of wheel and sdist, and their metadata."""

import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path, PurePosixPath

import pytest
from packaging.metadata import Metadata

import airflow_provider_lancens
from tests.support.installed_packages import TREE

pytestmark = pytest.mark.slow

PACKAGE = "airflow_provider_lancens"
STEM = f"{PACKAGE}-{airflow_provider_lancens.__version__}"
GENERATED = {"PKG-INFO"}


@pytest.fixture(scope="module")
def tracked() -> set[str]:
    """The paths of the project's tracked files, without those whose names begin with a dot."""
    command = ["git", "ls-files", "-z"]
    done = subprocess.run(command, cwd=TREE, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a clone, so it isn't known which files are the project's")
    return {name for name in done.stdout.split("\0") if name and not name.startswith(".")}


@pytest.fixture(scope="module")
def in_wheel(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def in_sdist(sdist: Path) -> dict[str, bytes]:
    with tarfile.open(sdist) as archive:
        files = [(file.name, archive.extractfile(file)) for file in archive if file.isfile()]
        return {str(PurePosixPath(name).relative_to(STEM)): file.read() for name, file in files if file}


def test_the_wheel_has_every_file_of_the_package_and_its_license(
    in_wheel: dict[str, bytes], tracked: set[str]
) -> None:
    package = {name for name in tracked if name.startswith(f"{PACKAGE}/")}
    about = {name for name in in_wheel if name.startswith(f"{STEM}.dist-info/")}

    assert set(in_wheel) - about == package
    assert f"{PACKAGE}/py.typed" in package
    assert in_wheel[f"{STEM}.dist-info/licenses/LICENSE"] == (TREE / "LICENSE").read_bytes()


def test_the_sdist_has_every_file_of_the_project(in_sdist: dict[str, bytes], tracked: set[str]) -> None:
    assert {name for name in in_sdist if not name.startswith(".")} - GENERATED == tracked


def test_both_have_the_files_of_this_tree(in_wheel: dict[str, bytes], in_sdist: dict[str, bytes]) -> None:
    for content in (in_wheel, in_sdist):
        package = {name: text for name, text in content.items() if name.startswith(f"{PACKAGE}/")}
        assert [name for name, text in package.items() if (TREE / name).read_bytes() != text] == []


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_the_metadata_is_valid_and_complete(
    kind: str, in_wheel: dict[str, bytes], in_sdist: dict[str, bytes]
) -> None:
    text = in_sdist["PKG-INFO"] if kind == "sdist" else in_wheel[f"{STEM}.dist-info/METADATA"]

    metadata = Metadata.from_email(text, validate=True)  # as package indices check it

    project = tomllib.loads((TREE / "pyproject.toml").read_text())["project"]
    assert str(metadata.version) == project["version"]
    assert (metadata.summary, str(metadata.requires_python)) == (
        project["description"],
        project["requires-python"],
    )
    assert (metadata.license_expression, metadata.license_files) == ("Apache-2.0", ["LICENSE"])
    assert metadata.description_content_type == "text/markdown"
    assert (metadata.description or "").strip() == (TREE / "README.md").read_text().strip()
    assert set(metadata.provides_extra or ()) == set(project["optional-dependencies"])


def test_airflow_finds_the_provider_by_its_entry_point(in_wheel: dict[str, bytes]) -> None:
    entry_points = in_wheel[f"{STEM}.dist-info/entry_points.txt"].decode()

    assert "[apache_airflow_provider]\nprovider_info = " in entry_points
