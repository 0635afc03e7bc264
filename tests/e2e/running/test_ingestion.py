"""A manually triggered ingestion by Spark in a running Airflow, and a deferred wait for it."""

from urllib.parse import quote

import pytest

from tests.e2e.running.conftest import Lake
from tests.e2e.servers import RunningAirflow

INGESTION, WAIT = "ingested", "overlapping"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_the_quickstart_servers_are_healthy_and_list_its_dag(airflow: RunningAirflow) -> None:
    airflow.wait_until_ready()


def test_ingested_rows_resume_a_deferred_sensor(airflow: RunningAirflow, lake: Lake) -> None:
    table = lake.table("ingested")
    table.declare()
    waiting = airflow.trigger_run(WAIT, table=str(table))
    airflow.until(lambda: airflow.task(WAIT, waiting, "wait").get("state") == "deferred")
    airflow.until(lambda: airflow.task(WAIT, waiting, "wait")["triggerer_job"] is not None)

    run_id = airflow.trigger_run(INGESTION, table=str(table))

    assert airflow.until(lambda: airflow.ended(INGESTION, run_id)) == "success"
    assert airflow.until(lambda: airflow.ended(WAIT, waiting)) == "success"
    ingested = airflow.xcom(INGESTION, run_id, "ingest")
    assert (ingested["rows"], ingested["version"], ingested["committed"]) == (10, 1, True)
    seen = airflow.xcom(WAIT, waiting, "wait")
    assert (seen["version"], seen["previous_version"]) == (1, None)
    # The last line of its log links to the version.
    last = [line for line in airflow.task_log(INGESTION, run_id, "ingest") if str(table) in line][-1]
    page = f"{airflow.url}/lance/?conn=lake&table={quote(str(table), safe='')}&version=1"
    assert f"table {table}: committed version 1 with 10 rows, 1 files, " in last
    assert last.endswith(f"; see {page}")


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
