"""Streams as Airflow tasks: each run writes what is there, once."""

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.operators import LanceStreamOperator
from tests.pyspark_versions import has_data_sources
from tests.support.reads import read_table

pytestmark = pytest.mark.slow


def readings(spark: SparkSession, folder: str) -> DataFrame:
    return spark.readStream.option("maxFilesPerTrigger", "1").csv(folder, schema="id long, amount double")


def large_ones(spark: SparkSession, table: str) -> DataFrame:
    return spark.readStream.format("lancens").option("table", table).load().where("amount > 1")


def no_stream(spark: SparkSession, folder: str) -> DataFrame:
    return spark.range(3)


class Task:
    """Tasks that stream a folder of files into tables of one connection."""

    def __init__(self, lake: str, database: str, folder: Path) -> None:
        self.lake, self.table, self.folder = lake, f"{database}$readings", folder
        (folder / "files").mkdir()
        with closing(LanceHook.for_connection(lake)) as hook:
            namespace = hook.get_conn()
            namespace.create_namespace(CreateNamespaceRequest(id=[database]))
            for name in ("readings", "large"):
                namespace.declare_table(DeclareTableRequest(id=[database, name]))

    def add(self, *rows: tuple[int, float]) -> None:
        path = self.folder / f"{len(list((self.folder / 'files').iterdir())):03}.csv"
        path.write_text("".join(f"{number},{amount}\n" for number, amount in rows))
        path.rename(self.folder / "files" / path.name)

    def run(self, **arguments: Any) -> dict[str, Any]:
        given = {
            "table": self.table,
            "source": readings,
            "op_kwargs": {"folder": str(self.folder / "files")},
            "checkpoint": str(self.folder / "checkpoint"),
            **arguments,
        }
        task = LanceStreamOperator(task_id="stream", lance_conn_id=self.lake, **given)
        instance = SimpleNamespace(dag_id="dag", task_id="stream", map_index=-1, max_tries=0)
        context: Any = {"ti": instance, "run_id": "manual__1"}
        return task.execute(context)


@pytest.fixture
def task(
    spark: SparkSession,
    metastore: MetastoreServer,
    connect: Callable[..., str],
    database: str,
    tmp_path: Path,
) -> Task:
    return Task(connect(host=metastore.uri, extra={"root": str(tmp_path)}), database, tmp_path)


def values(spark: SparkSession, task: Task, table: str) -> list[int]:
    with closing(LanceHook.for_connection(task.lake)) as hook:
        return sorted(row["id"] for row in read_table(spark, hook.get_conn(), table).collect())


def test_each_run_writes_what_is_there_and_returns_its_versions(task: Task, spark: SparkSession) -> None:
    task.add((1, 1.0))
    task.add((2, 2.0), (3, 3.0))
    first = task.run()
    assert (first["version"], first["previous_version"], first["epochs"], first["inserted"]) == (
        2,
        None,
        2,
        3,
    )
    assert first["outcome"] == "done"

    nothing = task.run()
    assert (nothing["version"], nothing["previous_version"], nothing["inserted"]) == (2, 2, 0)
    assert nothing["outcome"] != "done"

    task.add((4, 4.0))
    assert task.run()["version"] == 3
    assert values(spark, task, task.table) == [1, 2, 3, 4]


@has_data_sources
@pytest.mark.thorough
def test_a_table_is_streamed_through_the_connection(task: Task, spark: SparkSession) -> None:
    task.add((1, 1.0), (2, 2.0))
    large = {
        "table": task.table.replace("readings", "large"),
        "source": large_ones,
        "op_kwargs": {"table": task.table},
        "checkpoint": str(task.folder / "large"),
    }
    for number in (3, 4):
        task.run()
        task.run(**large)
        task.add((number, float(number)))
    assert values(spark, task, large["table"]) == [2, 3]


@pytest.mark.thorough
def test_corrections_are_upserted(task: Task, spark: SparkSession) -> None:
    task.add((1, 1.0), (2, 2.0))
    task.add((2, 2.5))
    task.run(on=["id"])
    assert values(spark, task, task.table) == [1, 2]


def test_errors_that_a_retry_cannot_mend_fail_the_task_at_once(task: Task) -> None:
    task.add((1, 1.0))
    with pytest.raises(AirflowFailException, match="source: expected a streaming DataFrame"):
        task.run(source=no_stream)
    with pytest.raises(AirflowFailException, match="checkpoint: expected the path of a folder"):
        task.run(checkpoint=" ")
    with pytest.raises(AirflowFailException, match="missing"):
        task.run(on=["missing"])
    with pytest.raises(ValueError, match="sequence_by: not allowed for an append, only for an upsert"):
        task.run(sequence_by="at")


@pytest.mark.thorough
def test_an_older_checkpoint_fails_the_task_rather_than_losing_rows(task: Task) -> None:
    task.add((1, 1.0))
    task.run()
    for log in ("commits", "offsets", "sources/0"):
        shutil.rmtree(task.folder / "checkpoint" / log)
    task.add((2, 2.0))
    with pytest.raises(AirflowFailException, match="the checkpoint is older than the table"):
        task.run(op_kwargs={"folder": str(task.folder / "files")}, source=all_at_once)


def all_at_once(spark: SparkSession, folder: str) -> DataFrame:
    return spark.readStream.csv(folder, schema="id long, amount double")
