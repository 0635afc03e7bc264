"""Fresh Python processes for tests of imports, so that modules loaded by other tests don't matter."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.bytecode import environment_with_bytecode
from tests.support.repository import ROOT

IN_FORKS = """
import json, os, sys

def in_a_fork(function, arguments):
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            os.close(reading)
            with os.fdopen(writing, "w") as answer:
                json.dump(function(*arguments), answer)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, arguments
    return json.loads(text)

print(json.dumps([in_a_fork(answer, arguments) for arguments in json.loads(sys.argv[1])]))
"""


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def ask_fresh_python(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Run a script in a fresh Python, and return the JSON in its last line of output."""
    folder = tmp_path_factory.mktemp("fresh-python")
    environment = {**environment_with_bytecode(folder), "AIRFLOW_HOME": str(folder / "airflow")}

    def ask(script: str, *arguments: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return ask


@pytest.fixture(scope="session")
def ask_forks(ask_fresh_python: Callable[..., Any]) -> Callable[[str, Sequence[Sequence[Any]]], list[Any]]:
    """Run a script that defines `answer`, and return its result for each list of arguments.

    Each call runs in a fork, which has the script's modules loaded and doesn't affect the next call.
    """
    return lambda script, arguments: ask_fresh_python(script + IN_FORKS, json.dumps(arguments))
