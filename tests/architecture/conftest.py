"""A Python of its own for each question about imports: what another test loaded must not answer it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def ask_fresh_python(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Run a script in a fresh Python and return the JSON that its last line holds."""
    folder = tmp_path_factory.mktemp("fresh-python")
    # Parsing is measured on compiled modules, as a running Airflow has them, wherever this tree lies.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPYCACHEPREFIX": str(folder / "pycache"), "AIRFLOW_HOME": str(folder / "airflow")}

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
