"""Ingestion as an Airflow task with a real metastore, in the run's Spark session."""

import itertools
import json
import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.sdk.execution_time.context import OutletEventAccessors
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_lancens.assets.table import lance_table
from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.hooks.airflow_errors import (
    AirflowException,
    AirflowFailException,
    LanceRetryableError,
)
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.operators.ingest import (
    LanceAppendOperator,
    LanceUpsertOperator,
    LanceWriteOperator,
)
from airflow_provider_lancens.spark import FileSource, Table, fingerprint_files
from tests.support.airflow_versions import WARNINGS_OF_LOWEST
from tests.support.reads import read_table

Ingest = Callable[..., dict[str, Any]]


@pytest.fixture
def lake(metastore: MetastoreServer, connect: Callable[..., str], tmp_path: Path) -> str:
    return connect(host=metastore.uri, extra={"root": str(tmp_path)})


@pytest.fixture
def tables(lake: str, database: str) -> list[str]:
    namespace = LanceHook.for_connection(lake).get_conn()
    namespace.create_namespace(CreateNamespaceRequest(id=[database]))
    for name in ("flights", "delays"):
        namespace.declare_table(DeclareTableRequest(id=[database, name]))
    return [f"{database}${name}" for name in ("flights", "delays")]


@pytest.fixture
def ingest(spark: SparkSession, lake: str) -> Ingest:
    """Run an ingestion as a worker does, after rendering its templates; each time after a clear."""
    clears = itertools.count()

    def run(
        run_id: str = "manual__1",
        clear: int | None = None,
        task_id: str = "ingest",
        kind: type[LanceWriteOperator] = LanceAppendOperator,
        **arguments: Any,
    ) -> dict[str, Any]:
        task = kind(**{"task_id": "ingest", "lance_conn_id": lake, **arguments})
        max_tries = next(clears) if clear is None else clear
        instance = SimpleNamespace(dag_id="dag", task_id=task_id, map_index=-1, max_tries=max_tries)
        declared = SimpleNamespace(task_id=task_id, dag=SimpleNamespace(has_task=lambda one: one == task_id))
        events = OutletEventAccessors()
        context: Any = {"ti": instance, "task": declared, "run_id": run_id, "outlet_events": events}
        answer = task.execute(context)
        return {**answer, "events": len(task.outlets)} if task.outlets else answer

    return run


