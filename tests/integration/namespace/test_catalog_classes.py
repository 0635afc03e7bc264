"""Connections of type ``lance`` with the classes of lance-namespace-impls, in an environment of their own."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from tests.servers.cache import made_once
from tests.servers.glue_double import GlueDouble
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
    package = f"lance-namespace-impls[glue,hive2,hive3]=={VERSION}"
    for command in (
        [uv, "venv", "--quiet", "--python", sys.executable, folder],
        [uv, "pip", "install", "--quiet", "--python", folder, package, *wanted],
    ):
        subprocess.run(command, check=True, timeout=600)


NOBODY = "127.0.0.1:1"


def on_hive(request: pytest.FixtureRequest) -> tuple[dict[str, str], dict[str, str]]:
    server: MetastoreServer = request.getfixturevalue("hms3")
    return {"uri": server.uri}, {"uri": f"thrift://{NOBODY}"}


def on_glue(request: pytest.FixtureRequest) -> tuple[dict[str, str], dict[str, str]]:
    double: GlueDouble = request.getfixturevalue("glue")
    names = ("region", "endpoint", "access_key_id", "secret_access_key")
    own = {f"property.{name}": double.properties[name] for name in names}
    return own, {"property.endpoint": f"http://{NOBODY}", "property.max_retries": "1"}


@pytest.mark.parametrize(
    ("kind", "server", "parents"),
    [
        ("hive2.Hive2Namespace", on_hive, []),
        ("hive3.Hive3Namespace", on_hive, ["hive"]),
        ("glue.GlueNamespace", on_glue, []),
    ],
)
def test_a_class_of_lance_namespace_impls_is_a_catalog(
    request: pytest.FixtureRequest,
    database: str,
    tmp_path: Path,
    kind: str,
    server: Callable[[pytest.FixtureRequest], tuple[dict[str, str], dict[str, str]]],
    parents: list[str],
) -> None:
    environment = made_once(f"catalog-classes-with-glue-{VERSION}-{version('pylance')}", install)
    properties = [json.dumps(one) for one in server(request)]
    command = [
        environment / "bin" / "python",
        WORKER,
        f"lance_namespace_impls.{kind}",
        *properties,
        tmp_path,
        *parents,
        database,
    ]
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
