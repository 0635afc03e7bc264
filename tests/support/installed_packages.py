"""The wheel in empty environments."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.servers.airflow_home import make_airflow_home
from tests.servers.cache import made_once
from tests.wheel.python_versions import RUNNING, SUPPORTED

TREE = Path(__file__).parents[2]


_NOT_INHERITED = ("AIRFLOW", "PYTEST", "PYTHON", "VIRTUAL_ENV", "UV_")


def on_each_python(*extras: str, with_pip: bool = False) -> pytest.MarkDecorator:
    """Run a test with the wheel and these extras installed: on this Python, and `long` on the others.

    Args:
        extras: the extras in brackets after the package's name.
        with_pip: whether to also install it by pip once, which takes minutes, so `long`; otherwise by uv.
    """
    runs = [(version, "uv", version != RUNNING) for version in SUPPORTED]
    if with_pip:
        runs.append((RUNNING, "pip", True))
    parameters = [
        pytest.param(
            (extras, version, installer),
            marks=(pytest.mark.long,) if long else (),
            id="-".join([*extras, version, installer]),
        )
        for version, installer, long in runs
    ]
    return pytest.mark.parametrize("installed", parameters, indirect=True)


@dataclass(frozen=True)
class Installed:
    """An environment with only the wheel and its dependencies."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "venv/bin/python"

    @property
    def dags(self) -> Path:
        """The folder of its Airflow's DAGs."""
        folder = self.folder / "dags"
        folder.mkdir(exist_ok=True)
        return folder

    def environment(self, **more: str) -> dict[str, str]:
        """The environment variables of its processes, without those of the tests' environment."""
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(_NOT_INHERITED)}
        paths = os.environ["PATH"].split(os.pathsep)
        theirs = [path for path in paths if path != str(Path(sys.executable).parent)]
        return {
            **inherited,
            "PATH": os.pathsep.join([str(self.python.parent), *theirs]),
            "AIRFLOW_HOME": str(self.folder / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
            **more,
        }

    def run(self, *arguments: str | Path, **environment: str) -> str:
        """Run its Python in its own folder, and return the output; a failure fails the test."""
        done = subprocess.run(
            [self.python, *arguments],
            cwd=self.folder,
            env=self.environment(**environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def run_dag(self, file: Path, **environment: str) -> tuple[dict[str, Any], str]:
        """Run a DAG by `airflow dags test` successfully; return each task's state and XCom, and the log."""
        make_airflow_home(self.folder / "airflow", self.environment(), self.python)
        # Copies, since an empty environment doesn't have the files beside the originals.
        script = shutil.copy(TREE / "tests/e2e/run_dag.py", self.folder)
        dag = shutil.copy(file, self.dags)
        log = self.run(script, dag, "{}", **environment)
        outcome = json.loads(next(line for line in reversed(log.splitlines()) if line.startswith("{")))
        assert {found["state"] for found in outcome.values()} == {"success"}, log
        return outcome, log


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel: that in `LANCENS_DIST`, or of this tree.

    The wheel is built from the sdist, as by users for whom there is no wheel.
    """
    if built := os.environ.get("LANCENS_DIST"):
        return Path(built)
    folder = tmp_path_factory.mktemp("dist")
    constraints = TREE / "constraints.txt"  # of its build requirements
    _uv("build", "--quiet", "--build-constraints", constraints, "--out-dir", folder, TREE)
    return folder


@pytest.fixture(scope="session")
def wheel(distributions: Path) -> Path:
    """The wheel."""
    [built] = distributions.glob("*.whl")
    return built


def install_with_uv(python: str, venv: Path, *wanted: str | Path) -> None:
    """Create an environment and install into it.

    Args:
        python: a version, which uv installs if it is missing, or an interpreter's path.
        venv: the environment's folder.
        wanted: arguments of ``uv pip install``.
    """
    _uv("venv", "--quiet", "--python", python, venv)
    _uv("pip", "install", "--quiet", "--python", venv / "bin/python", *wanted)


def wheel_of_pyspark(wanted: str) -> Path:
    """A folder with a wheel of this PySpark, which is published as source and takes a minute to build."""
    exact = f"pyspark=={wanted}"
    build = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", exact, "--wheel-dir")
    return made_once(f"{exact}-wheel", lambda folder: run_command(*build, folder))


def pyspark_alone(wanted: str) -> Path:
    """A folder with this PySpark, which is used instead of the installed one if it is in ``PYTHONPATH``."""
    wheels = wheel_of_pyspark(wanted)  # first, since both are made under one lock
    [built] = wheels.glob("*.whl")
    install = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", built, "--target")
    return made_once(f"pyspark=={wanted}", lambda folder: run_command(*install, folder))


def _uv(*arguments: str | Path) -> None:
    run_command(sys.executable, "-m", "uv", *arguments)


def run_command(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
