"""Real servers shared by tests: started on first use, stopped at the end of the run."""

import json
import os
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from airflow_provider_lancens.embedded import MetastoreServer
from tests import tiers
from tests.servers import spark_classes
from tests.servers.releases import hms_2, hms_3, hms_4
from tests.servers.shared import shared_metastore
from tests.support.airflow_versions import IS_LOWEST, NoServer
from tests.xdist_scheduler import longest_first, pytest_xdist_make_scheduler

__all__ = ["pytest_xdist_make_scheduler"]

if TYPE_CHECKING:
    from tests.servers.glue_double import GlueDouble
    from tests.servers.yarn import Yarn


# Airflow creates its home when it is first imported: not in the home of the user who runs the tests.
_airflow_home = tempfile.TemporaryDirectory(prefix="airflow-home-")
os.environ["AIRFLOW_HOME"] = _airflow_home.name

# A slow machine isn't a failure: an example may wait for the CPU longer than it runs.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

spark_classes.configure_drivers()

# How soon Airflow notices that a task's process has ended, and how long a wait lasts at least.
os.environ["AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL"] = "1"


def pytest_configure(config: pytest.Config) -> None:
    """Select the everyday tests unless others are selected."""
    tiers.select_tier(config)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Report which tests are skipped."""
    return tiers.left_out(config)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore the files of other tiers."""
    if collection_path.name.startswith("test_") and collection_path.suffix == ".py":
        return tiers.leaves_out(config.option.markexpr, collection_path) or None
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With several processes, run the longest tests first."""
    if hasattr(config, "workerinput"):
        longest_first(items)


def pytest_runtest_setup() -> None:
    """Start drivers quickly as soon as the archive of their classes is made."""
    spark_classes.use_archive()


@pytest.fixture(scope="session")
def metastore(request: pytest.FixtureRequest) -> MetastoreServer:
    """A real Hive Metastore 2.3.10 for the whole run. Tests that disturb a server start their own."""
    # Each thread keeps its store, so that a connection takes 2 ms of CPU time instead of 30.
    return shared_metastore(request, "metastore", replace(hms_2(), frees_connections=False))


@pytest.fixture(scope="session")
def hms3(request: pytest.FixtureRequest) -> MetastoreServer:
    """The same with 3.1.3: catalogs, but no compare-and-set."""
    return shared_metastore(request, "hms3", hms_3())


@pytest.fixture(scope="session")
def hms4(request: pytest.FixtureRequest) -> MetastoreServer:
    """The same with 4.0.1: catalogs and compare-and-set, but without the old calls."""
    return shared_metastore(request, "hms4", hms_4())


@pytest.fixture(scope="session")
def glue() -> Iterator["GlueDouble"]:
    """A strict double of AWS Glue, and moto's S3 at the same address.

    The SDK's service descriptions are parsed once, not for each client of the tests.
    """
    import botocore.session

    from tests.servers.glue_double import GlueDouble  # imports moto, only for tests that need it

    with GlueDouble() as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", cache(botocore.session.create_loader))
        yield server


@pytest.fixture(scope="session")
def yarn_of_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Yarn"]:
    """A YARN cluster of one node."""
    from tests.servers.yarn import yarn_cluster  # brings PySpark

    with yarn_cluster(tmp_path_factory.mktemp("yarn")) as yarn:
        yield yarn


@pytest.fixture
def yarn(yarn_of_run: "Yarn", monkeypatch: pytest.MonkeyPatch) -> "Yarn":
    """The same, configured for spark-submit."""
    monkeypatch.setenv("HADOOP_CONF_DIR", str(yarn_of_run.conf_dir))
    return yarn_of_run


@pytest.fixture
def database() -> str:
    """A unique database name; nothing is created."""
    return f"db_{uuid.uuid4().hex[:12]}"


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Define an Airflow connection in the environment, and return its id."""
    if IS_LOWEST:
        supervisor = "airflow.sdk.execution_time.task_runner.SUPERVISOR_COMMS"
        monkeypatch.setattr(supervisor, NoServer(), raising=False)

    def define(conn_id: str = "lake", conn_type: str = "lance_hive2", **fields: Any) -> str:
        value = json.dumps({"conn_type": conn_type, **fields})
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", value)
        return conn_id

    return define
