"""A stream that ends with the rows that are available when it begins."""
# ruff: noqa: E402 an older PySpark is sorted out before what it can't import

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.pyspark_versions import need_data_sources

need_data_sources()
limits = pytest.importorskip("pyspark.sql.streaming.datasource", reason="PySpark 4.2 limits a stream")

from lance_namespace.errors import InvalidTableStateError
from pyspark import cloudpickle
from pyspark.sql.types import StructType

from airflow_provider_lancens import Table, connect
from airflow_provider_lancens.spark import NamespaceSpec, lance_data_source

ROWS = pa.table({"n": [1, 2]})


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = connect("dir", {"root": str(tmp_path)}).declare_table("t")
    made.append(ROWS)
    return made


def versions_read(reader: Any, start: dict[str, Any], end: dict[str, Any]) -> list[int]:
    return [part.version for one in reader.partitions(start, end) for part in one.value[1]]


@pytest.mark.parametrize(("options", "read"), [({}, [2]), ({"after_version": "0"}, [1])], ids=str)
def test_a_version_that_is_made_while_the_query_begins_fails_nothing(
    table: Table, tmp_path: Path, options: dict[str, str], read: list[int]
) -> None:
    source = lance_data_source(NamespaceSpec("dir", {"root": str(tmp_path)}))
    reader: Any = source({"table": "t", **options}).streamReader(StructType().add("n", "long"))

    reader.prepareForTriggerAvailableNow()
    table.append(ROWS)
    start = reader.initialOffset()
    table.append(ROWS)
    end = reader.latestOffset(start, limits.ReadAllAvailable())

    assert versions_read(reader, start, end) == read
    assert reader.latestOffset(end, limits.ReadAllAvailable()) == end


def test_a_table_that_was_created_again_with_as_many_versions_fails_the_query(
    table: Table, tmp_path: Path
) -> None:
    source = lance_data_source(NamespaceSpec("dir", {"root": str(tmp_path)}))
    first, second = (source({"table": "t"}).streamReader(StructType().add("n", "long")) for _ in range(2))
    end = first.latestOffset(first.initialOffset(), limits.ReadAllAvailable())
    lake = connect("dir", {"root": str(tmp_path)})
    lake.drop_table("t")
    lake.declare_table("t").append(ROWS)

    second.prepareForTriggerAvailableNow()
    with pytest.raises(InvalidTableStateError, match=r"created again.*checkpointLocation"):
        second.latestOffset(end, limits.ReadAllAvailable())


@pytest.mark.parametrize("options", [{}, {"after_version": "0"}], ids=str)
def test_a_query_has_the_columns_of_its_data_frame_though_they_were_renamed_before_it_started(
    table: Table, tmp_path: Path, options: dict[str, str]
) -> None:
    source = lance_data_source(NamespaceSpec("dir", {"root": str(tmp_path)}))({"table": "t", **options})
    schema = source.schema()
    kept = cloudpickle.dumps(source)  # as Spark keeps it
    table.alter_columns(rename={"n": "m"})

    reader: Any = cloudpickle.loads(kept).streamReader(schema)
    start = reader.initialOffset()
    end = reader.latestOffset(start, limits.ReadAllAvailable())
    read = [
        row for part in reader.partitions(start, end) for one in reader.read(part) for row in one.to_pylist()
    ]

    assert read == ROWS.to_pylist()
