"""Requests with rows: what can't be stored is refused before anything is written."""

import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import ConcurrentModificationError, InvalidInputError, TableAlreadyExistsError

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace.config import Properties, StorageConfig
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.version_removals import recorded_removal
from tests.support.request_data import stream
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


def named(*batches: pa.Array) -> bytes:
    """Return a batch of each array, as values of the column ``name``, with a number for each."""
    tables = [
        pa.record_batch({"n": pa.array(range(len(values)), pa.int32()), "name": values}) for values in batches
    ]
    return stream(pa.Table.from_batches(tables))


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_text_that_is_not_utf_8_creates_no_table(lake: Any, values: pa.Array) -> None:
    with pytest.raises(InvalidInputError, match=r"request_data: row 2, column name: text that isn't UTF-8"):
        lake.create_table(TABLE, named(values))
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
    good = named(pa.array(["ä", None]))
    assert lake.create_table(TABLE, good).version == 1
    with pytest.raises(InvalidInputError, match=r"row 4, column name: text that isn't UTF-8"):
        request_with(lake, named(pa.array(["x", "y"]), TEXT))
    request_with(lake, good)
    assert [one.version for one in lake.list_table_versions({**TABLE, "descending": True}).versions] == [2, 1]


@pytest.mark.parametrize(
    ("mode", "rows"), [("create", ["theirs"]), ("exist_ok", ["theirs"]), ("overwrite", ["ours"])]
)
def test_a_table_that_another_client_creates_meanwhile_exists(
    lake: Any, monkeypatch: pytest.MonkeyPatch, mode: str, rows: list[str]
) -> None:
    write, theirs = lance.write_dataset, iter([named(pa.array(["theirs"]))])

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
        lake.create_table({**TABLE, "mode": mode}, named(pa.array(["ours"])))

    assert lake.count_table_rows({**TABLE, "predicate": f"name = '{rows[0]}'"}).count == 1
    assert lake.count_table_rows(TABLE).count == 1


def test_rows_that_end_early_change_no_table(lake: Any) -> None:
    content = named(pa.array(["a"]), pa.array(["b"] * 100))
    lake.create_table(TABLE, named(pa.array(["a"])))
    with pytest.raises(InvalidInputError, match="request_data: expected rows as an Arrow IPC stream"):
        lake.insert_into_table(TABLE, content[:-200])
    assert lake.count_table_rows(TABLE).count == 1


def test_the_last_columns_with_values_are_not_dropped(lake: Any) -> None:
    lake.create_table(TABLE, named(pa.array(["a"])))
    lance.dataset(namespace_client=lake, table_id=TABLE["id"]).add_columns(pa.schema([("late", pa.int64())]))

    with pytest.raises(InvalidInputError, match="fragment 0 has values of n, name alone"):
        lake.alter_table_drop_columns({**TABLE, "columns": ["n", "name"]})
    assert lake.alter_table_drop_columns({**TABLE, "columns": ["n"]}).version == 3


def test_a_version_that_a_clean_up_removes_is_not_restored(lake: Any) -> None:
    text = pa.array(["a", "b"])
    lake.create_table(TABLE, named(text))
    lake.insert_into_table({**TABLE, "mode": "overwrite"}, named(text[:1]))
    files = Manifests(lake.describe_table(TABLE).location, {})
    with recorded_removal(files, {1}) as removal:
        removal.begin()
        with pytest.raises(ConcurrentModificationError, match="version 1 is being removed by a clean-up"):
            lake.restore_table({**TABLE, "version": 1})
    assert lake.count_table_rows(TABLE).count == 1

    lake.restore_table({**TABLE, "version": 1})

    assert lake.count_table_rows(TABLE).count == 2
    assert lake.list_table_tags(TABLE).tags == {}


def test_a_version_of_a_branch_is_restored_on_the_branch(lake: Any) -> None:
    text = pa.array(["a", "b"])
    lake.create_table(TABLE, named(text))
    lake.create_table_branch({**TABLE, "name": "trial"})
    lake.insert_into_table({**TABLE, "branch": "trial", "mode": "overwrite"}, named(text[:1]))
    lake.insert_into_table({**TABLE, "mode": "overwrite"}, named(pa.array(["c"] * 3)))

    lake.restore_table({**TABLE, "branch": "trial", "version": 1})

    assert lake.count_table_rows({**TABLE, "branch": "trial"}).count == 2
    assert lake.count_table_rows(TABLE).count == 3
    assert lake.list_table_tags(TABLE).tags == {}


