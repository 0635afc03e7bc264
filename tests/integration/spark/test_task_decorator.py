"""`@task.lance_spark`: a function that is a task, with Spark and the tables of a connection."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from airflow.sdk import DAG, task
from airflow.sdk.execution_time.context import OutletEventAccessors, set_current_context
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest
from pyspark.sql import SparkSession

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.hooks.lance_hook import LanceHook


@pytest.fixture
def table(
    spark: SparkSession,
    metastore: MetastoreServer,
    connect: Callable[..., str],
    database: str,
    tmp_path: Path,
) -> str:
    """A declared table behind the connection `lake`."""
    hook = LanceHook.for_connection(connect(host=metastore.uri, extra={"root": str(tmp_path)}))
    hook.get_conn().create_namespace(CreateNamespaceRequest(id=[database]))
    hook.get_conn().declare_table(DeclareTableRequest(id=[database, "readings"]))
    return f"{database}$readings"


def run(operator: Any, **context: Any) -> Any:
    instance = SimpleNamespace(dag_id="dag", task_id=operator.task_id, map_index=-1, max_tries=0)
    instance.xcom_push = lambda key, value: None
    full: Any = {
        "ti": instance,
        "task": operator,
        "run_id": "manual__1",
        "outlet_events": OutletEventAccessors(),
    }
    full |= context
    with set_current_context(full):
        operator.render_template_fields(full)
        return operator.execute(full)


def test_a_function_gets_the_tables_its_arguments_and_what_it_asks_of_the_context(table: str) -> None:
    with DAG("dag"):

        @task.lance_spark(lance_conn_id="{{ conn }}")
        def load(lake: Any, name: str, count: int, run_id: str | None = None) -> Any:
            written = lake.table(name).append(lake.spark.range(count))
            return {**written.as_dict(), "run": run_id}

        operator = load(name=table, count=3).operator  # type: ignore[attr-defined]

    first, retried = (run(operator, conn="lake") for _ in range(2))

    assert operator.operator_name == "@task.lance_spark"
    assert (first["version"], first["inserted"], first["run"], first["outcome"]) == (
        1,
        3,
        "manual__1",
        "done",
    )
    assert (retried["version"], retried["outcome"] == "done") == (1, False)


def test_positional_arguments_and_a_catch_all_work(table: str) -> None:
    with DAG("dag"):

        @task.lance_spark(lance_conn_id="lake")
        def load(name: str, *, lake: Any, **context: Any) -> Any:
            return lake.table(name).count_rows() if "run_id" not in context else context["run_id"]

        operator = load(table).operator  # type: ignore[attr-defined]

    assert run(operator) == "manual__1"


def lake_first(lake: Any, name: str, day: str = "none") -> tuple[int, str]:
    return lake.table(name).count_rows(), day


def lake_in_between(name: str, lake: Any, day: str = "none") -> tuple[int, str]:
    return lake.table(name).count_rows(), day


def lake_by_position(lake: Any, /, name: str, day: str = "none") -> tuple[int, str]:
    return lake.table(name).count_rows(), day


def lake_before_a_list(lake: Any, name: str, *days: str) -> tuple[int, str]:
    return lake.table(name).count_rows(), "".join(days) or "none"


@pytest.mark.parametrize("function", [lake_first, lake_in_between, lake_by_position, lake_before_a_list])
@pytest.mark.parametrize(("days", "day"), [([], "none"), (["2026-11-01"], "2026-11-01")])
def test_the_tables_may_be_any_argument_beside_others_that_are_given_by_position(
    table: str, function: Callable[..., Any], days: list[str], day: str
) -> None:
    LanceHook.for_connection("lake").table(table).append(pa.table({"n": [1, 2]}))
    with DAG("dag"):
        operator = task.lance_spark(function, lance_conn_id="lake")(table, *days).operator  # type: ignore[attr-defined]

    assert run(operator) == (2, day)


def test_a_function_without_the_argument_is_refused_when_the_dag_is_parsed() -> None:
    def load(name: str) -> None:
        """Without the tables."""

    with DAG("dag"), pytest.raises(ValueError, match="load has no argument 'lake'"):
        task.lance_spark(load)("t")
