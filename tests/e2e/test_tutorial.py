"""The tutorial, followed word by word: its commands are entered in order, and print what it says.

Only the installation of packages is left out, which takes minutes: the clone's environment has those of the
tests. `./scripts/test-minimal-system` shows the installation.
"""

import itertools
import os
import re
import socket
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.dag_run import TREE
from tests.e2e.terminal import Terminal

PAGE = TREE / "docs/tutorial.md"
REPOSITORY = "https://github.com/airflow-provider-lancens/airflow-provider-lancens"
PORT = "9083"
_BLOCK = re.compile(r"^```(?P<kind>\{?[\w-]+\}?)(?P<argument>.*)\n(?P<content>(?:.*\n)*?)```$", re.MULTILINE)
_CAPTION = re.compile(r"^:caption: (.*)$", re.MULTILINE)
_PATIENCE = 900.0


@dataclass(frozen=True)
class Block:
    """A block of the page: commands, what they print, or a file to save."""

    kind: str
    content: str
    file: str = ""


def blocks() -> list[Block]:
    """The blocks in order, without pictures."""
    found = _BLOCK.finditer(PAGE.read_text())
    return [_block(block) for block in found if block["kind"] != "{image}"]


def _block(found: re.Match[str]) -> Block:
    kind, content = found["kind"].strip("{}"), found["content"]
    if kind == "shell" or kind == "text":
        return Block(kind, content)
    [caption] = _CAPTION.findall(content)
    if kind == "literalinclude":
        return Block("file", (PAGE.parent / found["argument"].strip()).read_text(), caption)
    return Block("file", content.partition("\n\n")[2], caption)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A stranger's home, from which the repository's address leads to this tree."""
    folder = tmp_path / "home"
    folder.mkdir()
    config = f'[url "{TREE}"]\n  insteadOf = {REPOSITORY}\n[safe]\n  directory = *\n'
    (folder / ".gitconfig").write_text(config)
    return folder


@pytest.fixture
def terminal(home: Path, tmp_path: Path) -> Iterator[Terminal]:
    """A stranger's shell."""
    paths = [
        path for path in os.environ["PATH"].split(os.pathsep) if path != str(Path(sys.executable).parent)
    ]
    given = {key: os.environ[key] for key in ("JAVA_HOME", "LANG", "TMPDIR") if key in os.environ}
    shell = Terminal(tmp_path, {**given, "HOME": str(home), "PATH": os.pathsep.join(paths)}, _PATIENCE)
    yield shell
    shell.close()


def test_what_a_command_prints_comes_right_after_it() -> None:
    kinds = ["file", *(block.kind for block in blocks())]

    assert {*kinds} == {"file", "shell", "text"}
    assert all(before == "shell" for before, kind in itertools.pairwise(kinds) if kind == "text")


@pytest.mark.long  # the example pipeline runs in other tests of each change
@pytest.mark.timeout(2400)
@pytest.mark.skipif(not (TREE / ".git").exists(), reason="not a clone, so there is nothing to clone")
def test_the_tutorial_does_what_it_says(terminal: Terminal, home: Path, tmp_path: Path) -> None:
    port, rest = free_port(), blocks()
    while rest:
        block = rest.pop(0)
        content = block.content.replace(PORT, port)
        if block.kind == "file":
            (home / "lance-tutorial" / block.file).write_text(content)
            continue
        expected = rest.pop(0).content.replace(PORT, port) if rest and rest[0].kind == "text" else ""
        terminal.enter(content, expected.splitlines(), status=int("PROBLEM" in expected))
        if REPOSITORY in content:
            install_into(tmp_path / "airflow-provider-lancens")


def install_into(clone: Path) -> None:
    """Create the environment that the quickstart would create, with the packages of the tests."""
    folder = clone / ".venv"
    venv.create(folder)
    [packages] = folder.glob("lib/python*/site-packages")
    (packages / "tests.pth").write_text(f"{clone}\n{sysconfig.get_path('purelib')}\n")
    command = folder / "bin/airflow"
    command.write_text(f'#!/bin/sh\nexec "{folder}/bin/python" -m airflow "$@"\n')
    command.chmod(0o755)
    fingerprint = subprocess.run(
        ["bash", "-c", ". scripts/_environment; fingerprint"],
        cwd=clone,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    (folder / ".lancens-fingerprint").write_text(f"{fingerprint} quickstart\n")


def free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])
