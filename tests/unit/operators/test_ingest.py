"""Arguments of an ingestion, checked before Spark is started."""

import json
from types import SimpleNamespace
from typing import Any

import pendulum
import pytest
from airflow.sdk.definitions.xcom_arg import _MapResult

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.operators._spark.fingerprints import fingerprint_of
from airflow_provider_lancens.operators._spark.idempotency import (
    default_key,
    write_key,
)
from airflow_provider_lancens.operators._spark.ingest_sources import FunctionIngestSource
from airflow_provider_lancens.operators._spark.pinned_inputs import parse_input
from airflow_provider_lancens.operators._spark.submission import make_job
from airflow_provider_lancens.operators.ingest import (
    LanceAppendOperator,
    LanceOverwriteOperator,
    LanceUpsertOperator,
    LanceWriteOperator,
)
from airflow_provider_lancens.spark import FileSource
from airflow_provider_lancens.spark.function_inputs import WHOLE, FunctionInput
from airflow_provider_lancens.spark.options import WriteRequest


def source(spark: Any, flights: Any, month: int = 1) -> Any:
    raise AssertionError("no Spark here")


def operator(kind: type[LanceWriteOperator] = LanceAppendOperator, **arguments: Any) -> LanceWriteOperator:
    return kind(**{"task_id": "ingest", "table": "db$t", "source": source, **arguments})


def context(**more: Any) -> Any:
    instance = SimpleNamespace(dag_id="dag", task_id="ingest", map_index=-1)
    return {"ti": instance, "run_id": "manual__1", **more}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"schema_mode": "overwrite"}, "schema_mode: expected strict or merge for an append"),
        ({"schema_mode": "replace"}, "schema_mode: expected one of strict, merge, overwrite"),
        ({"kind": LanceUpsertOperator}, "on"),
        ({"kind": LanceUpsertOperator, "on": "id"}, "on: expected a list of key columns, got 'id'"),
        ({"on": ["id"]}, "on"),
        ({"kind": LanceOverwriteOperator, "where": " "}, "where: expected a condition"),
        ({"on_existing_key": "fail"}, "on_existing_key: expected one of redo, redo_if_changed, skip"),
        ({"source": "module.function"}, "source: expected a function.*, got 'module.function'"),
        ({"source": {"paths": "/a", "kind": "csv"}}, "source: kind: unknown"),
        ({"source": {"storage_options": {"aws_secret_access_key": "x"}}}, "source: storage_options"),
        ({"source": FileSource("csv", "/a"), "op_kwargs": {"month": 1}}, "arguments of a function"),
        ({"options": {"max_rows_per_file": 0}}, "options: .*max_rows_per_file: .*at least 1"),
        ({"kind": LanceUpsertOperator, "on": [None]}, "on: expected a list of key columns"),
        ({"kind": LanceOverwriteOperator, "on": 3}, "on: expected a list of columns, or None; got 3"),
        ({"event_partitions": ["day"]}, "event_partitions: is of type list; expected the name of a column"),
        ({"options": {"rows": 1}}, "options: .*'rows'"),
        ({"options": {"vector_columns": "v"}}, "options: .*vector_columns: expected a mapping"),
        (
            {"options": {"data_storage_version": 2.1}},
            "options: .*data_storage_version: .*such as '2.1', got 2.1",
        ),
    ],
)
def test_an_invalid_argument_fails_when_the_dag_is_parsed(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        operator(**arguments)


PINNED = {"table": "db$flights", "version": 3}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"table": "db$$t"}, "table='db"),
        ({"inputs": {"flights": None}}, r"inputs\['flights'\]: expected a mapping .*, got None"),
        ({"inputs": {"flights": " "}}, r"inputs\['flights'\]: expected .*or a table's identifier.*, got ' '"),
        ({"inputs": {"flights": "db.$t"}}, "table='db"),
        ({"inputs": {"flights": "{'table': 'db$t'}"}}, "a template renders it as text: pass another task's"),
        ({"inputs": {"flights": {"table": "db$flights"}}}, "with 'table' and 'version'"),
        ({"inputs": {"flights": {**PINNED, "version": "latest"}}}, r"inputs\['flights'\]\['version'\]"),
        (
            {"inputs": {"flights": {**PINNED, "version": None}}},
            "expected a number, got .*; the task .* has written nothing",
        ),
        ({"inputs": {"flights": {**PINNED, "previous_version": "x"}}}, r"\['previous_version'\]='x'"),
        ({"inputs": {"weather": PINNED}}, "inputs passes 'weather', and it has no parameter of that name"),
        ({"inputs": {}}, "its parameter 'flights' gets no value: pass it in inputs or op_kwargs"),
        ({"inputs": {"flights": PINNED}, "op_kwargs": {"year": 1}}, "op_kwargs passes 'year', and it has no"),
        ({"inputs": {"flights": PINNED}, "op_kwargs": {"flights": 1}}, "both pass flights"),
    ],
)
def test_an_invalid_rendered_argument_fails_the_task_without_retry(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(AirflowFailException, match=message):
        operator(**arguments).execute(context())


def takes_anything(spark: object, **given: object) -> None: ...


def takes_nothing() -> None: ...


def takes_no_session(*, flights: object) -> None: ...


def takes_the_input_first(flights: object) -> None: ...


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            takes_nothing,
            r"source=takes_nothing: its parameters are \(\), but it is called with \(spark, flights",
        ),
        (
            takes_nothing,
            "it has no parameter for the session, which is passed first, by position; inputs passes",
        ),
        (takes_no_session, r"its parameters are \(\*, flights\).*no parameter for the session"),
        (takes_the_input_first, "its first parameter, 'flights', gets the session"),
        (lambda spark, flights, year, limit=5: None, r"\(spark, flights, year, limit=…\).*'year' gets no"),
    ],
)
def test_a_source_that_does_not_fit_is_told_its_parameters_and_the_call(source: Any, message: str) -> None:
    with pytest.raises(AirflowFailException, match=message) as raised:
        FunctionIngestSource.parse(source, {"flights": PINNED}, {})
    assert "positional arguments" not in str(raised.value)
    assert str(raised.value).endswith("a function source(spark, **inputs, **op_kwargs) that returns rows")


