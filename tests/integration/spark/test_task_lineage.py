"""What tasks on Spark report to OpenLineage, after they ran on tables of a real metastore."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.operators import (
    LanceAppendOperator,
    LanceComputeColumnOperator,
    LanceOverwriteOperator,
    LancePublishOperator,
    LanceStreamOperator,
)
from airflow_provider_lancens.operators.lance_operator import LanceOperator
from airflow_provider_lancens.spark import Table
from tests.integration.airflow.lineage import reported

Run = Callable[..., tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]]
FIELDS = [{"name": "id", "type": "int64", "fields": []}, {"name": "v", "type": "int32", "fields": []}]


@pytest.fixture
def tables(
    metastore: MetastoreServer, connect: Callable[..., str], database: str, tmp_path: Path
) -> list[str]:
    """Two declared tables of connection ``lake``."""
    connect(host=metastore.uri, extra={"root": str(tmp_path / "lake")})
    namespace = LanceHook.for_connection("lake").get_conn()
    namespace.create_namespace(CreateNamespaceRequest(id=[database]))
    for name in ("readings", "large"):
        namespace.declare_table(DeclareTableRequest(id=[database, name]))
    return [f"{database}$readings", f"{database}$large"]


@pytest.fixture
def run(tables: list[str], spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run an operator as with Airflow's OpenLineage provider; return its XCom, its inputs and its outputs."""
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", json.dumps({"type": "console"}))

    def execute(operator: type[LanceOperator], run_id: str = "manual__1", **arguments: Any) -> Any:
        task = operator(task_id="task", lance_conn_id="lake", **arguments)
        instance = SimpleNamespace(dag_id="dag", task_id="task", map_index=-1, max_tries=0)
        context: Any = {"ti": instance, "run_id": run_id}
        return task.execute(context), *reported(task)

    return execute


def some_readings(spark: SparkSession, count: int = 3) -> DataFrame:
    return spark.range(count).selectExpr("id", "cast(id * 2 as int) as v")


def test_an_ingestion_reports_what_it_wrote(run: Run, tables: list[str], metastore: MetastoreServer) -> None:
    xcom, inputs, [output] = run(LanceAppendOperator, table=tables[0], source=some_readings)

    assert inputs == []
    assert output == {
        "namespace": metastore.uri.replace("thrift", "hive"),
        "name": tables[0].replace("$", "."),
        "facets": {
            "version": {"datasetVersion": "1"},
            "schema": {"fields": FIELDS},
            "lifecycleStateChange": {"lifecycleStateChange": "CREATE"},
            "lance_commit": {"committed": True, "published": True},
        },
        "outputFacets": {
            "outputStatistics": {"rowCount": 3, "fileCount": xcom["files"], "size": xcom["bytes"]}
        },
    }


def test_inputs_are_reported_at_the_versions_that_were_read(run: Run, tables: list[str]) -> None:
    def joined(spark: SparkSession, now: Table, new: Table) -> DataFrame:
        return now.read().union(new.changes().read(columns=["id", "v"]).select("id", "v"))

    readings, large = tables
    for run_id in ("a", "b"):
        run(LanceAppendOperator, run_id=run_id, table=readings, source=some_readings)
    changed = {"table": readings, "previous_version": 1, "version": 2}
    inputs = {"now": {"table": readings, "version": 1, "previous_version": None}, "new": changed}
    _, [now, new], [output] = run(LanceAppendOperator, table=large, source=joined, inputs=inputs)

    assert now["facets"] == {"version": {"datasetVersion": "1"}, "schema": {"fields": FIELDS}}
    assert new["facets"] == {
        "version": {"datasetVersion": "2"},
        "schema": {"fields": FIELDS},
        "lance_changes": {"afterVersion": "1"},
    }
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 6
    assert "columnLineage" not in output["facets"]


