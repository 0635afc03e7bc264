"""Requests with rows: what can't be stored is refused before anything is written."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError, TableAlreadyExistsError

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace.config import Properties, StorageConfig
from tests.unit.spark.commit.memory_lake import MemoryMetastore, MemoryNamespace

TABLE = {"id": ["db", "t"]}
BYTES = pa.array([b"ok", b"\xff\xfe", None], pa.binary())
TEXT = BYTES.view(pa.string())
VALUES: dict[str, pa.Array] = {
    "text": TEXT,
    "large text": BYTES.cast(pa.large_binary()).view(pa.large_string()),
    "a list": pa.ListArray.from_arrays([0, 1, 2, 3], TEXT),
    "a field": pa.StructArray.from_arrays([TEXT], ["inside"]),
    "a dictionary": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), TEXT),
}


class LocalMetastore(MemoryMetastore):
    """One whose databases have no locations."""

    def deletable_folders(self, database: NamespaceId) -> list[str]:
        return []


@pytest.fixture(params=["storage", "impl"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A namespace with new tables of either version authority."""
    properties = {"root": str(tmp_path), "managed_by": request.param}
    config = StorageConfig.parse(Properties(properties, list(properties)))
    return MemoryNamespace(LocalMetastore(), config, properties)  # type: ignore[arg-type]


def stream(*batches: pa.Array) -> bytes:
    """Return a batch of each array, as values of the column ``name``, with a number for each."""
    tables = [
        pa.record_batch({"n": pa.array(range(len(values)), pa.int32()), "name": values}) for values in batches
    ]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, tables[0].schema) as writer:
        for table in tables:
            writer.write_batch(table)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_text_that_is_not_utf_8_creates_no_table(lake: Any, values: pa.Array) -> None:
    with pytest.raises(InvalidInputError, match=r"request_data: row 2, column name: text that isn't UTF-8"):
        lake.create_table(TABLE, stream(values))
    assert lake._metastore.tables == {}


@pytest.mark.parametrize(
    "request_with",
    [
        lambda lake, rows: lake.insert_into_table(TABLE, rows),
        lambda lake, rows: lake.insert_into_table({**TABLE, "mode": "overwrite"}, rows),
        lambda lake, rows: lake.create_table({**TABLE, "mode": "overwrite"}, rows),
        lambda lake, rows: lake.merge_insert_into_table(
            {**TABLE, "on": ["n"], "when_matched_update_all": True, "when_not_matched_insert_all": True}, rows
        ),
    ],
)
def test_text_that_is_not_utf_8_changes_no_table(
    lake: Any, request_with: Callable[[Any, bytes], object]
) -> None:
    good = stream(pa.array(["ä", None]))
    assert lake.create_table(TABLE, good).version == 1
    with pytest.raises(InvalidInputError, match=r"row 4, column name: text that isn't UTF-8"):
        request_with(lake, stream(pa.array(["x", "y"]), TEXT))
    request_with(lake, good)
    assert [one.version for one in lake.list_table_versions({**TABLE, "descending": True}).versions] == [2, 1]


@pytest.mark.parametrize(
    ("mode", "rows"), [("create", ["theirs"]), ("exist_ok", ["theirs"]), ("overwrite", ["ours"])]
)
def test_a_table_that_another_client_creates_meanwhile_exists(
    lake: Any, monkeypatch: pytest.MonkeyPatch, mode: str, rows: list[str]
) -> None:
    write, theirs = lance.write_dataset, iter([stream(pa.array(["theirs"]))])

    def written_after_another_client(*arguments: Any, **named: Any) -> Any:
        if (other := next(theirs, None)) is not None:
            lake.create_table(TABLE, other)
        return write(*arguments, **named)

    monkeypatch.setattr(lance, "write_dataset", written_after_another_client)
    expected = (
        pytest.raises(TableAlreadyExistsError, match="exists, at version 1")
        if mode == "create"
        else nullcontext()
    )
    with expected:
        lake.create_table({**TABLE, "mode": mode}, stream(pa.array(["ours"])))

    assert lake.count_table_rows({**TABLE, "predicate": f"name = '{rows[0]}'"}).count == 1
    assert lake.count_table_rows(TABLE).count == 1


def test_rows_that_end_early_change_no_table(lake: Any) -> None:
    content = stream(pa.array(["a"]), pa.array(["b"] * 100))
    lake.create_table(TABLE, stream(pa.array(["a"])))
    with pytest.raises(InvalidInputError, match="request_data: expected rows as an Arrow IPC stream"):
        lake.insert_into_table(TABLE, content[:-200])
    assert lake.count_table_rows(TABLE).count == 1


def test_the_last_columns_with_values_are_not_dropped(lake: Any) -> None:
    lake.create_table(TABLE, stream(pa.array(["a"])))
    lance.dataset(namespace_client=lake, table_id=TABLE["id"]).add_columns(pa.schema([("late", pa.int64())]))

    with pytest.raises(InvalidInputError, match="fragment 0 has values of n, name alone"):
        lake.alter_table_drop_columns({**TABLE, "columns": ["n", "name"]})
    assert lake.alter_table_drop_columns({**TABLE, "columns": ["n"]}).version == 3
