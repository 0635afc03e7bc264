"""Ingestion on a real YARN cluster, which runs the driver; the task finds its commit."""

import shutil
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.hooks.airflow_errors import LanceRetryableError
from airflow_provider_lancens.namespace import Hive2Namespace
from airflow_provider_lancens.operators.ingest import LanceAppendOperator
from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.submit import Job, submitted
from tests.integration.airflow.tables import Table
from tests.integration.spark.run_twice import context_of
from tests.integration.spark.submit.ingestion_sources import failing, processes_that_show
from tests.servers.yarn import LOG, Yarn

pytestmark = pytest.mark.long

SECONDS = 300


def yarn_connection(deploy_mode: str) -> dict[str, Any]:
    """The fields of an Airflow connection."""
    return {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": deploy_mode}}


@pytest.mark.parametrize("deploy_mode", ["cluster", "client"])
def test_rows_arrive_once_and_no_secret_shows(
    yarn: Yarn, ingest: Callable[..., Any], secret: str, deploy_mode: str
) -> None:
    answers, log = ingest(yarn_connection(deploy_mode), spark_conf=yarn.spark_conf)

    results = [(answer["version"], answer["inserted"], answer["outcome"] == "done") for answer in answers]
    assert results == [(1, 2, True), (1, 2, False)]
    assert secret not in log
    holding = [file for file in files_below(yarn.folder) if secret.encode() in file.read_bytes()]
    # Only the driver's script, once: executors have no copy, and the uploaded files were removed.
    assert {file.name for file in holding} == ({"lance_job.py"} if deploy_mode == "cluster" else set())
    assert not [file for file in holding if file.is_relative_to(yarn.staging)]
    assert not [file for file in holding if others_may_read(file, yarn.folder)]


def test_a_failed_job_reports_where_its_driver_logs_are(
    yarn: Yarn, metastore: MetastoreServer, connect: Callable[..., str], database: str, tmp_path: Path
) -> None:
    with closing(Hive2Namespace(uri=metastore.uri, root=str(tmp_path))) as namespace:
        table = Table(namespace, database, "orders")
        table.declare()
    connect(host=metastore.uri, extra={"root": str(tmp_path)})
    connect("yarn", **yarn_connection("cluster"))
    where = {"table": str(table), "spark_conn_id": "yarn", "spark_conf": yarn.spark_conf}
    task = LanceAppendOperator(task_id="ingest", lance_conn_id="lake", source=failing, **where)

    with pytest.raises(LanceRetryableError) as error:
        task.execute(context_of(task, 1))

    said = str(error.value)
    assert "User application exited with status 1" in said
    [application] = {word for word in said.split() if word.startswith("application_")}
    assert said.endswith(f"yarn logs -applicationId {application}")
    assert "there is no month 13" in log_of(yarn, application)


@pytest.fixture(params=["by-its-id", "by-its-tag"])
def findable(
    request: pytest.FixtureRequest, yarn: Yarn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    """How the application is found: by its id in spark-submit's log, or by its tag."""
    if request.param == "by-its-tag":
        shutil.copytree(yarn.conf_dir, tmp_path / "conf")
        (tmp_path / "conf" / "log4j2.properties").write_text(LOG.replace("info", "warn"))
        monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path / "conf"))
    return str(request.param)


def test_a_killed_task_ends_its_application_on_the_cluster(
    yarn: Yarn, spec: NamespaceSpec, table: str, findable: str, tmp_path: Path
) -> None:
    marker = tmp_path / "hanging"
    source = "tests.e2e.hanging:hanging"
    job = Job(spec.impl, spec.properties, table, source, kwargs={"marker": str(marker)})
    with submitted(job, {"spark.master": "yarn", **yarn.spark_conf}) as submission:
        wait_until(marker.exists)
        worker, daemon, jvm = (Path("/proc", pid) for pid in marker.read_text().split())

        assert bool(submission.log_command) == (findable == "by-its-id")

        submission.kill()

        assert submission.wait() != 0
    wait_until(lambda: not any(process.exists() for process in (worker, daemon, jvm)))
    wait_until(lambda: not processes_that_show(str(yarn.containers)))
    if findable == "by-its-id":  # otherwise spark-submit, which removes its uploaded files, was ended first
        wait_until(lambda: not list(yarn.staging.rglob("lance_job.py")))


def log_of(yarn: Yarn, application: str) -> str:
    """The output of its containers."""
    return "".join(file.read_text() for file in files_below(yarn.logs / application))


def files_below(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file() and not file.is_symlink()]


def others_may_read(file: Path, top: Path) -> bool:
    """Whether every user may read the file, and enter all its folders below this one."""
    way = list(file.relative_to(top).parents)[:-1]
    return file.stat().st_mode & 0o004 > 0 and all((top / folder).stat().st_mode & 0o001 for folder in way)


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)