def test_columns_of_files_are_reported_as_those_of_the_table(
    run: Run, tables: list[str], tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("ID,v,w\n1,2,3\n2,4,6\n")
    source = {
        "format": "csv",
        "paths": str(tmp_path / "*.csv"),
        "columns": ["ID", "v"],
        "renames": {"ID": "id"},
        "casts": {"v": "int32"},
    }
    first, again = (run(LanceAppendOperator, table=tables[0], source=source) for _ in range(2))
    _, inputs, [output] = first

    assert inputs == [{"namespace": "file", "name": str(tmp_path), "facets": {}, "inputFacets": {}}]
    assert output["facets"]["schema"] == {"fields": FIELDS}
    fields = output["facets"]["columnLineage"]["fields"]
    assert {name: of["inputFields"] for name, of in fields.items()} == {
        name: [
            {
                "namespace": "file",
                "name": str(tmp_path),
                "field": field,
                "transformations": [{"type": "DIRECT", "subtype": subtype}],
            }
        ]
        for name, field, subtype in [("id", "ID", "IDENTITY"), ("v", "v", "TRANSFORMATION")]
    }
    _, inputs_again, [output_again] = again
    assert inputs_again == inputs
    assert (output_again["facets"]["version"], output_again["outputFacets"]) == ({"datasetVersion": "1"}, {})


def test_staged_rows_are_counted_once_and_published_as_what_they_are(run: Run, tables: list[str]) -> None:
    write = {"table": tables[0], "source": some_readings}
    run(LanceAppendOperator, **write)
    staged, _, [stage] = run(LanceOverwriteOperator, run_id="b", **write, stage=True)
    _, _, [publish] = run(LancePublishOperator, staged=staged)

    number = staged["staged_version"].removeprefix("staged-")
    assert stage["facets"]["version"] == {"datasetVersion": number}
    assert stage["facets"]["lance_commit"] == {"committed": True, "published": False, "previousVersion": "1"}
    assert stage["facets"]["schema"] == publish["facets"]["schema"] == {"fields": FIELDS}
    assert stage["outputFacets"]["outputStatistics"]["rowCount"] == 3
    assert publish["facets"]["version"] == {"datasetVersion": "2"}
    assert publish["facets"]["lance_commit"] == {
        "committed": True,
        "published": True,
        "previousVersion": "1",
        "sourceVersion": number,
    }
    assert publish["outputFacets"] == {}


def test_a_computed_column_is_reported_with_those_that_it_comes_from(run: Run, tables: list[str]) -> None:
    def doubled(batch: pa.RecordBatch) -> pa.Array:
        return pc.multiply(batch["v"], 2)

    run(LanceAppendOperator, table=tables[0], source=some_readings)
    arguments = {"table": tables[0], "column": "w", "columns": ["v"], "function": doubled}
    xcom, [table], [output] = run(LanceComputeColumnOperator, **arguments)
    _, _, [nothing_new] = run(LanceComputeColumnOperator, **arguments)

    assert table["facets"] == {"version": {"datasetVersion": "1"}, "schema": {"fields": FIELDS}}
    facets = output["facets"]
    assert facets["version"] == {"datasetVersion": str(xcom["version"])}
    assert [field["name"] for field in facets["schema"]["fields"]] == ["id", "v", "w"]
    assert (facets["lance_commit"]["columns"], facets["lance_commit"]["previousVersion"]) == (["w"], "1")
    [origin] = facets["columnLineage"]["fields"]["w"]["inputFields"]
    assert (origin["name"], origin["field"]) == (table["name"], "v")
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 3
    assert "columnLineage" not in nothing_new["facets"]
    assert nothing_new["outputFacets"] == {}


@pytest.mark.slow
def test_a_stream_reports_the_rows_of_all_its_epochs(run: Run, tables: list[str], tmp_path: Path) -> None:
    def streamed(spark: SparkSession) -> DataFrame:
        files = spark.readStream.option("maxFilesPerTrigger", "1")
        return files.csv(str(tmp_path / "in"), schema="id long, v int")

    (tmp_path / "in").mkdir()
    for number in (1, 2):
        (tmp_path / "in" / f"{number}.csv").write_text(f"{number},2\n")
    arguments = {"table": tables[0], "source": streamed, "checkpoint": str(tmp_path / "checkpoint")}
    xcom, inputs, [output] = run(LanceStreamOperator, **arguments)
    _, _, [nothing_new] = run(LanceStreamOperator, **arguments)

    assert (xcom["epochs"], inputs) == (2, [])
    assert output["facets"]["version"] == nothing_new["facets"]["version"] == {"datasetVersion": "2"}
    assert output["facets"]["schema"] == {"fields": FIELDS}
    assert output["facets"]["lifecycleStateChange"] == {"lifecycleStateChange": "CREATE"}
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 2
    assert nothing_new["outputFacets"] == {}
