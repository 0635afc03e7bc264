"""Which columns the partitions of an asset event may be taken from is known before a write."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance_namespace.errors import TableColumnNotFoundError

from airflow_provider_lancens.operators._spark.partitions import check_written_column
from airflow_provider_lancens.spark import connect
from airflow_provider_lancens.spark.options import Append, Change, Overwrite, Upsert
from airflow_provider_lancens.spark.write.row_sources import ArrowRows

ROWS = ArrowRows.of(pa.table({"id": [2], "added": ["2026-11-02"]}))


@pytest.fixture
def target(tmp_path: Path) -> Any:
    table = connect("dir", {"root": str(tmp_path)}).declare_table("t")
    table.append(pa.table({"id": [1], "day": ["2026-11-01"]}))
    with table._resolved() as target:
        yield target


@pytest.mark.parametrize(
    ("change", "rows", "column"),
    [
        (Append(), ROWS, "day"),
        (Append(schema_mode="merge"), ROWS, "added"),
        (Append(schema_mode="merge"), None, "added"),
        (Overwrite(schema_mode="overwrite"), ROWS, "added"),
        (Overwrite(schema_mode="overwrite"), None, "added"),
        (Append(), None, "day"),
        (Append(), ROWS, None),
    ],
)
def test_a_column_of_the_new_version_is_accepted(
    target: Any, change: Change, rows: Any, column: str | None
) -> None:
    check_written_column(target, change, rows, column)


@pytest.mark.parametrize(
    ("change", "rows", "column"),
    [
        (Append(), ROWS, "month"),
        (Append(), None, "month"),
        (Append(schema_mode="merge"), ROWS, "month"),
        (Overwrite(schema_mode="overwrite"), ROWS, "day"),
        (Upsert(on=["id"], delete_when="added IS NULL"), ROWS, "added"),
    ],
)
def test_a_column_that_the_new_version_lacks_is_refused(
    target: Any, change: Change, rows: Any, column: str
) -> None:
    with pytest.raises(TableColumnNotFoundError, match=f"event_partitions: .*{column}.*nothing was written"):
        check_written_column(target, change, rows, column)
