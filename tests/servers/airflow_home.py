"""Airflow homes with a migrated database: copies of a template that is created once for each version."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from tests.servers.cache import made_once

_FOLDER_IN_TEMPLATE = "@AIRFLOW_HOME@"


def make_airflow_home(
    folder: Path, environment: Mapping[str, str], python: str | Path = sys.executable
) -> None:
    """Create the database and the configuration of a home, as `airflow db migrate` does.

    Args:
        folder: the home; other files in it are kept.
        environment: environment variables of the Python process.
        python: a Python with Airflow installed.
    """
    asked = [python, "-c", "from importlib.metadata import version; print(version('apache-airflow-core'))"]
    version = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True).stdout
    make = partial(_migrate, [python, "-m", "airflow", "db", "migrate"], environment)
    shutil.copytree(made_once(f"airflow-{version.strip()}-home", make), folder, dirs_exist_ok=True)
    _replace(folder / "airflow.cfg", _FOLDER_IN_TEMPLATE, str(folder))


def _migrate(command: list[str | Path], environment: Mapping[str, str], folder: Path) -> None:
    own = {name: value for name, value in environment.items() if not name.startswith("AIRFLOW")}
    settings = {
        "AIRFLOW_HOME": str(folder),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
    }
    done = subprocess.run(command, env={**own, **settings}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shutil.rmtree(folder / "logs", ignore_errors=True)
    _replace(folder / "airflow.cfg", str(folder), _FOLDER_IN_TEMPLATE)


def _replace(file: Path, old: str, new: str) -> None:
    file.write_text(file.read_text().replace(old, new))
