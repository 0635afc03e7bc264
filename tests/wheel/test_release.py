"""A release, installed on each Python with the lowest and the newest Airflow: `./scripts/release`."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.support.installed_packages import Installed, install_with_uv
from tests.wheel.airflow_releases import supported_releases
from tests.wheel.python_versions import SUPPORTED, interpreter

# Each change is tested with one of these environments, by `test_without_extras`.
pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

NAME = "airflow-provider-lancens"
IMPORTED = """
import importlib
for package in ("operators", "sensors", "triggers", "assets", "hooks", "namespace", "doctor", "embedded"):
    module = importlib.import_module(f"airflow_provider_lancens.{package}")
    for name in module.__all__:
        getattr(module, name)
import airflow_provider_lancens
print(airflow_provider_lancens.__version__)
"""
NOWHERE = json.dumps({"conn_type": "lance_hive2", "host": "127.0.0.1:1", "extra": {"root": "/tmp/lake"}})


RELEASES = supported_releases()
AIRFLOWS = {"lowest": RELEASES[0], "newest": RELEASES[-1]}


@pytest.fixture(scope="module", params=list(product(SUPPORTED, AIRFLOWS, ["wheel", "sdist"])), ids="-".join)
def released(
    request: pytest.FixtureRequest, wheel: Path, sdist: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    """An environment with one distribution and one Airflow, with packages of that Airflow's day.

    The README says to install it with Airflow's constraints: an Airflow fails with much newer packages.
    """
    python, airflow, kind = request.param
    folder = tmp_path_factory.mktemp("empty")
    wanted = f"{NAME} @ {(wheel if kind == 'wheel' else sdist).as_uri()}"
    release = AIRFLOWS[airflow]
    pin = f"apache-airflow=={release.version}"
    install_with_uv(interpreter(python) or python, folder / "venv", *release.limits, wanted, pin)
    yield Installed(folder)
    shutil.rmtree(folder, ignore_errors=True)


def test_every_public_name_can_be_imported(released: Installed, wheel: Path) -> None:
    printed = released.run("-W", "error::DeprecationWarning:airflow_provider_lancens", "-c", IMPORTED)

    assert f"-{printed.split()[-1]}-" in wheel.name


def test_airflow_lists_the_provider(released: Installed, wheel: Path) -> None:
    listed = json.loads(
        released.run("-m", "airflow", "providers", "list", "--output", "json").splitlines()[-1]
    )

    [found] = (provider for provider in listed if provider["package_name"] == NAME)
    assert f"-{found['version']}-" in wheel.name


def test_the_doctor_starts_and_reports_that_no_metastore_answers(released: Installed) -> None:
    done = subprocess.run(
        [released.python, "-m", "airflow_provider_lancens", "doctor", "lake"],
        cwd=released.folder,
        env=released.environment(AIRFLOW_CONN_LAKE=NOWHERE),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1, done.stderr
    assert re.search(rf"^ok +packages: apache-airflow \S+, {NAME} ", done.stdout, re.MULTILINE), done.stdout
    assert "metastore" in done.stdout
