"""Reruns and interruptions of tasks that write in a running Airflow, and the rows after each.

Each has a table and runs of its own. Those that take minutes are marked `long`.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import psutil
import pyarrow as pa
import pytest

from airflow_provider_lancens.embedded import EmbeddedMetastore
from airflow_provider_lancens.namespace import Hive2Namespace
from tests.e2e.servers import RunningAirflow, run_path
from tests.integration.airflow.tables import Table
from tests.servers.spark import connect_address, connect_daemon, connect_server
from tests.support.running_lake import Lake

MAPPED, RELOADED, CLEARED, FILED, HELD, DATED = (
    f"{name}_writes" for name in ("mapped", "reloaded", "cleared", "filed", "held", "dated")
)
PATIENCE = 900

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(1800), pytest.mark.usefixtures("shared_spark")]


def test_a_list_that_grows_in_front_neither_skips_nor_doubles_when_its_run_is_cleared(
    airflow: RunningAirflow, lake: Lake, tmp_path: Path
) -> None:
    table, listed = declared(lake, "listed"), tmp_path / "list"
    listed.write_text("a b")
    run_id = airflow.trigger_run(MAPPED, table=str(table), list=str(listed))
    assert ended(airflow, MAPPED, run_id) == "success"
    assert rows(table) == {"a": 10, "b": 10}

    listed.write_text("new b a")
    assert clear(airflow, MAPPED, run_id, "items") == "success"
    assert rows(table) == {"a": 10, "b": 10, "new": 10}


def test_a_day_is_reloaded_by_a_clear_and_an_ingestion_marked_as_success_leaves_no_wait(
    airflow: RunningAirflow, lake: Lake, tmp_path: Path
) -> None:
    table, file = declared(lake, "reloaded"), tmp_path / "count"
    file.write_text("10")
    run_id = airflow.trigger_run(RELOADED, table=str(table), file=str(file))
    assert ended(airflow, RELOADED, run_id) == "success"
    assert rows(table) == {"day": 10}

    file.write_text("7")
    assert clear(airflow, RELOADED, run_id, "load") == "success"
    assert rows(table) == {"day": 7}
    waited: Any = airflow.xcom(RELOADED, run_id, "wait")

    # The sensor and its readers alone: it ends at once, with the version that is there.
    assert clear(airflow, RELOADED, run_id, "wait") == "success"
    assert airflow.xcom(RELOADED, run_id, "wait") == waited
    assert rows(table) == {"day": 7}

    file.unlink()
    other = airflow.trigger_run(RELOADED, "2026-01-05T00:00:00Z", table=str(table), file=str(file))
    assert ended(airflow, RELOADED, other) == "failed"
    mark(airflow, RELOADED, other, "load", "success")
    assert clear(airflow, RELOADED, other, "wait") == "failed"
    assert says(airflow, RELOADED, other, "wait", "or by another task, but came out empty")
    assert rows(table) == {"day": 7}


def test_each_kind_of_write_is_made_again_by_a_clear_as_the_docs_say(
    airflow: RunningAirflow, lake: Lake, tmp_path: Path
) -> None:
    kinds = ["append", "append_if_changed", "append_skipped", "append_again", "part", "all", "upsert"]
    kinds += ["delete", "restore"]
    tables, file = {kind: declared(lake, f"cleared_{kind}") for kind in kinds}, tmp_path / "count"
    for table in tables.values():
        add(table, 1000)
    file.write_text("10")
    given = {"table": str(tables["append"]).removesuffix("_append"), "file": str(file)}
    run_id = airflow.trigger_run(CLEARED, **given)
    assert ended(airflow, CLEARED, run_id) == "success"
    day = {"other": 1, "day": 10}
    first = dict.fromkeys(kinds, day) | {"all": {"day": 10}, "delete": {}, "restore": {"other": 1}}
    assert {kind: rows(table) for kind, table in tables.items()} == first

    # The source has fewer rows now; others have appended rows that are to be deleted.
    file.write_text("7")
    add(tables["delete"], 1001, 1002)
    assert clear(airflow, CLEARED, run_id, *kinds) == "success"
    fewer = {"other": 1, "day": 7}
    second = first | {"append": fewer, "append_again": {"other": 1, "day": 17}, "part": fewer}
    second["all"] = {"day": 7}
    assert {kind: rows(table) for kind, table in tables.items()} == second
    outcomes = {kind: airflow.xcom(CLEARED, run_id, kind)["outcome"] for kind in kinds}
    skipped = {kind for kind, outcome in outcomes.items() if outcome == "skipped"}
    assert skipped == {"append_if_changed", "append_skipped"}
    assert airflow.xcom(CLEARED, run_id, "upsert")["updated"] == 7

    # After a compaction, and after others have written, what can't be made again exactly is refused.
    for kind in ("append", "part"):
        lance.dataset(namespace_client=lake.namespace, table_id=tables[kind].id).optimize.compact_files()
    for kind in ("all", "restore"):
        add(tables[kind], 1003)
    before = {kind: rows(tables[kind]) for kind in ("append", "all", "restore")}
    assert clear(airflow, CLEARED, run_id, "append", "part", "all", "restore") == "failed"
    assert {kind: rows(tables[kind]) for kind in before} == before
    assert rows(tables["part"]) == fewer
    reasons = {"append": "compacted without stable row ids", "all": "changed rows", "restore": "changed rows"}
    for kind, reason in reasons.items():
        assert airflow.task(CLEARED, run_id, kind)["state"] == "failed"
        for text in (reason, "'skip'", "'write_again'"):
            assert says(airflow, CLEARED, run_id, kind, text)
    assert airflow.task(CLEARED, run_id, "part")["state"] == "success"


@pytest.mark.long
def test_a_late_file_is_added_by_a_clear_and_refused_where_the_run_says_skip(
    airflow: RunningAirflow, lake: Lake, tmp_path: Path
) -> None:
    table = declared(lake, "filed")
    land(tmp_path, "early", 10)
    given = {"table": str(table), "folder": str(tmp_path)}
    run_id = airflow.trigger_run(FILED, "2026-01-01T00:00:00Z", **given)
    assert ended(airflow, FILED, run_id) == "success"
    assert rows(table) == {"early": 10}
    skipping = airflow.trigger_run(
        FILED, "2026-01-02T00:00:00Z", **given, lance_on_existing_key={"load": "skip"}
    )
    assert ended(airflow, FILED, skipping) == "success"
    assert rows(table) == {"early": 20}

    assert clear(airflow, FILED, run_id, "load") == "success"
    assert airflow.xcom(FILED, run_id, "load")["outcome"] == "skipped"
    assert rows(table) == {"early": 20}

    land(tmp_path, "late", 5)
    assert clear(airflow, FILED, run_id, "load") == "success"
    assert rows(table) == {"early": 20, "late": 5}
    assert clear(airflow, FILED, skipping, "load") == "failed"
    assert says(airflow, FILED, skipping, "load", "with different data (fingerprint ")
    assert rows(table) == {"early": 20, "late": 5}


@pytest.mark.long
def test_a_task_that_goes_on_after_its_supervisor_was_killed_writes_once_with_its_retry(
    airflow: RunningAirflow, lake: Lake, tmp_path: Path
) -> None:
    table = declared(lake, "unsupervised")
    run_id = airflow.trigger_run(HELD, table=str(table), folder=str(tmp_path))
    worker, *_ = airflow.until(lambda: running(tmp_path), PATIENCE)
    before = tries(airflow, run_id)

    supervisor_of(airflow, worker).kill()
    airflow.until(lambda: len(running(tmp_path)) > 1, PATIENCE)  # both write at once
    release(tmp_path)

    assert ended(airflow, HELD, run_id) == "success"
    assert rows(table) == {"held": 10}
    assert tries(airflow, run_id) > before
    assert airflow.xcom(HELD, run_id, "load")["version"] == 1
    assert clear(airflow, HELD, run_id, "load") == "success"
    assert rows(table) == {"held": 10}


@pytest.mark.long
def test_a_run_whose_scheduler_was_killed_with_all_its_tasks_is_resumed_and_writes_once(
    airflow: RunningAirflow, lake: Lake, tmp_path: Path
) -> None:
    table = declared(lake, "unscheduled")
    run_id = airflow.trigger_run(HELD, table=str(table), folder=str(tmp_path))
    worker, *_ = airflow.until(lambda: running(tmp_path), PATIENCE)

    airflow.kill("scheduler")
    psutil.wait_procs([process for process in [worker] if process.is_running()], 60)
    airflow.start("scheduler")
    release(tmp_path)

    assert ended(airflow, HELD, run_id) == "success"
    assert rows(table) == {"held": 10}


@pytest.mark.long
def test_a_metastore_that_is_suspended_during_a_write_and_a_wait_ends_neither(
    airflow: RunningAirflow, fragile: "Fragile", tmp_path: Path
) -> None:
    table = fragile.declared("suspended")
    run_id = airflow.trigger_run(HELD, table=str(table), folder=str(tmp_path), lance=fragile.conn_id)
    airflow.until(lambda: running(tmp_path), PATIENCE)
    deferred(airflow, run_id)

    before = tries(airflow, run_id)
    with fragile.suspended():
        release(tmp_path)
        airflow.until(lambda: tries(airflow, run_id) > before, PATIENCE)

    assert ended(airflow, HELD, run_id) == "success"
    assert rows(table) == {"held": 10}
    assert clear(airflow, HELD, run_id, "load") == "success"
    assert rows(table) == {"held": 10}


@pytest.mark.long
def test_a_metastore_that_is_killed_and_restarted_during_a_write_and_a_wait_ends_neither(
    airflow: RunningAirflow, fragile: "Fragile", tmp_path: Path
) -> None:
    table = fragile.declared("killed")
    run_id = airflow.trigger_run(HELD, table=str(table), folder=str(tmp_path), lance=fragile.conn_id)
    airflow.until(lambda: running(tmp_path), PATIENCE)
    deferred(airflow, run_id)

    before = tries(airflow, run_id)
    fragile.server.kill()
    release(tmp_path)
    airflow.until(lambda: tries(airflow, run_id) > before, PATIENCE)
    fragile.server.start()

    assert ended(airflow, HELD, run_id) == "success"
    assert rows(table) == {"held": 10}


@pytest.mark.long
def test_a_write_is_made_once_although_its_spark_connect_server_is_killed(
    airflow: RunningAirflow, lake: Lake, tmp_path: Path
) -> None:
    table = declared(lake, "disconnected")
    with connect_daemon(tmp_path) as server:
        port = int(connect_address(server).partition(":")[2])
        airflow.add_connection("connect", "spark_connect", host="sc://127.0.0.1", port=port)
        run_id = airflow.trigger_run(HELD, table=str(table), folder=str(tmp_path), spark="connect")
        airflow.until(lambda: running(tmp_path), PATIENCE)

        before = tries(airflow, run_id)
        server.kill()
        airflow.until(lambda: tries(airflow, run_id) > before, PATIENCE)

    assert rows(table) == {}
    release(tmp_path)
    with connect_daemon(tmp_path, **{"spark.connect.grpc.binding.port": str(port)}) as server:
        connect_address(server)
        assert ended(airflow, HELD, run_id) == "success"
    assert rows(table) == {"held": 10}


@pytest.mark.long
def test_a_backfill_after_the_newest_run_writes_each_day_once_and_leaves_no_wait(
    airflow: RunningAirflow, lake: Lake
) -> None:
    table = declared(lake, "dated")
    newest = airflow.trigger_run(DATED, "2026-01-05T00:00:00Z", table=str(table))
    assert ended(airflow, DATED, newest) == "success"
    assert rows(table) == {"2026-01-04": 10}

    one = backfill(airflow, DATED, "2026-01-01", "2026-01-01", table=str(table))
    assert own_rows(airflow, newest, *one) == [10, 10]
    assert rows(table) == {"2026-01-01": 10, "2026-01-04": 10}
    # The run before it has seen the newest version, and what it waits for is older.
    assert clear(airflow, DATED, newest, "wait") == "success"

    # Each of them may find what the others have committed and seen.
    several = backfill(airflow, DATED, "2026-01-02", "2026-01-03", table=str(table))
    again = backfill(airflow, DATED, "2026-01-01", "2026-01-01", table=str(table), reprocess="completed")
    assert own_rows(airflow, *several, *again) == [10, 10, 10]
    assert clear(airflow, DATED, newest, "load") == "success"
    assert rows(table) == {f"2026-01-0{day}": 10 for day in (1, 2, 3, 4)}
    assert {run["state"] for run in airflow.get(f"/api/v2/dags/{DATED}/dagRuns")["dag_runs"]} == {"success"}


# Parts of the tests.


@dataclass(frozen=True)
class Fragile:
    """A metastore of a test's own, and Airflow's connection to it."""

    server: EmbeddedMetastore
    namespace: Hive2Namespace
    conn_id: str

    def declared(self, name: str) -> Table:
        table = Table(self.namespace, "fragile", name)
        table.declare(managed_by="impl")  # its commits need the metastore
        return table

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Stop its process for the duration of the block, as a debugger or a machine that swaps does."""
        process = psutil.Process(self.server.pid)
        process.suspend()
        try:
            yield
        finally:
            process.resume()