@pytest.mark.parametrize("version", [3, "3"])
def test_an_input_is_any_mapping_with_a_table_and_a_version(version: object) -> None:
    xcom_of_a_sensor = {"table": "db$flights", "version": version, "previous_version": 2, "location": "/x"}

    assert parse_input("inputs['flights']", xcom_of_a_sensor) == FunctionInput("db$flights", 3, 2, "/x")
    assert parse_input("inputs['flights']", {**PINNED, "previous_version": None}).previous_version == 0  # type: ignore[union-attr]
    assert parse_input("inputs['flights']", PINNED).previous_version is None  # type: ignore[union-attr]
    assert parse_input("inputs['flights']", "db.flights") == TableId.parse("db$flights")


@pytest.mark.parametrize(
    "further", [{"filter": "id > 3"}, {"if_unavailable": "read_all"}, {"changes": PINNED}]
)
def test_an_input_has_no_arguments_of_a_read(further: dict[str, Any]) -> None:
    message = r"inputs\['flights'\]: \['.*'\] aren't allowed here; the function gets a table"

    with pytest.raises(AirflowFailException, match=message):
        FunctionIngestSource.parse(lambda spark, flights: flights, {"flights": {**PINNED, **further}}, {})


def test_the_output_of_a_mapped_task_in_op_kwargs_is_a_list_that_a_driver_elsewhere_gets_too() -> None:
    mapped = _MapResult([1, 2], [str])
    op_kwargs = {"days": mapped, "more": [{"days": mapped}, (mapped,)], "limit": 5}
    source = FunctionIngestSource.parse(takes_anything, {}, op_kwargs)

    assert source.op_kwargs == {"days": ["1", "2"], "more": [{"days": ["1", "2"]}, (["1", "2"],)], "limit": 5}
    hook: Any = SimpleNamespace(namespace_impl="dir", namespace_properties=dict)
    job = make_job(hook, source, TableId.parse("db$t"), {WHOLE: WriteRequest()})
    assert json.loads(json.dumps(job.as_dict()))["kwargs"]["days"] == ["1", "2"]


def test_the_default_key_is_the_task_and_its_data_interval() -> None:
    interval = {
        "data_interval_start": pendulum.datetime(2013, 1, 1),
        "data_interval_end": pendulum.datetime(2013, 2, 1),
    }

    first = default_key(context(**interval))
    again = default_key(context(**interval, run_id="backfill__2"))

    assert first == again == "dag/ingest/2013-01-01T00:00:00+00:00/2013-02-01T00:00:00+00:00"


@pytest.mark.parametrize("given", ["", " ", "None"])
def test_an_empty_key_is_refused_rather_than_taken_for_the_default_key(given: str) -> None:
    with pytest.raises(AirflowFailException, match=f"^key={given!r}: expected text, or None"):
        write_key(given, context())
    assert write_key(None, context()) == "dag/ingest/manual__1"
    assert write_key(201301, context()) == "201301"


def test_without_a_data_interval_the_default_key_is_the_run() -> None:
    assert default_key(context()) == "dag/ingest/manual__1"


def test_arguments_that_name_data_are_templated() -> None:
    fields = {
        "table",
        "files",
        "inputs",
        "op_kwargs",
        "key",
        "fingerprint",
        "event_partitions",
        "spark_conn_id",
        "spark_conf",
        "lance_conn_id",
    }

    assert fields == set(LanceAppendOperator.template_fields)
    assert {*fields, "where"} == set(LanceOverwriteOperator.template_fields)
    assert {*fields, "delete_when"} == set(LanceUpsertOperator.template_fields)


class Plain:
    """An argument whose repr is an address."""


def test_a_fingerprint_is_the_same_in_every_process() -> None:
    kwargs = {"day": pendulum.datetime(2013, 1, 1), "names": {"b", "a"}, "by": source, "how": Plain()}

    assert fingerprint_of({"flights": ("db$t", 3)}, kwargs) == (
        '[{"flights": ["db$t", 3]}, {"by": "source", "day": "2013-01-01 00:00:00+00:00", "how": "Plain", '
        '"names": ["a", "b"]}]'
    )


def test_a_fingerprint_depends_on_inputs_and_arguments() -> None:
    given = [
        fingerprint_of({"flights": ("db$t", version)}, {"month": month})
        for version, month in ((3, 1), (4, 1), (3, 2))
    ]

    assert len(set(given)) == 3


DAILY = "in/{{ ds }}.csv"


@pytest.mark.parametrize("source", [{"format": "csv", "paths": DAILY}, FileSource("csv", DAILY)])
def test_file_source_fields_are_templated(source: Any) -> None:
    task = operator(source=source)

    task.render_template_fields({"ds": "2013-01-01"})

    assert FileSource.parse(task.files) == FileSource("csv", "in/2013-01-01.csv")


def test_an_invalid_rendered_file_source_fails_the_task_without_retry() -> None:
    task = operator(source={"format": "orc", "paths": "/a"})

    with pytest.raises(AirflowFailException, match="source: format: expected one of parquet"):
        task.execute(context())