def some_flights(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(count).selectExpr("id", "id * 2 AS delay")


def late_ones(spark: SparkSession, flights: Table, than: int) -> DataFrame:
    return flights.read(filter=f"delay > {than}")


def test_the_operator_returns_what_it_committed(ingest: Ingest, tables: list[str], lake: str) -> None:
    answer = ingest(table=tables[0], source=some_flights, op_kwargs={"count": 10})

    assert answer.pop("bytes") > 0
    assert answer.pop("seconds") > 0
    assert answer == {
        "table": tables[0],
        "version": 1,
        "previous_version": None,
        "operation": "append",
        "outcome": "done",
        "inserted": 10,
        "updated": 0,
        "deleted": 0,
        "files": 2,
        "key": "dag/ingest/manual__1",
        "staged_version": None,
        "reason": "",
        "location": LanceHook.for_connection(lake).table(tables[0]).location,
    }


def test_files_are_ingested_once_and_changed_files_are_reported(
    ingest: Ingest, tables: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id,delay\n1,2\n2,4\n")
    given = {"table": tables[0], "source": {"format": "csv", "paths": str(file)}}
    arguments = {**given, "on_existing_key": "skip"}

    first, again = ingest(**arguments), ingest(**arguments)
    assert (first["version"], first["inserted"], first["files"], first["outcome"]) == (1, 2, 1, "done")
    assert (again["version"], again["inserted"], again["outcome"] == "done") == (1, 2, False)

    file.write_text("id,delay\n1,2\n2,4\n3,6\n")
    with pytest.raises(AirflowFailException, match="different data"):
        ingest(**arguments)
    replaced = ingest(**given, on_existing_key="redo_if_changed")
    assert (replaced["version"], replaced["inserted"]) == (2, 3)

    file.unlink()
    assert ingest(**arguments)["version"] == 2


def test_files_that_changed_since_the_given_fingerprint_are_not_read(
    ingest: Ingest, tables: list[str], lake: str, tmp_path: Path
) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id,delay\n1,2\n")
    source = FileSource("csv", str(file))
    namespace = LanceHook.for_connection(lake).get_conn()
    fingerprint = fingerprint_files(source, namespace, tables[0])
    file.write_text("id,delay\n1,2\n2,4\n")

    with pytest.raises(LanceRetryableError, match="changed after their fingerprint was computed"):
        ingest(table=tables[0], source=source, fingerprint=fingerprint)

    given = {"table": tables[0], "source": source, "on_existing_key": "skip"}
    assert ingest(**given, fingerprint="of my own")["inserted"] == 2
    with pytest.raises(AirflowFailException, match="different data"):
        ingest(**given, fingerprint="another of my own")


def test_a_retry_changes_nothing_and_does_not_call_its_source(ingest: Ingest, tables: list[str]) -> None:
    calls = []

    def counted(spark: SparkSession) -> DataFrame:
        calls.append(1)
        return some_flights(spark, 10)

    first = ingest(table=tables[0], source=counted, clear=0)
    again = ingest(table=tables[0], source=counted, clear=0)
    other_run = ingest(table=tables[0], source=counted, run_id="manual__2")

    assert (first["version"], again["version"], other_run["version"]) == (1, 1, 2)
    assert (again["outcome"] == "done", again["inserted"]) == (False, 10)
    assert len(calls) == 2


def test_a_cleared_task_writes_in_place_of_its_earlier_rows(
    ingest: Ingest, tables: list[str], spark: SparkSession, lake: str
) -> None:
    given = {"table": tables[0], "source": some_flights}
    ingest(**given, op_kwargs={"count": 10}, run_id="another")
    answers = [ingest(**given, op_kwargs={"count": count}) for count in (10, 10, 3)]

    assert [(one["version"], one["outcome"] == "done", one["outcome"] == "skipped") for one in answers] == [
        (version, True, False) for version in (2, 3, 4)
    ]
    rows = read_table(spark, LanceHook.for_connection(lake).get_conn(), tables[0]).collect()
    assert sorted(row["id"] for row in rows) == sorted([*range(10), *range(3)])


@pytest.mark.parametrize(("policy", "versions"), [("redo", [1, 2, 3]), ("skip", [1, 1, 1])])
def test_runs_that_share_a_key_leave_its_rows_once(
    ingest: Ingest, tables: list[str], spark: SparkSession, lake: str, policy: str, versions: list[int]
) -> None:
    answers = [
        ingest(
            table=tables[0],
            source=some_flights,
            op_kwargs={"count": 10},
            key="2013-01",
            on_existing_key=policy,
            run_id=run_id,
        )
        for run_id in ("scheduled__1", "manual__2", "backfill__3")
    ]

    assert [answer["version"] for answer in answers] == versions
    rows = read_table(spark, LanceHook.for_connection(lake).get_conn(), tables[0]).collect()
    assert sorted(row["id"] for row in rows) == list(range(10))


def test_a_key_rendered_empty_fails_without_retry(ingest: Ingest, tables: list[str]) -> None:
    with pytest.raises(AirflowFailException, match="key"):
        ingest(table=tables[0], source=some_flights, op_kwargs={"count": 1}, key="None")


def test_a_spark_configuration_as_text_fails_without_retry(ingest: Ingest, tables: list[str]) -> None:
    with pytest.raises(AirflowFailException, match="spark_conf: is of type str"):
        ingest(
            table=tables[0], source=some_flights, op_kwargs={"count": 1}, spark_conf="{'spark.ui.port': '0'}"
        )


def test_changed_arguments_in_a_task_that_skips_fail_without_retry(ingest: Ingest, tables: list[str]) -> None:
    given = {"table": tables[0], "source": some_flights, "on_existing_key": "skip"}
    first = ingest(**given, op_kwargs={"count": 10})
    with pytest.raises(AirflowFailException, match=r"version 1 was committed under .* with different data"):
        ingest(**given, op_kwargs={"count": 12})
    again = ingest(**given, op_kwargs={"count": 10})

    assert (first["version"], again["version"], again["outcome"] == "done") == (1, 1, False)


def test_a_retry_finds_what_its_task_committed_although_its_arguments_contain_a_clock(
    ingest: Ingest, tables: list[str]
) -> None:
    first, retried = (
        ingest(clear=7, table=tables[0], source=some_flights, op_kwargs={"count": count}) for count in (2, 3)
    )

    assert (retried["version"], retried["inserted"], retried["outcome"]) == (1, 2, "found")
    assert first["version"] == 1


def test_a_task_that_was_moved_into_a_group_finds_what_it_wrote(ingest: Ingest, tables: list[str]) -> None:
    given = {"table": tables[0], "source": some_flights, "op_kwargs": {"count": 2}}
    given["on_existing_key"] = "skip"
    first = ingest(**given)
    moved, moved_again = (ingest(**given, task_id=one) for one in ("group.ingest", "outer.group.ingest"))

    assert (first["outcome"], moved["outcome"], moved_again["outcome"]) == ("done", "skipped", "skipped")


def test_a_skipped_write_is_a_warning_that_says_how_to_write_it_again(
    ingest: Ingest, tables: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    given = {"table": tables[0], "source": some_flights, "op_kwargs": {"count": 10}}
    given["on_existing_key"] = "skip"
    outlets = [lance_table(tables[0], "lake")]
    ingest(**given)
    at_newest = ingest(**given, outlets=outlets)
    ingest(**given, run_id="another")
    caplog.clear()
    outdated = ingest(**given, outlets=outlets)

    warnings = (one.getMessage() for one in caplog.records if one.levelno == logging.WARNING)
    skipped, again = (one for one in warnings if not any(text in one for text in WARNINGS_OF_LOWEST))
    assert "skipped, version 1 was committed before (10 rows, " in skipped
    assert "; the table is at version 2. Nothing was written, since idempotency key" in skipped
    assert json.dumps({"lance_on_existing_key": {"ingest": "redo"}}) in again
    assert (outdated["version"], outdated["outcome"], outdated["outcome"] == "done") == (1, "skipped", False)
    # What others committed since has its own event; a task that died before its event still emits it.
    assert ("events" in outdated, at_newest["events"]) == (False, 1)


def test_corrected_data_replaces_what_the_task_wrote_before(
    ingest: Ingest, tables: list[str], spark: SparkSession, lake: str
) -> None:
    ingest(table=tables[0], source=some_flights, op_kwargs={"count": 10})
    ingest(table=tables[0], source=some_flights, op_kwargs={"count": 1}, run_id="another")

    corrected = {"source": some_flights, "op_kwargs": {"count": 3}, "on_existing_key": "redo_if_changed"}
    answers = [ingest(table=tables[0], **corrected) for _ in range(2)]

    assert [(answer["version"], answer["inserted"], answer["outcome"] == "done") for answer in answers] == [
        (3, 3, True),
        (3, 3, False),
    ]
    rows = read_table(spark, LanceHook.for_connection(lake).get_conn(), tables[0]).collect()
    assert sorted(row["id"] for row in rows) == [0, 0, 1, 2]


def test_an_explicit_key_compares_only_an_explicit_fingerprint(ingest: Ingest, tables: list[str]) -> None:
    def of_january(**more: Any) -> dict[str, Any]:
        given = {"table": tables[0], "source": some_flights, "on_existing_key": "skip"}
        return ingest(**given, key="2013-01", **more)

    of_january(op_kwargs={"count": 10}, fingerprint="v1")

    assert of_january(op_kwargs={"count": 12})["outcome"] != "done"
    with pytest.raises(AirflowFailException, match="different data"):
        of_january(op_kwargs={"count": 12}, fingerprint="v2")


def test_an_input_is_read_at_exactly_the_given_version(
    ingest: Ingest, tables: list[str], spark: SparkSession, lake: str
) -> None:
    flights, delays = tables
    pinned = ingest(table=flights, source=some_flights, op_kwargs={"count": 10})
    ingest(table=flights, source=some_flights, op_kwargs={"count": 1000}, run_id="later")

    answer = ingest(table=delays, source=late_ones, inputs={"flights": pinned}, op_kwargs={"than": 15})

    assert answer["inserted"] == 2
    rows = read_table(spark, LanceHook.for_connection(lake).get_conn(), delays).collect()
    assert sorted(row["delay"] for row in rows) == [16, 18]


def test_an_identifier_as_an_input_is_the_version_that_is_newest_when_the_task_begins(
    ingest: Ingest, tables: list[str]
) -> None:
    flights, delays = tables
    ingest(table=flights, source=some_flights, op_kwargs={"count": 10})
    seen: list[tuple[int | None, bool]] = []

    def late(spark: SparkSession, flights: Table) -> DataFrame:
        seen.append((flights.version, flights.is_pinned))
        return late_ones(spark, flights, 15)

    given = {"table": delays, "source": late, "inputs": {"flights": flights}}
    given["on_existing_key"] = "redo_if_changed"
    first, unchanged = ingest(**given), ingest(**given)
    ingest(table=flights, source=some_flights, op_kwargs={"count": 12}, run_id="later")
    changed = ingest(**given)

    assert [one["outcome"] for one in (first, unchanged, changed)] == ["done", "skipped", "done"]
    assert [one["inserted"] for one in (first, changed)] == [2, 6]
    assert seen == [(1, True), (2, True)]


def test_an_input_without_data_fails_the_task(ingest: Ingest, tables: list[str]) -> None:
    with pytest.raises(AirflowException, match="nothing has been written to it yet"):
        ingest(table=tables[1], source=late_ones, inputs={"flights": tables[0]}, op_kwargs={"than": 15})


def test_an_existing_session_is_not_stopped(ingest: Ingest, tables: list[str], spark: SparkSession) -> None:
    ingest(table=tables[0], source=some_flights, op_kwargs={"count": 10})

    assert spark.range(3).count() == 3


def test_options_reach_the_data_set(ingest: Ingest, tables: list[str]) -> None:
    answer = ingest(
        table=tables[0], source=some_flights, op_kwargs={"count": 10}, options={"max_rows_per_file": 1}
    )

    assert answer["files"] == 10


def test_a_source_that_returns_no_rows_is_named(ingest: Ingest, tables: list[str]) -> None:
    def careless(spark: SparkSession) -> None:
        some_flights(spark, 1)

    with pytest.raises(AirflowFailException, match=r"source=.*careless has returned.*got a NoneType"):
        ingest(table=tables[0], source=careless)


def test_a_source_may_return_rows_in_memory_or_files(
    ingest: Ingest, tables: list[str], tmp_path: Path
) -> None:
    rows = pa.table({"id": [1, 2], "delay": [5, 10]})
    pq.write_table(rows, tmp_path / "flights.parquet")

    def in_memory(spark: SparkSession) -> pa.Table:
        return rows

    def of_files(spark: SparkSession) -> FileSource:
        return FileSource("parquet", [str(tmp_path / "flights.parquet")])

    first = ingest(table=tables[0], source=in_memory)
    again = ingest(table=tables[0], source=in_memory)
    second = ingest(table=tables[0], source=of_files, task_id="files")

    assert [one["inserted"] for one in (first, again, second)] == [2, 2, 2]
    assert again["deleted"] == 2  # the cleared task takes back what it had written
    assert second["version"] == again["version"] + 1
    with pytest.raises(AirflowFailException, match=r"not allowed for rows in memory, .*createDataFrame"):
        ingest(
            kind=LanceUpsertOperator,
            table=tables[0],
            source=in_memory,
            on=["id"],
            when_matched="keep",
            task_id="upsert",
        )


def test_an_undeclared_table_fails_the_task_without_retry(ingest: Ingest, database: str) -> None:
    with pytest.raises(AirflowFailException, match=f"ingesting into table '{database}.nowhere'"):
        ingest(table=f"{database}$nowhere", source=some_flights, op_kwargs={"count": 1})


def test_rows_and_time_are_logged(
    ingest: Ingest, tables: list[str], lake: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        ingest(table=tables[0], source=some_flights, op_kwargs={"count": 10})

    assert any(one.startswith("Opening a Spark session: a new one may take") for one in caplog.messages)
    assert sum("committed version 1" in one for one in caplog.messages) == 1
    *_, last = (one for one in caplog.messages if tables[0] in one)
    page = f"/lance/?conn={lake}&table={quote(tables[0], safe='')}&version=1"
    assert last.startswith(f"Done: table {tables[0]}: committed version 1 with 10 rows, 2 files")
    assert last.endswith(f"; see {page}")
