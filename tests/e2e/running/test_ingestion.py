"""A manually triggered ingestion by Spark in a running Airflow, and a deferred wait for it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.e2e.servers import RunningAirflow
from tests.integration.airflow.tables import Table
from tests.support.running_lake import Lake

INGESTION, WAIT = "ingested", "overlapping"

pytestmark = pytest.mark.slow


def test_the_quickstart_servers_are_healthy_and_list_its_dag(airflow: RunningAirflow) -> None:
    airflow.wait_until_ready()


@dataclass(frozen=True)
class Ingestion:
    """A run that ingested rows, and one that waited for them."""

    table: Table
    run_id: str
    waiting: str
    """The id of the run that waited."""


@pytest.fixture(scope="module")
def ingestion(airflow: RunningAirflow, lake: Lake) -> Ingestion:
    table = lake.table("ingested")
    table.declare()
    waiting = airflow.trigger_run(WAIT, table=str(table))
    airflow.until(lambda: airflow.task(WAIT, waiting, "wait").get("state") == "deferred")
    airflow.until(lambda: airflow.task(WAIT, waiting, "wait")["triggerer_job"] is not None)
    run_id = airflow.trigger_run(INGESTION, table=str(table))
    assert airflow.until(lambda: airflow.ended(INGESTION, run_id)) == "success"
    return Ingestion(table, run_id, waiting)


def test_ingested_rows_resume_a_deferred_sensor(airflow: RunningAirflow, ingestion: Ingestion) -> None:
    assert airflow.until(lambda: airflow.ended(WAIT, ingestion.waiting)) == "success"
    ingested = airflow.xcom(INGESTION, ingestion.run_id, "ingest")
    assert (ingested["inserted"], ingested["version"], ingested["outcome"]) == (10, 1, "done")
    found = airflow.xcom(WAIT, ingestion.waiting, "wait")
    assert (found["version"], found["previous_version"]) == (1, None)


def test_the_last_line_of_the_log_links_to_the_version(airflow: RunningAirflow, ingestion: Ingestion) -> None:
    table = str(ingestion.table)
    log = airflow.task_log(INGESTION, ingestion.run_id, "ingest")

    last = [line for line in log if table in line][-1]

    assert f"table {table}: committed version 1 with 10 rows, 1 file, " in last
    assert last.endswith(f"; see {airflow.url}/lance/?conn=lake&table={quote(table, safe='')}&version=1")


def test_airflow_emits_the_lineage(airflow: RunningAirflow, ingestion: Ingestion, lineage_log: Path) -> None:
    [output] = airflow.until(lambda: outputs_in(lineage_log, f"{INGESTION}.ingest", ingestion.run_id))

    assert output["name"] == ".".join(ingestion.table.id)
    assert output["facets"]["version"]["datasetVersion"] == "1"
    assert [(field["name"], field["type"]) for field in output["facets"]["schema"]["fields"]] == [
        ("id", "int64")
    ]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 10


def outputs_in(log: Path, job: str, run_id: str) -> list[dict[str, Any]]:
    """The outputs of a task in Airflow's lineage events; none before the event of its success."""
    lines = log.read_text().split("\n")[:-1] if log.exists() else []  # the last one may be incomplete
    events = [json.loads(line) for line in lines]
    of_task = [one for one in events if one["job"]["name"] == job and run_id in str(one["run"])]
    return [output for one in of_task if one["eventType"] == "COMPLETE" for output in one["outputs"]]


def test_a_deferral_asks_for_no_result(airflow: RunningAirflow, lake: Lake) -> None:
    table = lake.table("awaited")
    table.declare()
    waiting = airflow.trigger_run(WAIT, table=str(table))
    airflow.until(lambda: airflow.task(WAIT, waiting, "wait").get("state") == "deferred")

    airflow.until(lambda: airflow.ended_processes(waiting))

    # The sensor itself asks once, for the version that an earlier run returned; its two links don't.
    assert airflow.missing_xcoms(waiting) <= 1
    table.advance()
    assert airflow.until(lambda: airflow.ended(WAIT, waiting)) == "success"


def test_the_doctor_finds_the_connection_and_the_triggerer(airflow: RunningAirflow, lake: Lake) -> None:
    airflow.until(lambda: airflow.healthy())

    done = airflow.command("-m", "airflow_provider_lancens", "doctor", "lake")

    assert "ok      triggerer: it is running" in done.stdout
    assert lake.uri in done.stdout
    assert done.returncode == 0, done.stdout + done.stderr
