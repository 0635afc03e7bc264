"""The documents of a release: bill of materials, provenance and digests."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.installed_packages import TREE

pytestmark = pytest.mark.thorough

PROJECT = tomllib.loads((TREE / "pyproject.toml").read_text())["project"]
STEM = f"{PROJECT['name']}-{PROJECT['version']}"


@pytest.fixture(scope="module")
def release(wheel: Path, sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with wheel, sdist and their documents."""
    if not (TREE / ".git").exists():
        pytest.skip("not a clone, so there is no commit")
    folder = tmp_path_factory.mktemp("release")
    for file in (wheel, sdist):
        shutil.copy(file, folder)
    subprocess.run([sys.executable, TREE / "scripts/release_documents.py", folder], check=True)
    return folder


@pytest.fixture
def statement(release: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((release / f"{STEM}.intoto.json").read_text())
    return found


@pytest.fixture
def materials(release: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((release / f"{STEM}.cdx.json").read_text())
    return found


def test_the_digests_are_those_of_the_files(release: Path, statement: dict[str, Any]) -> None:
    checked = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"],
        cwd=release,
        capture_output=True,
        text=True,
        check=False,
    )

    assert checked.returncode == 0, checked.stderr
    sums = dict(line.split()[::-1] for line in (release / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == {file.name for file in release.iterdir()} - {"SHA256SUMS"}
    digests = {one["name"]: one["digest"]["sha256"] for one in statement["subject"]}
    assert digests == {name: sums[name] for name in sums if name.endswith((".whl", ".tar.gz"))}


def test_the_provenance_names_the_commit_and_what_built_it(statement: dict[str, Any]) -> None:
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=TREE, capture_output=True, text=True, check=True
    ).stdout.strip()
    build, run = (statement["predicate"][name] for name in ("buildDefinition", "runDetails"))

    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://slsa.dev/provenance/v1"
    assert build["resolvedDependencies"][0]["digest"] == {"gitCommit": commit}
    assert commit in run["builder"]["id"]
    assert set(run["builder"]["version"]) == {"python", "uv", "hatchling"}


def test_another_build_of_the_commit_has_the_same_digests(statement: dict[str, Any], tmp_path: Path) -> None:
    """By which a user verifies a release."""
    command = [
        sys.executable,
        "-m",
        "uv",
        "build",
        "--quiet",
        "--build-constraints",
        TREE / "constraints.txt",
    ]
    subprocess.run([*command, "--out-dir", tmp_path, TREE], check=True)

    again = {file.name: sha256(file) for file in tmp_path.iterdir() if not file.name.startswith(".")}
    assert again == {one["name"]: one["digest"]["sha256"] for one in statement["subject"]}


def sha256(file: Path) -> str:
    """The digest as the system's own command prints it."""
    return subprocess.run(["sha256sum", file], capture_output=True, text=True, check=True).stdout.split()[0]


def test_the_bill_of_materials_has_each_dependency_at_its_pinned_version_with_hashes(
    materials: dict[str, Any],
) -> None:
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)", (TREE / "constraints.txt").read_text(), re.MULTILINE))
    asked = [*PROJECT["dependencies"], *chain(*PROJECT["optional-dependencies"].values())]
    direct = {canonicalize_name(Requirement(one).name) for one in asked}
    found = {canonicalize_name(one["name"]): one for one in materials["components"]}

    assert (materials["bomFormat"], materials["metadata"]["component"]["name"]) == (
        "CycloneDX",
        PROJECT["name"],
    )
    assert materials["metadata"]["component"]["version"] == PROJECT["version"]
    assert {name: found[name]["version"] for name in direct} == {name: pinned[name] for name in direct}
    assert [one["name"] for one in found.values() if not hashes(one)] == []


def hashes(component: dict[str, Any]) -> list[Any]:
    """All hashes of a component, which are those of its distributions."""
    references = component.get("externalReferences", [])
    return [one for source in (component, *references) for one in source.get("hashes", [])]
