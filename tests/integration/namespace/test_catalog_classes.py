"""Connections of type ``lance`` with the classes of lance-namespace-impls, in an environment of their own."""

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from tests.servers.cache import made_once
from tests.servers.peer import VERSION

TREE = Path(__file__).parents[3]
WORKER = Path(__file__).with_name("catalog_worker.py")
PACKAGES = ("lance-namespace", "pylance", "obstore", "sqlglot")
"""What the package needs for them, in the versions of the development environment."""
UNSUPPORTED, NO_NAMESPACE, EXISTS, NOT_EMPTY, NO_TABLE, TABLE_EXISTS, UNAVAILABLE = 0, 1, 2, 3, 4, 5, 17

pytestmark = pytest.mark.thorough


def install(folder: Path) -> None:
    uv = shutil.which("uv")
    assert uv, "No uv in PATH: it comes with the development environment."
    wanted = [f"{name}=={version(name)}" for name in PACKAGES]
    package = f"lance-namespace-impls[hive2,hive3]=={VERSION}"
    for command in (
        [uv, "venv", "--quiet", "--python", sys.executable, folder],
        [uv, "pip", "install", "--quiet", "--python", folder, package, *wanted],
    ):
        subprocess.run(command, check=True, timeout=600)


@pytest.mark.parametrize(
    ("kind", "parents"), [("hive2.Hive2Namespace", []), ("hive3.Hive3Namespace", ["hive"])]
)
def test_a_class_of_lance_namespace_impls_is_a_catalog(
    hms3: MetastoreServer, database: str, tmp_path: Path, kind: str, parents: list[str]
) -> None:
    python = made_once(f"catalog-classes-{VERSION}-{version('pylance')}", install) / "bin" / "python"
    command = [python, WORKER, f"lance_namespace_impls.{kind}", hms3.uri, tmp_path, *parents, database]
    run = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TREE)},
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    codes = {name: one["code"] for name, one in found.items() if isinstance(one, dict)}

    assert codes == {
        "create again": EXISTS,
        "declare again": TABLE_EXISTS,
        "exists not": NO_TABLE,
        "register": UNSUPPORTED,
        "drop database": NOT_EMPTY,
        "unreachable": UNAVAILABLE,
    }, found
    done = {name: one for name, one in found.items() if name not in codes}
    assert done.pop("test").startswith(f"catalog lance_namespace_impls.{kind}")
    assert Path(done.pop("declare")).is_relative_to(tmp_path)
    assert done == {
        "create": True,
        "exists": True,
        "list": ["orders"],
        "write": 1,
        "poll": 1,
        "poll missing": None,
        "check": "consistent",
        "deregister": True,
        "drop": True,
    }
