"""What the sensor decides before the first poll."""

import itertools
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

try:  # Airflow 3.2 and newer
    from airflow.sdk.exceptions import AirflowRescheduleException, TaskDeferred
except ImportError:
    from airflow.exceptions import (  # type: ignore[attr-defined, no-redef]
        AirflowRescheduleException,
        TaskDeferred,
    )

from airflow_provider_lancens.hooks.airflow_errors import (
    AirflowFailException,
    AirflowSensorTimeout,
    AirflowSkipException,
    AirflowTaskTimeout,
    LanceRetryableError,
)
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.table_status import TableStatus
from airflow_provider_lancens.sensors.table_version_sensor import LanceTableVersionSensor
from airflow_provider_lancens.triggers.table_version_trigger import worker_end

SOON = "2100-01-01T00:00:00+00:00"


def sensor(**arguments: Any) -> LanceTableVersionSensor:
    return LanceTableVersionSensor(task_id="wait", table="sales$orders", **arguments)


def test_sensors_defer_unless_they_are_told_not_to() -> None:
    assert sensor().deferrable
    assert not sensor(deferrable=False).deferrable


def test_an_impossible_wait_fails_without_retry() -> None:
    with pytest.raises(AirflowFailException, match="denied"):
        sensor().execute_complete({}, {"status": "error", "message": "denied"}, SOON)


def test_an_invalid_choice_is_refused_with_the_allowed_ones() -> None:
    with pytest.raises(ValueError, match="wait_for: expected one of all, any, got 'most'"):
        sensor(wait_for="most")


@pytest.mark.parametrize("argument", ["after_version", "min_version"])
@pytest.mark.parametrize("deferrable", [True, False])
def test_an_invalid_version_fails_without_retry_by_name(argument: str, deferrable: bool) -> None:
    with pytest.raises(AirflowFailException, match=f"{argument}='soon': not a version"):
        sensor(deferrable=deferrable, **{argument: "soon"}).execute({})


def test_a_timeout_in_the_triggerer_is_a_sensors_timeout() -> None:
    waiting = sensor(timeout=timedelta(seconds=5))
    with pytest.raises(AirflowSensorTimeout):
        waiting.resume_execution("__fail__", {"error": "Trigger timeout"}, {})


def polled_by(waiting: LanceTableVersionSensor, poll: Any) -> None:
    vars(waiting)["hook"] = SimpleNamespace(table_status=poll, close=lambda: None)


def test_a_wait_that_times_out_names_the_table_the_condition_and_the_last_answer() -> None:
    waiting = sensor(min_version=5, deferrable=False, timeout=0, poke_interval=0)
    status = TableStatus(TableId.parse("sales$orders"), "/lake", 3)
    polled_by(waiting, lambda _: status)

    with pytest.raises(
        AirflowSensorTimeout,
        match=r"timed out.*Table sales.orders is at version 3; waiting for a version of at least 5",
    ):
        waiting.execute({"ti": None})


def test_a_wait_does_not_depend_on_a_table_of_the_same_name_that_a_task_upstream_wrote_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting = sensor(deferrable=False, timeout=5, poke_interval=0.01, data_only=False)
    versions = iter([6, 6, 7])
    table = TableId.parse("sales$orders")
    polled_by(waiting, lambda _: TableStatus(table, "/lake", next(versions)))
    monkeypatch.setattr(waiting, "_seen_before", lambda _: {table: TableStatus(table, None, 6)})
    monkeypatch.setattr(waiting, "_made_upstream", lambda _: {table: [TableStatus(table, None, 100)]})

    found = waiting.execute({"ti": None})

    assert (found["previous_version"], found["version"]) == (6, 7)


@pytest.mark.parametrize(
    "error", [LanceRetryableError("the storage doesn't answer"), AirflowFailException("access is denied")]
)
def test_a_table_that_cannot_be_polled_when_another_one_ends_the_wait_keeps_its_version(
    error: Exception,
) -> None:
    orders, items = (TableId.parse(f"sales${name}") for name in ("orders", "items"))
    given = {"wait_for": "any", "deferrable": False, "data_only": False}
    waiting = LanceTableVersionSensor(task_id="wait", table=["sales$orders", "sales$items"], **given)
    earlier = {
        str(table): {"table": str(table), "version": 4, "previous_version": 3, "location": "/lake"}
        for table in (orders, items)
    }
    instance = SimpleNamespace(xcom_pull=lambda **_: earlier)

    def poll(table: TableId) -> TableStatus:
        if table == orders:
            raise error
        return TableStatus(items, "/lake", 5)

    polled_by(waiting, poll)

    found = waiting.execute({"ti": instance})

    assert found[str(items)] == {**earlier[str(items)], "version": 5, "previous_version": 4}
    assert found[str(orders)] == {**earlier[str(orders)], "version": 4, "previous_version": 4}