@pytest.fixture(scope="module")
def shared_spark(
    airflow: RunningAirflow, ui: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """The Spark of all tasks whose own driver doesn't matter."""
    with connect_server(tmp_path_factory.mktemp("spark")) as address:
        host, port = address.split(":")
        airflow.add_connection("shared_spark", "spark_connect", host=f"sc://{host}", port=int(port))
        yield


@pytest.fixture(scope="module")
def fragile(
    airflow: RunningAirflow, ui: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Fragile]:  # `ui` as the connection is added by Airflow's API
    root, conn_id = str(tmp_path_factory.mktemp("fragile-lake")), "fragile"
    with EmbeddedMetastore(tmp_path_factory.mktemp("fragile")) as server:
        short = {"root": root, "client.connect-timeout": "5", "client.read-timeout": "5"}
        airflow.add_connection(conn_id, "lance_hive2", host=server.uri, extra=short)
        with closing(Hive2Namespace(uri=server.uri, root=root)) as namespace:
            yield Fragile(server, namespace, conn_id)


def rows(table: Table) -> dict[str, int]:
    """The number of rows of each item."""
    try:
        dataset = lance.dataset(namespace_client=table.namespace, table_id=table.id)
    except ValueError:  # declared, and not written yet
        return {}
    return dict(Counter(dataset.to_table()["item"].to_pylist()))


def add(table: Table, *ids: int) -> None:
    """Append rows as another client does."""
    new = pa.table({"id": pa.array(ids, pa.int64()), "item": ["other"] * len(ids)})
    lance.write_dataset(new, namespace_client=table.namespace, table_id=table.id, mode="append")


def declared(lake: Lake, name: str) -> Table:
    table = lake.table(name)
    table.declare()
    return table


def land(folder: Path, item: str, count: int) -> None:
    """Put a file of rows where an ingestion reads all files."""
    lines = ["id,item", *(f"{number},{item}" for number in range(count))]
    (folder / f"{item}.csv").write_text("\n".join(lines))


def ended(airflow: RunningAirflow, dag_id: str, run_id: str) -> str:
    return airflow.until(lambda: airflow.ended(dag_id, run_id), PATIENCE)


def clear(airflow: RunningAirflow, dag_id: str, run_id: str, *task_ids: str) -> str:
    """Clear tasks with what is downstream of them, and return the run's state at its end."""
    body = {"dag_run_id": run_id, "task_ids": task_ids, "only_failed": False, "dry_run": False}
    airflow.send("POST", f"/api/v2/dags/{dag_id}/clearTaskInstances", {**body, "include_downstream": True})
    return ended(airflow, dag_id, run_id)


def backfill(
    airflow: RunningAirflow, dag_id: str, first: str, last: str, reprocess: str = "none", **conf: str
) -> list[str]:
    """Run the intervals from one day to another at the same time, and return the ids of the runs."""
    given = {"dag_id": dag_id, "from_date": f"{first}T00:00:00Z", "to_date": f"{last}T00:00:00Z"}
    body = {**given, "dag_run_conf": conf, "reprocess_behavior": reprocess, "max_active_runs": 3}
    number = airflow.send("POST", "/api/v2/backfills", body)["id"]
    airflow.until(lambda: airflow.get(f"/api/v2/backfills/{number}").get("completed_at"), PATIENCE)
    found = airflow.rows("select run_id from dag_run where backfill_id = ? order by logical_date", number)
    assert found
    return [str(run_id) for (run_id,) in found]


def own_rows(airflow: RunningAirflow, *run_ids: str) -> list[int]:
    """The rows of each run's day at exactly the version that the run has made."""
    assert [ended(airflow, DATED, run_id) for run_id in run_ids] == ["success"] * len(run_ids)
    return [airflow.xcom(DATED, run_id, "read") for run_id in run_ids]


def mark(airflow: RunningAirflow, dag_id: str, run_id: str, task_id: str, state: str) -> None:
    path = f"{run_path(dag_id, run_id)}/taskInstances/{task_id}"
    airflow.send("PATCH", path, {"new_state": state})


def says(airflow: RunningAirflow, dag_id: str, run_id: str, task_id: str, text: str) -> bool:
    """Whether a task's logs contain a text, such as that of an error."""
    logs = airflow.task_logs.glob(f"dag_id={dag_id}/run_id={run_id}/task_id={task_id}/*.log")
    return any(text in log.read_text() for log in logs)


def running(folder: Path) -> list[psutil.Process]:
    """Spark's workers that have begun to write the held rows."""
    return [psutil.Process(int(file.stem)) for file in folder.glob("*.running")]


def release(folder: Path) -> None:
    """Let the held rows be written."""
    (folder / "released").touch()


def supervisor_of(airflow: RunningAirflow, worker: psutil.Process) -> psutil.Process:
    """Airflow's process that watches the task to which one of Spark's workers belongs."""
    scheduler = airflow.pid("scheduler")
    (found,) = [one for one in worker.parents() if one.ppid() == scheduler]
    return found


def deferred(airflow: RunningAirflow, run_id: str) -> None:
    """Return when the run's wait is with the triggerer."""
    airflow.until(lambda: airflow.task(HELD, run_id, "wait").get("triggerer_job") is not None)


def tries(airflow: RunningAirflow, run_id: str) -> int:
    """How often the ingestion was begun: a busy machine may lose a first try of it."""
    return int(airflow.task(HELD, run_id, "load").get("try_number") or 0)
