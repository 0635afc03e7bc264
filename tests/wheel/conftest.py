"""The wheel in empty environments, installed without constraints, as in the README."""

import json
import shutil
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.support.installed_packages import (
    Installed,
    distributions,
    install_with_uv,
    run_command,
    wheel,
    wheel_of_pyspark,
)
from tests.wheel.python_versions import interpreter

__all__ = ["distributions", "wheel"]


@pytest.fixture(scope="session")
def sdist(distributions: Path) -> Path:
    """The sdist."""
    [built] = distributions.glob("*.tar.gz")
    return built


@pytest.fixture(scope="module")
def installed(
    request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    """The environment that `on_each_python` selects."""
    extras, wanted_python, installer = request.param
    python = interpreter(wanted_python)
    if python is None:
        pytest.skip(f"no Python {wanted_python} here: neither in PATH nor among pyenv's")
    folder = tmp_path_factory.mktemp("empty")
    wanted = f"airflow-provider-lancens[{','.join(extras)}] @ {wheel.as_uri()}"
    _INSTALLERS[installer](python, folder / "venv", wanted)
    yield Installed(folder)
    shutil.rmtree(folder, ignore_errors=True)  # each is 1 GB if uv's cache is on another disk


def _install_with_uv(python: str, venv: Path, wanted: str) -> None:
    newest = wheel_of_pyspark(version("pyspark"))  # a newer release would be built from its source
    install_with_uv(python, venv, "--find-links", str(newest), wanted)


def _install_with_pip(python: str, venv: Path, wanted: str) -> None:
    run_command(python, "-m", "venv", venv)
    run_command(venv / "bin/python", "-m", "pip", "install", "--quiet", wanted)


_INSTALLERS = {"uv": _install_with_uv, "pip": _install_with_pip}


@pytest.fixture
def connection() -> Callable[..., dict[str, str]]:
    """Define an Airflow connection in its environment."""

    def define(conn_id: str = "lake", conn_type: str = "lance_hive2", **fields: Any) -> dict[str, str]:
        return {f"AIRFLOW_CONN_{conn_id.upper()}": json.dumps({"conn_type": conn_type, **fields})}

    return define
