"""Deferred waits with a real scheduler and triggerer: how soon they resume, and how often.

Time is measured in polls, which are counted between triggerer and metastore.
"""

import pytest

from tests.e2e.servers import PATIENCE, RunningAirflow
from tests.integration.airflow.tables import Table
from tests.support.running_lake import Lake

DAG, RESCHEDULED = "many", "many_rescheduled"
POLL_CALL = "get_table_objects_by_name_req"
"""The poll's call; a task's own poll makes others."""

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(3600)]


class Waits:
    """A run with one wait per table, all of them deferred."""

    def __init__(self, airflow: RunningAirflow, lake: Lake, name: str, count: int) -> None:
        self._airflow, self._wire = airflow, lake.wire
        self.tables = [lake.table(f"{name}_{number}") for number in range(count)]
        for table in self.tables:
            table.declare(managed_by="impl")
        self.run_id = airflow.trigger_run(DAG, tables=[str(table) for table in self.tables])
        airflow.until(lambda: airflow.ended_processes(self.run_id) == count + 1, PATIENCE + 10 * count)
        assert self.count("state = 'deferred'") == count
        self.wait_for_next_poll()

    def count(self, condition: str) -> int:
        """How many of the waits meet a condition."""
        query = f"select count(*) from task_instance where run_id = ? and task_id = 'wait' and {condition}"
        return int(self._airflow.rows(query, self.run_id)[0][0])

    def wait_for_next_poll(self) -> None:
        """Return after the next poll."""
        before = self.polls
        self._airflow.until(lambda: self.polls > before)

    @property
    def polls(self) -> int:
        return self._wire.calls.count(POLL_CALL)

    def handed_on(self) -> dict[int, int]:
        """The version in each wait's XCom, by map index."""
        query = "select map_index, value from xcom where run_id = ? and task_id = 'wait' and key = 'version'"
        return {index: int(value) for index, value in self._airflow.rows(query, self.run_id)}

    def resumed(self, table: Table) -> int:
        """How often each task was resumed and found its table, from the tasks' logs."""
        logs = self._airflow.task_logs.rglob("attempt=*.log")
        mine = [log.read_text() for log in logs if self.run_id in str(log)]
        return sum(text.count(f"Table {table} is at version") for text in mine)


def test_a_wait_resumes_within_two_polls_of_the_commit(airflow: RunningAirflow, lake: Lake) -> None:
    waits = Waits(airflow, lake, "soon", 2)
    first, second = waits.tables
    polls = waits.polls
    first.advance()
    # The event ends the deferral; when the task then runs is the scheduler's affair.
    airflow.until(lambda: waits.count("state = 'deferred'") == 1)  # the poll continues for the other
    assert waits.polls - polls <= 2
    second.advance()
    assert airflow.until(lambda: airflow.ended(DAG, waits.run_id)) == "success"


# `test_a_rescheduled_poke_comes_after_airflow_knows_that_the_last_one_has_ended` is its unit test.
@pytest.mark.long
def test_short_pokes_that_are_rescheduled_are_not_failed_by_airflow(
    airflow: RunningAirflow, lake: Lake
) -> None:
    tables = [lake.table(f"rescheduled_{number}") for number in range(3)]
    for table in tables:
        table.declare(managed_by="impl")
    run_id = airflow.trigger_run(RESCHEDULED, tables=[str(table) for table in tables])
    pokes = (
        "select count(*) from task_reschedule r join task_instance t on r.ti_id = t.id "
        "where t.run_id = ? and t.task_id = 'wait'"
    )
    airflow.until(lambda: airflow.rows(pokes, run_id)[0][0] >= 8 * len(tables), 2 * PATIENCE)
    for table in tables:
        table.advance()

    assert airflow.until(lambda: airflow.ended(RESCHEDULED, run_id)) == "success"
    tries = "select max(try_number) from task_instance where run_id = ? and task_id = 'wait'"
    assert airflow.rows(tries, run_id) == [(1,)]


# Each change runs test_schedule_on_commit with a restarted triggerer.
@pytest.mark.long
@pytest.mark.parametrize("count", [2, 200])
def test_every_wait_resumes_once_after_the_triggerer_was_killed(
    airflow: RunningAirflow, lake: Lake, count: int
) -> None:
    waits = Waits(airflow, lake, f"of_{count}", count)
    airflow.kill("triggerer")
    for table in waits.tables[::2]:
        table.advance()
    airflow.start("triggerer")
    waits.wait_for_next_poll()
    for table in waits.tables[1::2]:
        table.advance()

    assert airflow.until(lambda: airflow.ended(DAG, waits.run_id), PATIENCE + 10 * count) == "success"

    assert waits.handed_on() == dict.fromkeys(range(count), 1)
    assert waits.count("state = 'success' and try_number = 1") == count
    assert [waits.resumed(table) for table in waits.tables] == [1] * count
    airflow.until(
        lambda: airflow.rows("select count(*) from trigger where classpath like '%TableVersion%'")[0] == (0,)
    )