def merged(**fields: Any) -> Callable[[Any], object]:
    return lambda lake: lake.merge_insert_into_table(
        {**TABLE, "on": ["n"], **fields}, named(pa.array(["a"] * 2))
    )


def adding(name: str) -> Callable[[Any], object]:
    entries = [{"name": name, "expression": "n"}]
    return lambda lake: lake.alter_table_add_columns({**TABLE, "new_columns": entries})


def renaming(name: str) -> Callable[[Any], object]:
    entries = [{"path": "n", "rename": name}]
    return lambda lake: lake.alter_table_alter_columns({**TABLE, "alterations": entries})


def branching(name: str) -> Callable[[Any], object]:
    return lambda lake: lake.create_table_branch({**TABLE, "name": name})


REFUSED_COLUMNS = [
    (change(name), f"{argument}: column {re.escape(repr(name))}: ")
    for change, argument in ((adding, "new_columns"), (renaming, "alterations"))
    for name in ("", "*", "a.b", "`quoted`", "_rowid", "_rowaddr", "name")
]
REFUSED_BRANCHES = [
    (branching(name), "name: expected the name of a branch") for name in ("", "../x", "x" * 300)
]


@pytest.mark.parametrize(
    ("request_refused", "message"),
    [
        (lambda lake: lake.query_table({**TABLE, "k": 2**64, "vector": {}}), "too large"),
        (lambda lake: lake.restore_table({**TABLE, "version": 2**64}), "too big"),
        (
            lambda lake: lake.query_table(
                {**TABLE, "k": 1, "vector": {"single_vector": [1.0]}, "vector_column": "n"}
            ),
            "must be a vector",
        ),
        (merged(when_matched_update_all=True, timeout="inf"), "infinity"),
        (
            merged(when_not_matched_insert_all=True, when_matched_update_all_filt="target.n > 0"),
            "when_matched_update_all_filt: has no effect without",
        ),
        (
            merged(when_matched_update_all=True, when_not_matched_by_source_delete_filt="n > 0"),
            "when_not_matched_by_source_delete_filt: has no effect without",
        ),
        (
            lambda lake: lake.update_table({**TABLE, "updates": [["name", "'a'"], ["name", "'b'"]]}),
            "updates: column 'name' is named twice",
        ),
        (
            lambda lake: lake.alter_table_add_columns(
                {**TABLE, "new_columns": [{"name": "z", "expression": value} for value in ("n", "n + 1")]}
            ),
            "new_columns: column 'z' is named twice",
        ),
        *REFUSED_COLUMNS,
        *REFUSED_BRANCHES,
    ],
)
def test_a_value_that_would_be_ignored_or_that_lance_cannot_take_is_refused(
    lake: Any, request_refused: Callable[[Any], object], message: str
) -> None:
    lake.create_table(TABLE, named(pa.array(["a", "b"])))
    with pytest.raises(InvalidInputError, match=message):
        request_refused(lake)
    assert lake.count_table_rows({**TABLE, "predicate": "name = 'b'"}).count == 1


@pytest.mark.parametrize("name", ["", "*", "a.b", "`quoted`", "_rowid"])
def test_rows_with_columns_that_lance_cannot_store_create_no_table(lake: Any, name: str) -> None:
    rows = stream(pa.table({name: [1], "n": [2]}))

    with pytest.raises(InvalidInputError, match=f"request_data: column {re.escape(repr(name))}: "):
        lake.create_table(TABLE, rows)
    assert lake.list_tables({"id": ["db"]}).tables == []


@pytest.mark.parametrize("name", ["", "*", "`quoted`"])
def test_rows_with_columns_that_lance_cannot_store_are_no_first_version(lake: Any, name: str) -> None:
    lake.declare_table(TABLE)

    with pytest.raises(InvalidInputError, match=f"request_data: column {re.escape(repr(name))}: "):
        lake.insert_into_table(TABLE, stream(pa.table({name: [1], "n": [2]})))
    assert lake.list_table_versions(TABLE).versions == []


