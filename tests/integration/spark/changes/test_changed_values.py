"""The values of a column in the rows that a commit touched, as partitions of its asset event."""

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from airflow.sdk.execution_time.context import OutletEventAccessors
from lance_namespace.errors import InvalidInputError, TableColumnNotFoundError
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_lancens.assets import lance_table
from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.operators import LanceAppendOperator, LanceOverwriteOperator
from airflow_provider_lancens.operators.ingest import LanceWriteOperator
from airflow_provider_lancens.spark.changes.changed_values import changed_values
from airflow_provider_lancens.spark.commit.delete import delete_rows
from airflow_provider_lancens.spark.maintenance.compact import compact_table
from tests.integration.airflow.lifecycle import Attempt
from tests.support.maintained_tables import Maintained, on

pytestmark = pytest.mark.thorough


def days(table: Maintained, version: int) -> list[str]:
    after = version - 1 or None
    return changed_values(table.spec, table.id, "day", after_version=after, version=version)


def frame(table: Maintained, *rows: tuple[int, str | None]) -> DataFrame:
    return table.spark.createDataFrame(list(rows), "id long, text string").selectExpr(
        "id", "cast(text as date) as day"
    )


@on("hive")
def test_days_that_rows_are_written_to_moved_from_and_deleted_of(table: Maintained) -> None:
    write, day = table.write, "2026-11-0{}".format
    write(frame(table, (1, day(1)), (2, day(2)), (3, day(3)), (4, None)))
    assert days(table, 1) == [day(1), day(2), day(3)]
    write(frame(table, (5, day(4))))
    assert days(table, 2) == [day(4)]
    write(frame(table, (2, day(5))), mode="upsert", on=["id"])
    assert days(table, 3) == [day(2), day(5)]
    version = delete_rows(table.spec, table.id, "id = 3").version
    assert days(table, version) == [day(3)]
    write(frame(table, (1, day(1))), mode="overwrite", where=f"day = '{day(1)}'")
    assert days(table, version + 1) == [day(1)]
    compacted = compact_table(table.spark, table.spec, table.id).version
    write(frame(table, (9, day(9))), mode="overwrite")
    assert days(table, compacted + 1) == [day(1), day(4), day(5), day(9)]


@on("stored")
def test_an_overwrite_by_a_column_of_another_type_has_deleted_the_days_of_the_former_one(
    table: Maintained,
) -> None:
    former, new = frame(table, (1, "2026-11-01"), (2, "2026-11-02")), frame(table, (3, "2026-11-02"))
    table.write(former.selectExpr("id", "cast(day as string) as day"))
    table.write(new, mode="overwrite", schema_mode="overwrite")
    assert days(table, 2) == ["2026-11-01", "2026-11-02"]
    table.write(table.spark.sql("SELECT 2199023255552 AS day"), mode="overwrite", schema_mode="overwrite")
    table.write(table.spark.sql("SELECT 1 AS day"), mode="overwrite", schema_mode="overwrite")
    assert table.by_path.schema.field("day").type == "int32"  # which can't hold the former value
    assert days(table, 4) == ["1", "2199023255552"]


@on("stored")
def test_a_column_that_was_dropped_and_added_again_with_another_type_has_no_earlier_values(
    table: Maintained,
) -> None:
    table.write(frame(table, (1, "2026-11-01"), (2, "2026-11-02")))
    table.by_path.drop_columns(["day"])
    table.by_path.update({"id": "9"}, where="id = 2")
    table.write(table.spark.sql("SELECT 3 AS id, 7 AS day"), schema_mode="merge")

    newest = table.by_path.version
    assert changed_values(table.spec, table.id, "day", after_version=1, version=newest) == ["7"]


@on("stored")
def test_a_column_that_is_no_partition_is_refused(table: Maintained) -> None:
    table.write(table.spark.range(1001))
    with pytest.raises(InvalidInputError, match="column 'id' has more than 1000 values"):
        changed_values(table.spec, table.id, "id", after_version=None, version=1)
    with pytest.raises(TableColumnNotFoundError):
        changed_values(table.spec, table.id, "day", after_version=None, version=1)


def test_an_asset_event_has_the_days_as_partition_keys(hive: Maintained, connect: Callable[..., str]) -> None:
    table, properties = hive, hive.spec.properties
    lake = connect(host=properties["uri"], extra={"root": properties["root"]})
    outlet = lance_table(table.id, lake)

    def source(spark: SparkSession) -> DataFrame:
        return frame(table, *given_rows) if given_rows else frame(table, (1, "")).limit(0)

    given_rows = [(1, "2026-11-01"), (2, "2026-11-02")]

    def event_of(kind: type[LanceWriteOperator] = LanceAppendOperator, **arguments: Any) -> Any:
        given = {"task_id": "ingest", "table": table.id, "source": source, "lance_conn_id": lake}
        task = kind(**given, outlets=[outlet], **arguments)
        events = OutletEventAccessors()
        with closing(LanceHook.for_connection(lake)):
            task.execute({"ti": Attempt(), "run_id": "run", "outlet_events": events})  # type: ignore[typeddict-item]
        return events[outlet]

    assert "partitions" not in event_of().extra
    event = event_of(event_partitions="day")  # the same commit, found by its key
    assert event.extra["partitions"] == ["2026-11-01", "2026-11-02"]
    if hasattr(event, "add_partitions"):
        assert event.partition_keys == {"2026-11-01", "2026-11-02"}
    with pytest.raises(AirflowFailException, match="month"):
        event_of(event_partitions="month")
    version = table.newest.version
    with pytest.raises(
        AirflowFailException, match=r"event_partitions: expected one of .*'month'; nothing was"
    ):
        event_of(event_partitions="month", key="another")
    assert table.newest.version == version

    given_rows.clear()
    removal = {"where": "day = '2026-11-01'", "key": "removed"}
    for _ in range(2):  # the second finds the commit of the first
        event = event_of(LanceOverwriteOperator, event_partitions="day", **removal)
        assert event.extra["partitions"] == ["2026-11-01"]
