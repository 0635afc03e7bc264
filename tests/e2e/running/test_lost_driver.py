"""A task is killed with SIGKILL while YARN runs its driver: Airflow's retry waits for that driver."""

import shutil
from pathlib import Path

import psutil
import pytest

from tests.e2e.servers import RunningAirflow
from tests.servers.yarn import Yarn
from tests.support.running_lake import Lake

DAG = "held"

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


def test_the_retry_of_a_lost_task_waits_for_its_driver(
    airflow: RunningAirflow, lake: Lake, yarn: Yarn, hadoop_conf_dir: Path, tmp_path: Path
) -> None:
    table = lake.table("held")
    table.declare()
    shutil.copytree(yarn.conf_dir, hadoop_conf_dir)
    conf = {"table": str(table), "folder": str(tmp_path), "spark_conf": yarn.spark_conf}
    run_id = airflow.trigger_run(DAG, **conf)
    airflow.until((tmp_path / "running").exists)

    for process in task_with_spark_submit(yarn):
        process.kill()
    airflow.until(
        lambda: any("Reattached to driver" in line for line in airflow.task_log(DAG, run_id, "ingest", 2))
    )
    (tmp_path / "released").touch()

    assert airflow.until(lambda: airflow.ended(DAG, run_id)) == "success"
    ingested = airflow.xcom(DAG, run_id, "ingest")
    assert (ingested["version"], ingested["inserted"], ingested["outcome"]) == (1, 10, "done")
    assert airflow.task(DAG, run_id, "ingest")["try_number"] == 2
    assert not any("Submitting application" in line for line in airflow.task_log(DAG, run_id, "ingest", 2))


def task_with_spark_submit(yarn: Yarn) -> list[psutil.Process]:
    """The process of the task that submits to this cluster, and its spark-submit."""
    setting = f"spark.yarn.stagingDir={yarn.staging.as_uri()}"
    [submitting] = [one for one in psutil.process_iter(["cmdline"]) if is_submitting(one, setting)]
    task = submitting.parent()
    assert task is not None
    return [task, submitting]


def is_submitting(process: psutil.Process, setting: str) -> bool:
    command = process.info["cmdline"] or ()
    return "org.apache.spark.deploy.SparkSubmit" in command and setting in command