def test_a_table_that_does_not_exist_is_called_that_once(capsys: pytest.CaptureFixture[str]) -> None:
    waiting = sensor(min_version=5, deferrable=False, timeout=0.2, poke_interval=0.05)
    status = TableStatus(TableId.parse("sales$orders"))
    polled_by(waiting, lambda _: status)

    with pytest.raises(AirflowSensorTimeout):
        waiting.execute({"ti": None})

    out = capsys.readouterr().out
    assert out.count("Table sales$orders does not exist; waiting for") == 1


def test_a_table_that_does_not_exist_for_long_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("airflow_provider_lancens.sensors.table_version_sensor.MISSING_SECONDS", 0.1)
    waiting = sensor(min_version=5, deferrable=False, timeout=0.4, poke_interval=0.05)
    status = TableStatus(TableId.parse("sales$orders"))
    polled_by(waiting, lambda _: status)

    with pytest.raises(AirflowSensorTimeout):
        waiting.execute({"ti": None})

    out = capsys.readouterr().out
    assert out.count("check the name of the table") == 1


class Rescheduled:
    """A task instance whose first poke was some seconds ago."""

    def __init__(self, seconds: float) -> None:
        self._first = datetime.now(UTC) - timedelta(seconds=seconds)

    def get_first_reschedule_date(self, context: Any) -> datetime:
        return self._first


def test_a_table_that_does_not_exist_for_long_is_a_warning_also_if_each_poke_is_a_process_of_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for seconds, warnings in ((590, 0), (601, 1), (661, 1)):
        waiting = sensor(min_version=5, deferrable=False, mode="reschedule")
        polled_by(waiting, lambda _: TableStatus(TableId.parse("sales$orders")))
        with pytest.raises(AirflowRescheduleException):
            waiting.execute({"ti": Rescheduled(seconds)})
        assert capsys.readouterr().out.count("check the name of the table") == warnings


def test_the_execution_timeout_holds_over_all_pokes_of_a_rescheduled_task() -> None:
    given = {"deferrable": False, "mode": "reschedule", "execution_timeout": timedelta(seconds=100)}
    waiting = sensor(min_version=5, poke_interval=300, **given)
    polled_by(waiting, lambda _: TableStatus(TableId.parse("sales$orders"), "/lake", 3))

    with pytest.raises(AirflowRescheduleException) as again:
        waiting.execute({"ti": Rescheduled(40)})
    assert 50 < (again.value.reschedule_date - datetime.now(UTC)).total_seconds() <= 60
    with pytest.raises(AirflowTaskTimeout, match=r"of 0:01:40 has passed. Table .* is at version 3"):
        waiting.execute({"ti": Rescheduled(101)})
    skipped = sensor(min_version=5, soft_fail=True, **given)
    polled_by(skipped, lambda _: TableStatus(TableId.parse("sales$orders"), "/lake", 3))
    with pytest.raises(AirflowSkipException):
        skipped.execute({"ti": Rescheduled(101)})


def test_a_failure_that_repeats_is_logged_once_and_no_status_is_claimed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    waiting = sensor(min_version=5, deferrable=False, timeout=0.2, poke_interval=0.05)
    tries = itertools.count()

    def fail(table: TableId) -> TableStatus:
        raise LanceRetryableError(f"no server answered within {next(tries)}.5 s")

    polled_by(waiting, fail)
    with pytest.raises(AirflowSensorTimeout, match="no server answered"):
        waiting.execute({"ti": None})

    out = capsys.readouterr().out
    assert out.count("still waiting") == 1
    assert "does not exist" not in out


def test_a_rescheduled_poke_comes_after_airflow_knows_that_the_last_one_has_ended() -> None:
    waiting = sensor(mode="reschedule", deferrable=False, poke_interval=0.1)

    assert waiting._get_next_poke_interval(0.0, lambda: 0.0, 1) == worker_end()
    assert sensor(mode="poke", poke_interval=0.1)._get_next_poke_interval(0.0, lambda: 0.0, 1) == 0.1


