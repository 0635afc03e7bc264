"""Rules for all tracked files."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import airflow_provider_lancens

REGISTRY = re.compile(
    r"\b(pypi|pythonhosted|npmjs|maven|debian|ubuntu|crates|golang)\.(python\.|apache\.)?(org|io|com)\b"
)
MACHINE_PATH = re.compile(r"(^|[^\w.])/(work|root|home/\w+)/", re.MULTILINE)


@pytest.fixture(scope="module")
def texts(root: Path) -> dict[str, str]:
    """The project's text files: tracked ones, and new ones that aren't ignored."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    files = [root / name for name in listing.split("\0") if name]
    contents = {file: file.read_bytes() for file in files if file.is_file()}
    return {
        str(file.relative_to(root)): content.decode()
        for file, content in contents.items()
        if b"\0" not in content
    }


@pytest.mark.parametrize("pattern", [REGISTRY, MACHINE_PATH], ids=["registry", "machine path"])
def test_no_file_mentions_the_machine_it_was_made_on(texts: dict[str, str], pattern: re.Pattern[str]) -> None:
    assert [name for name, text in texts.items() if pattern.search(text)] == []


def test_the_version_is_the_same_in_both_places(texts: dict[str, str]) -> None:
    project = tomllib.loads(texts["pyproject.toml"])["project"]

    assert project["version"] == airflow_provider_lancens.__version__


@pytest.mark.parametrize(("position", "command"), [(0, "./scripts/quickstart"), (1, "./scripts/test")])
def test_the_readme_starts_with_two_single_line_commands(
    texts: dict[str, str], position: int, command: str
) -> None:
    blocks = re.findall(r"^```[^\n]*\n(.*?)^```", texts["README.md"], re.MULTILINE | re.DOTALL)

    assert blocks[position] == f"{command}\n"
