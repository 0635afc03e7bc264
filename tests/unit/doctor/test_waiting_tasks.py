"""Which task instances wait for which table, by Airflow's database."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.models.dagrun import DagRun
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.taskinstance import TaskInstance
from airflow.models.taskreschedule import TaskReschedule
from airflow.models.trigger import Trigger
from sqlalchemy import insert
from sqlalchemy.orm import Session

from airflow_provider_lancens.doctor.checks import check_waits
from airflow_provider_lancens.doctor.waiting_tasks import valid_tables
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.table_status import TableStatus
from airflow_provider_lancens.ui.waits import list_missing, list_waits
from tests.support.airflow_database import airflow_database
from tests.support.airflow_versions import IS_LOWEST

REFERENCED = (DagRun,)
"""Models that have to be loaded, since others refer to their tables."""
RUN = {"dag_id": "sales", "run_id": "r1"}
HOUR = timedelta(hours=1)


@pytest.fixture
def now() -> datetime:
    """The time of the test: that of the module's import may be an hour earlier."""
    return datetime.now(UTC)


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """The tables of Airflow's database that are read, empty."""
    models = (TaskInstance, RenderedTaskInstanceFields, TaskReschedule, Trigger)
    with airflow_database(
        monkeypatch, models, used_by=["airflow.utils.session", "airflow_provider_lancens.ui.waits"]
    ) as session:
        yield session


def waits(
    database: Session, task_id: str, table: Any, state: str, *, began: list[datetime], conn: str = "lake"
) -> None:
    """Store what Airflow keeps of a sensor that polls in workers, with the times of its pokes."""
    name = {**RUN, "task_id": task_id, "map_index": -1}
    number = str(uuid.uuid4()) if IS_LOWEST else uuid.uuid4()
    database.execute(
        insert(TaskInstance).values(
            **name, id=number, state=state, start_date=began[-1], pool="default", pool_slots=1, try_number=1
        )
    )
    fields = {"lance_conn_id": conn, "table": table, "after_version": None, "min_version": 3}
    database.execute(insert(RenderedTaskInstanceFields).values(**name, rendered_fields=fields))
    for time in began[:-1] if state == "running" else began:
        date = {"start_date": time, "end_date": time, "reschedule_date": time}
        database.execute(insert(TaskReschedule).values(ti_id=number, duration=0, **date))


def hook_that_finds(*existing: str) -> Any:
    def poll(tables: list[TableId]) -> dict[TableId, TableStatus]:
        return {one: TableStatus(one, "/lake" if str(one) in existing else None) for one in tables}

    return SimpleNamespace(lance_conn_id="lake", poll_tables=poll)


@pytest.mark.parametrize("state", ["up_for_reschedule", "queued", "running"])
def test_a_rescheduled_task_has_waited_since_its_first_poke(
    database: Session, now: datetime, state: str
) -> None:
    waits(database, "wait", "sales$orders", state, began=[now - HOUR, now])
    access: Any = SimpleNamespace(dag_ids={"sales"})

    [wait] = list_waits(["lake"], "sales$orders", access)["waits"]

    assert (wait["state"], wait["for"]) == (state, "a version of at least 3")
    assert datetime.fromisoformat(wait["since"]) == now - HOUR


def test_waits_through_each_of_some_connections_are_listed(database: Session, now: datetime) -> None:
    for conn in ("lake", "lake_rw", "other"):
        waits(database, conn, "sales$orders", "running", began=[now], conn=conn)
    access: Any = SimpleNamespace(dag_ids={"sales"})

    found = list_waits({"lake", "lake_rw"}, "sales$orders", access)["waits"]

    assert {wait["task_id"] for wait in found} == {"lake", "lake_rw"}


@pytest.mark.parametrize(
    "written", ["sales.orders", "Sales.Orders", "`sales`.orders", ["x.y", "sales.orders"]]
)
def test_a_table_is_recognized_however_its_identifier_is_written(
    database: Session, now: datetime, written: Any
) -> None:
    waits(database, "wait", written, "running", began=[now - HOUR])
    access: Any = SimpleNamespace(dag_ids={"sales"})

    [wait] = list_waits(["lake"], "sales$orders", access)["waits"]

    assert wait["task_id"] == "wait"
    assert list(check_waits(hook_that_finds("sales$orders", "x$y"))) == []


@pytest.mark.parametrize(
    ("field", "tables"),
    [
        ("`a.b`.c", [("a.b", "c")]),
        ("a$b.c", [("a", "b.c")]),
        ("cat.db.t", [("cat", "db", "t")]),
        (["a.b", "", None, {"table": "a.b"}, "a..b"], [("a", "b")]),
    ],
)
def test_the_identifiers_of_a_field_are_read_as_written_or_printed(
    field: Any, tables: list[tuple[str, ...]]
) -> None:
    assert [table.parts for table in valid_tables({"table": field})] == tables


def test_the_doctor_tells_tables_that_rescheduled_and_polling_tasks_miss(
    database: Session, now: datetime
) -> None:
    waits(database, "rescheduled", "sales$ordres", "up_for_reschedule", began=[now - HOUR, now])
    waits(database, "polling", "sales$ordesr", "running", began=[now - HOUR])
    waits(database, "new", "sales$soon", "up_for_reschedule", began=[now])
    waits(database, "right", "sales$orders", "running", began=[now - HOUR])

    found = {one.subject: one.text for one in check_waits(hook_that_finds("sales$orders"))}

    assert set(found) == {"table sales$ordres", "table sales$ordesr"}
    assert "task 'rescheduled' of 'sales'" in found["table sales$ordres"]


def test_the_page_lists_missing_tables_with_the_longest_wait_that_the_user_may_see(
    database: Session, now: datetime
) -> None:
    waits(database, "late", "sales$ordres", "up_for_reschedule", began=[now])
    waits(database, "early", "sales$ordres", "up_for_reschedule", began=[now - HOUR, now])
    waits(database, "right", "sales$orders", "running", began=[now])
    hook = hook_that_finds("sales$orders")
    seen: Any = SimpleNamespace(dag_ids={"sales"})

    [missing] = list_missing(hook, seen)["tables"]

    assert (missing["table"], missing["wait"]["task_id"]) == ("sales$ordres", "early")
    assert list_missing(hook, SimpleNamespace(dag_ids=set())) == {"tables": []}  # type: ignore[arg-type]