def test_the_execution_timeout_holds_while_the_task_is_deferred() -> None:
    waiting = sensor(min_version=5, deferrable=True, execution_timeout=timedelta(seconds=10))
    status = TableStatus(TableId.parse("sales$orders"), "/lake", 3)
    polled_by(waiting, lambda _: status)

    with pytest.raises(TaskDeferred) as deferred:
        waiting.execute({"ti": None})
    until = datetime.fromisoformat(deferred.value.trigger.until)
    assert timedelta(seconds=5) < until - datetime.now(UTC) <= timedelta(seconds=10)

    timed_out = {"status": "timeout", "message": "Table sales$orders is at version 3"}
    passed = {**deferred.value.kwargs, "limit": "2020-01-01T00:00:00+00:00"}
    with pytest.raises(AirflowTaskTimeout, match="execution_timeout of 0:00:10 has passed"):
        waiting.execute_complete({}, timed_out, **passed)
    with pytest.raises(AirflowSensorTimeout, match="is at version 3"):
        waiting.execute_complete({}, timed_out, SOON)


def test_the_execution_timeout_skips_with_soft_fail_after_a_deferral_and_between_two_pokes() -> None:
    given = {"min_version": 5, "soft_fail": True, "execution_timeout": timedelta(seconds=10)}
    status = TableStatus(TableId.parse("sales$orders"), "/lake", 3)
    timed_out = {"status": "timeout", "message": "Table sales$orders is at version 3"}
    deferred = sensor(**given)
    polled_by(deferred, lambda _: status)
    poking = sensor(deferrable=False, **given)
    polled_by(poking, lambda _: status)

    def alarm(*_: Any) -> float:
        raise AirflowTaskTimeout

    vars(poking)["_get_next_poke_interval"] = alarm

    kwargs = {"event": timed_out, "deadline": SOON, "limit": "2020-01-01T00:00:00+00:00"}
    with pytest.raises(AirflowSkipException, match="execution_timeout of 0:00:10 has passed"):
        deferred.resume_execution("execute_complete", kwargs, {})
    with pytest.raises(AirflowSkipException):
        poking.execute({"ti": None})


def test_a_version_that_is_there_at_the_end_of_the_wait_ends_it_if_the_triggerer_was_down_until_then() -> (
    None
):
    waiting = sensor(min_version=5, timeout=1)
    polled_by(waiting, lambda _: TableStatus(TableId.parse("sales$orders"), "/lake", 5))
    timed_out = {"status": "timeout", "message": "No poll has succeeded"}

    found = waiting.execute_complete({}, timed_out, "2020-01-01T00:00:00+00:00")

    assert found is not None
    assert found["version"] == 5


@pytest.mark.parametrize("soft_fail", [False, True])
def test_a_version_that_is_there_ends_a_wait_that_no_triggerer_ran(soft_fail: bool) -> None:
    waiting = sensor(min_version=5, soft_fail=soft_fail)
    statuses = iter([3, 5])
    polled_by(waiting, lambda _: TableStatus(TableId.parse("sales$orders"), "/lake", next(statuses)))
    failed = ("__fail__", {"error": "Trigger timeout"}, {})

    with pytest.raises(AirflowSkipException if soft_fail else AirflowSensorTimeout) as missing:
        waiting.resume_execution(*failed)
    found = waiting.resume_execution(*failed)

    assert soft_fail or "no triggerer has answered in time. Table sales$orders is at version 3" in str(
        missing.value
    )
    assert found["version"] == 5


@pytest.mark.parametrize(
    "now", [TableStatus(TableId.parse("sales$orders")), TableStatus(TableId.parse("sales$orders"), "/new", 1)]
)
def test_a_table_that_was_dropped_since_the_trigger_fired_is_waited_for(now: TableStatus) -> None:
    waiting = sensor(min_version=5)
    polled_by(waiting, lambda _: now)
    fired = {"status": "success", "table": "sales$orders", "version": 5, "location": "/lake"}

    with pytest.raises(TaskDeferred):
        waiting.execute_complete({}, fired, SOON)


def test_template_fields_are_those_documented() -> None:
    fields = {"table", "after_version", "min_version", "index", "lance_conn_id"}
    assert set(LanceTableVersionSensor.template_fields) == fields
