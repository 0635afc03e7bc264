"""The operator on a managed table of a real metastore, with the function in the file of the DAG."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from airflow.sdk import Asset
from airflow.sdk.execution_time.context import OutletEventAccessors

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.operators import LanceComputeColumnOperator
from airflow_provider_lancens.operators._spark.spark_operator import LanceSparkOperator
from airflow_provider_lancens.spark import ColumnFunctionError
from tests.support.computed_tables import doubled, expected, fill, values
from tests.support.maintained_tables import Maintained

Run = Callable[..., tuple[dict[str, Any], dict[str, Any]]]

pytestmark = pytest.mark.parametrize("table", ["managed"], indirect=True)


@pytest.fixture
def run(table: Maintained, connect: Callable[..., str]) -> Run:
    """Run the operator as a worker does; return its XCom and its asset event's extra."""
    lake = connect(host=table.spec.properties["uri"], extra={"root": table.spec.properties["root"]})
    asset = Asset(uri=f"lance://{lake}/{table.id.replace('$', '/')}")
    instance = SimpleNamespace(dag_id="dag", task_id="compute", map_index=-1, max_tries=2)

    def run(**arguments: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        events = OutletEventAccessors()
        given = {"table": table.id, "column": "n", "columns": ["id"], "function": doubled, **arguments}
        task = LanceComputeColumnOperator(task_id="compute", lance_conn_id=lake, outlets=[asset], **given)
        context: Any = {"outlet_events": events, "ti": instance, "run_id": "monday"}
        return task.execute(context), dict(events[asset].extra)

    return run


def test_a_task_computes_what_is_missing_and_its_rerun_starts_no_spark(
    table: Maintained, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(table)

    computed, moved = run()
    monkeypatch.setattr(LanceSparkOperator, "spark", lambda *_: pytest.fail("Spark was started"))
    again, not_moved = run()

    assert values(table) == expected(range(40))
    assert (computed["computed"], computed["previous_version"], computed["outcome"]) == (40, 1, "done")
    assert computed["version"] == table.described.version == 2 + computed["commits"] - 1
    versions = {"previous_version": 1, "version": computed["version"]}
    place = {"table": table.id, "location": table.described.location}
    assert moved == {**place, "operation": "compute_column", **versions}
    assert (again["outcome"], again["version"]) == ("unchanged", computed["version"])
    assert not_moved["previous_version"] == not_moved["version"]


def test_the_retry_of_a_task_that_computes_all_rows_skips_what_is_committed(
    table: Maintained, run: Run
) -> None:
    fill(table, 6)
    run()

    def fails_late(batch: pa.RecordBatch) -> pa.Array:
        if batch["id"][0].as_py() >= 50:
            raise RuntimeError("out of memory")
        return batch["id"]

    with pytest.raises(ColumnFunctionError, match="RuntimeError: out of memory; 5 fragments are committed"):
        run(function=fails_late, where="TRUE")

    retried, _ = run(function=lambda batch: batch["id"], where="TRUE")

    assert (retried["computed"], retried["files"]) == (10, 1)
    assert values(table) == {number: number for number in range(60)}


def test_invalid_results_and_arguments_fail_without_retries(table: Maintained, run: Run) -> None:
    fill(table, 1)
    with pytest.raises(AirflowFailException, match="returned a value of type int"):
        run(function=lambda _: 7, dtype="int64")
    with pytest.raises(AirflowFailException, match=r"columns: expected names among .* got \['ix'\]"):
        run(columns=["ix"])
    with pytest.raises(TypeError, match="function: is of type int; expected a function or its path"):
        run(function=7)
    with pytest.raises(ValueError, match="batch_rows: expected a whole number of at least 1, got 0"):
        run(batch_rows=0)
    assert set(values(table).values()) == {None}
