"""The tables of a run or a task on the Lance page: made, read, or nothing written."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from airflow.models import Connection
from airflow.models.asset import AssetEvent, AssetModel
from airflow.models.dagrun import DagRun
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from sqlalchemy import insert
from sqlalchemy.orm import Session

from airflow_provider_lancens.ui import known_connections, task_tables
from airflow_provider_lancens.ui.known_connections import KnownConnections
from airflow_provider_lancens.ui.task_tables import tables_of
from tests.support.airflow_database import airflow_database

REFERENCED = (DagRun, TaskInstance)
"""Models that have to be loaded, since others refer to their tables."""
RUN = {"dag_id": "sales", "run_id": "r1"}


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """The tables of Airflow's database that are read, empty."""
    models = (Connection, RenderedTaskInstanceFields, XComModel, AssetModel, AssetEvent)
    with airflow_database(
        monkeypatch, models, used_by=[task_tables.__name__, known_connections.__name__]
    ) as session:
        yield session


def task(
    database: Session,
    task_id: str,
    table: str,
    *,
    skipped: bool = False,
    makes: bool = True,
    version: int = 3,
    conn: str = "lake",
    authority: str = "lake",
) -> None:
    """Store what Airflow keeps of a task that has written, or has found its write."""
    name = {**RUN, "task_id": task_id, "map_index": -1}
    fields = {"lance_conn_id": conn, "table": table}
    database.execute(insert(RenderedTaskInstanceFields).values(**name, rendered_fields=fields))
    result = {"table": table, "version": version, "outcome": "skipped" if skipped else "found"}
    database.execute(
        insert(XComModel).values(**name, dag_run_id=1, key="return_value", value=json.dumps(result))
    )
    if makes:
        uri = f"lance://{authority}/{table.replace('$', '/')}"
        number = len(task_id) + version
        database.execute(insert(AssetModel).values(id=number, name=uri, uri=uri, group="asset", extra={}))
        event: dict[str, Any] = {
            "asset_id": number,
            "source_dag_id": RUN["dag_id"],
            "source_run_id": RUN["run_id"],
            "source_task_id": task_id,
            "source_map_index": -1,
            "extra": {"version": version},
            "timestamp": datetime.now(UTC),
        }
        database.execute(insert(AssetEvent).values(**event))


def shown(task_id: str | None = None) -> list[tuple[str, int, str]]:
    return [(one["task_id"], one["version"], one["what"]) for one in tables_of("sales", "r1", task_id)]


def test_a_table_is_recognized_however_its_identifier_is_written(database: Session) -> None:
    task(database, "load", "db.t", makes=False, version=3)

    [entry] = tables_of("sales", "r1", None)

    assert (entry["table"], entry["version"], entry["what"]) == ("db$t", 3, "returned")


def test_a_write_that_was_skipped_is_shown_as_nothing_written(database: Session) -> None:
    task(database, "load", "db$t", skipped=False, makes=True, version=3)
    task(database, "wait", "db$t", skipped=False, makes=False, version=3)
    assert shown() == [("load", 3, "made"), ("wait", 3, "returned")]

    database.execute(XComModel.__table__.delete())
    database.execute(RenderedTaskInstanceFields.__table__.delete())
    task(database, "load", "db$t", skipped=True, makes=False, version=3)  # the first event remains
    task(database, "late", "db$u", skipped=True, makes=False, version=7)
    assert shown() == [("late", 7, "skipped"), ("load", 3, "skipped")]
    assert shown("late") == [("late", 7, "skipped")]


def define(database: Session, conn_id: str, authority: str | None = None) -> None:
    extra = {"asset_authority": authority} if authority else {}
    database.add(Connection(conn_id=conn_id, conn_type="lance_hive2", host="m", extra=json.dumps(extra)))
    database.flush()


def test_an_assets_authority_leads_to_the_connection_that_the_task_used(database: Session) -> None:
    define(database, "lake")
    for conn_id in ("lake_a", "lake_rw"):
        define(database, conn_id, "lake")
    task(database, "load", "db$t", conn="lake_rw")

    [one] = tables_of("sales", "r1", None)

    assert (one["conn"], one["version"], one["what"]) == ("lake_rw", 3, "made")


def test_without_such_a_connection_it_leads_to_that_of_its_name_then_to_any_with_the_authority(
    database: Session,
) -> None:
    task(database, "load", "db$t", authority="prod")
    database.execute(RenderedTaskInstanceFields.__table__.delete())  # a TaskFlow function has no such fields
    assert [one["conn"] for one in tables_of("sales", "r1", None)] == ["prod"]
    for conn_id in ("b", "c"):
        define(database, conn_id, "prod")
    assert [one["conn"] for one in tables_of("sales", "r1", None)] == ["b"]
    define(database, "prod")
    assert [one["conn"] for one in tables_of("sales", "r1", None)] == ["prod"]


def test_connections_that_share_an_authority_are_known_also_from_the_environment(
    database: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(database, "lake")
    define(database, "wrong", "a/b")
    monkeypatch.setenv("AIRFLOW_CONN_LAKE_RW", "lance-hive2://m/?asset_authority=lake")
    monkeypatch.setenv("AIRFLOW_CONN_WWW", "http://m")

    known = KnownConnections.read()

    assert known.sharing("lake") == ["lake", "lake_rw"]
    assert known.sharing("wrong") == ["wrong"]
    assert set(known.types) == {"lake", "lake_rw", "wrong"}