AMOUNTS = pa.array(range(3)).cast(pa.decimal128(21, 2))
ALIGNED: dict[str, pa.Array] = {
    "decimals": AMOUNTS,
    "a list": pa.ListArray.from_arrays([0, 1, 2, 3], AMOUNTS),
    "a field": pa.StructArray.from_arrays([AMOUNTS], ["inside"]),
    "views": pa.array(["a" * 20, "b" * 20, None]).cast(pa.string_view()),
}


@pytest.mark.parametrize("columns_before", [1, 2])
@pytest.mark.parametrize("values", ALIGNED.values(), ids=ALIGNED)
def test_values_are_stored_wherever_they_are_in_the_stream(
    lake: Any, values: pa.Array, columns_before: int
) -> None:
    numbers = {f"n{position}": range(3) for position in range(columns_before)}
    rows = stream(pa.table({**numbers, "x": values}))

    lake.create_table(TABLE, rows)  # Lance panics on decimals whose memory isn't aligned
    lake.insert_into_table(TABLE, rows)
    lake.merge_insert_into_table({**TABLE, "on": ["n0"], "when_not_matched_by_source_delete": True}, rows)

    stored = lance.dataset(namespace_client=lake, table_id=TABLE["id"]).to_table()
    assert stored["x"].to_pylist() == values.to_pylist() * 2


def test_a_column_is_added_to_a_table_with_a_name_that_another_client_chose(
    lake: Any, tmp_path: Path
) -> None:
    lake.create_table(TABLE, named(pa.array(["a", "b"])))
    lance.dataset(namespace_client=lake, table_id=TABLE["id"]).alter_columns({"path": "name", "name": "*"})

    lake.alter_table_add_columns({**TABLE, "new_columns": [{"name": "twice", "expression": "n * 2"}]})

    assert lance.dataset(namespace_client=lake, table_id=TABLE["id"]).schema.names == ["n", "*", "twice"]


def test_rows_are_appended_to_a_column_with_a_name_that_another_client_chose(lake: Any) -> None:
    lake.create_table(TABLE, named(pa.array(["a", "b"])))
    lance.dataset(namespace_client=lake, table_id=TABLE["id"]).alter_columns({"path": "name", "name": "*"})
    rows = stream(pa.table({"n": pa.array([2], pa.int32()), "*": ["c"]}))

    lake.insert_into_table(TABLE, rows)

    assert lake.count_table_rows(TABLE).count == 3
    with pytest.raises(InvalidInputError, match=r"request_data: column '\*': "):
        lake.insert_into_table({**TABLE, "mode": "overwrite"}, rows)


def test_a_search_skips_rows_beside_those_that_it_returns(lake: Any) -> None:
    rows = pa.table({"n": range(6), "v": pa.array([[float(n)] for n in range(6)], pa.list_(pa.float32(), 1))})
    lake.create_table(TABLE, stream(rows))

    query = {**TABLE, "k": 2, "offset": 3, "vector": {"single_vector": [0.0]}}
    found = pa.ipc.open_file(lake.query_table(query).data).read_all()

    assert found["n"].to_pylist() == [3, 4]


def test_the_main_branch_may_be_named(lake: Any) -> None:
    main = {**TABLE, "branch": "main"}
    lake.create_table(TABLE, named(pa.array(["a", "b"])))

    lake.insert_into_table(main, named(pa.array(["c"])))
    lake.delete_from_table({**main, "predicate": "name = 'a'"})
    lake.create_table_tag({**main, "tag": "kept", "version": 2})
    lake.create_table_branch({**TABLE, "name": "trial", "from_branch": "main", "from_version": 2})
    query = {"k": 1, "vector": {}, "branch": "main"}

    assert lake.count_table_rows(main).count == 2
    assert lake.get_table_tag_version({**TABLE, "tag": "kept"}).branch in (None, "main")
    assert lake.explain_table_query_plan({**TABLE, "query": query})
    lake.restore_table({**main, "version": 1})
    assert lake.count_table_rows(TABLE).count == 2
    assert lake.count_table_rows({**TABLE, "branch": "trial"}).count == 3
