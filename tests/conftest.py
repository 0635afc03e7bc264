"""The real servers that tests share: started when the first test asks, stopped with the run."""

import json
import os
import tempfile
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from tests.servers.releases import hms_2, hms_3, hms_4
from tests.side_by_side import pytest_xdist_make_scheduler

__all__ = ["pytest_xdist_make_scheduler"]

if TYPE_CHECKING:
    from tests.servers.glue_double import GlueDouble
    from tests.servers.yarn import Yarn


# Airflow makes its home when it is first imported: not in that of whoever runs the tests.
_airflow_home = tempfile.TemporaryDirectory(prefix="airflow-home-")
os.environ["AIRFLOW_HOME"] = _airflow_home.name


@pytest.fixture(scope="session")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    """One real Hive Metastore 2.3.10 for the whole run. Tests that hurt a server start their own."""
    with MetastoreServer(hms_2(), tmp_path_factory.mktemp("metastore")) as server:
        yield server


@pytest.fixture(scope="session")
def hms3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    """The same with 3.1.3: catalogs, but no compare-and-set."""
    with MetastoreServer(hms_3(), tmp_path_factory.mktemp("hms3")) as server:
        yield server


@pytest.fixture(scope="session")
def hms4(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    """The same with 4.0.1: catalogs and compare-and-set, but without the old calls."""
    with MetastoreServer(hms_4(), tmp_path_factory.mktemp("hms4")) as server:
        yield server


@pytest.fixture(scope="session")
def glue() -> Iterator["GlueDouble"]:
    """A strict double of AWS Glue, and moto's S3 at the same address."""
    from tests.servers.glue_double import GlueDouble  # brings moto: only where a test asks

    with GlueDouble() as server:
        yield server


@pytest.fixture(scope="session")
def yarn_of_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Yarn"]:
    """A YARN of one node."""
    from tests.servers.yarn import yarn_cluster  # brings PySpark

    with yarn_cluster(tmp_path_factory.mktemp("yarn")) as yarn:
        yield yarn


@pytest.fixture
def yarn(yarn_of_run: "Yarn", monkeypatch: pytest.MonkeyPatch) -> "Yarn":
    """The same, where spark-submit finds it."""
    monkeypatch.setenv("HADOOP_CONF_DIR", str(yarn_of_run.conf_dir))
    return yarn_of_run


@pytest.fixture
def database() -> str:
    """A database name that no other test uses; nothing is made."""
    return f"db_{uuid.uuid4().hex[:12]}"


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Define an Airflow connection by its fields, as its environment holds it, and return its id."""

    def define(conn_id: str = "lake", conn_type: str = "lance_hive2", **fields: Any) -> str:
        value = json.dumps({"conn_type": conn_type, **fields})
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", value)
        return conn_id

    return define
