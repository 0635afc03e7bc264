"""A running Airflow, and the lake that its DAGs use."""

import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from quickstart.home import Home
from tests.e2e.servers import RunningAirflow
from tests.servers.airflow_home import make_airflow_home
from tests.servers.proxy import Proxy
from tests.support.running_lake import CHROMIUM, TREE, Lake

DAGS = [
    "example_dags/schedule_on_commit.py",
    "example_dags/flights.py",
    "example_dags/nycflights",
    "example_dags/publish_after_approval.py",
    "example_dags/changed_days.py",
    "example_dags/freshness.py",
    *(f"tests/e2e/dags/{name}.py" for name in ("held", "ingested", "many", "overlapping", "interruptions")),
]

PLUGINS = TREE / "example_dags/plugins"
"""What the example of a deadline calls."""


@pytest.fixture(scope="package")
def lake(metastore: MetastoreServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    root = tmp_path_factory.mktemp("lake")
    with Proxy(metastore.uri) as wire, closing(Hive2Namespace(uri=metastore.uri, root=str(root))) as there:
        yield Lake(there, metastore.uri, wire, root, f"db_{uuid.uuid4().hex[:12]}")


@pytest.fixture(scope="package")
def hadoop_conf_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where Airflow's tasks look for a cluster; a test that has one creates it."""
    return tmp_path_factory.mktemp("hadoop") / "conf"


@pytest.fixture(scope="package")
def lineage_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file to which Airflow writes its OpenLineage events."""
    return tmp_path_factory.mktemp("lineage") / "events"


@pytest.fixture(scope="package")
def airflow(
    lake: Lake, hadoop_conf_dir: Path, lineage_log: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningAirflow]:
    """Started, but maybe not ready yet: its users wait for the first response."""
    home = Home(tmp_path_factory.mktemp("running"))
    settings = {
        "AIRFLOW_HOME": str(home.airflow),
        "AIRFLOW__CORE__DAGS_FOLDER": str(chosen_dags(home.folder / "dags")),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
        "AIRFLOW__LANCENS__SHOW_SAMPLE_ROWS": "True",
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",  # the files don't change
        # A killed triggerer's waits are reassigned once it is presumed dead, by default after 30 s.
        "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
        "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "8",
        # A killed task is retried once it is presumed dead, by default after 300 s.
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "2",
        "HADOOP_CONF_DIR": str(hadoop_conf_dir),
        "PYTHONPATH": os.pathsep.join(
            [str(TREE), str(PLUGINS), *filter(None, [os.environ.get("PYTHONPATH")])]
        ),
        "LANCE_EXAMPLE_MAX_AGE": "5",
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
        # Of the DAGs that enable it: each event costs a process.
        "AIRFLOW__OPENLINEAGE__SELECTIVE_ENABLE": "True",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(
            {"type": "file", "log_file_path": str(lineage_log), "append": True}
        ),
        **lake.settings,
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        make_airflow_home(home.airflow, os.environ)
        servers = RunningAirflow(home, tasks_at_once=8)  # they are all lightweight
    with servers:
        yield servers
    if os.environ.get("LANCENS_KEEP_LOGS"):
        shutil.copytree(home.logs, os.environ["LANCENS_KEEP_LOGS"], dirs_exist_ok=True)


@pytest.fixture(scope="package")
def ui(airflow: RunningAirflow) -> str:
    """The URL of its UI, once that is available."""
    airflow.until(lambda: airflow.ask("/api/v2/version"))
    return airflow.url


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--no-proxy-server"]
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield opened
        opened.close()


def chosen_dags(folder: Path) -> Path:
    """A folder with only the DAGs of these tests, since Airflow parses all DAGs in its folder."""
    folder.mkdir()
    for dag in DAGS:
        copy = shutil.copytree if (TREE / dag).is_dir() else shutil.copy
        copy(TREE / dag, folder / Path(dag).name)
    return folder
