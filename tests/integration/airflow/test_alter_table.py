"""Columns added, altered and dropped by a task: once, beside other writers, and never with a loss."""

from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa
import pytest
from airflow.sdk.execution_time.context import OutletEventAccessors
from lance_namespace import DescribeTableRequest

from airflow_provider_lancens.assets.table import lance_table
from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.operators.alter_table import LanceAlterTableOperator
from airflow_provider_lancens.spark.commit.schema_commits import SchemaCommits
from airflow_provider_lancens.spark.lance_table import Table as LanceTable
from tests.integration.airflow.lifecycle import Attempt
from tests.integration.airflow.tables import Table
from tests.integration.managed.commit_points import Point

Change = Callable[..., dict[str, Any]]
S = pa.struct([("a", pa.int32())])
of_both_kinds = pytest.mark.parametrize("managed_by", ["impl", "storage"])
ROWS = pa.table({"n": pa.array([1, 2], pa.int32()), "price": [1.5, None], "s": pa.array([{"a": 1}, None], S)})


@pytest.fixture
def managed_by() -> str:
    return "impl"


@pytest.fixture
def orders(table: Table, managed_by: str) -> Table:
    """A table of two orders, whose versions the metastore or the storage decides."""
    table.declare(managed_by=managed_by)
    lance.write_dataset(ROWS, namespace_client=table.namespace, table_id=table.id, mode="append")
    return table


def opened(table: Table) -> lance.LanceDataset:
    return lance.dataset(namespace_client=table.namespace, table_id=table.id)


@pytest.fixture
def change(lake: str, orders: Table) -> Change:
    """Run the task; return its XCom, and the extra of its asset event as ``event``."""

    def run(**arguments: Any) -> dict[str, Any]:
        asset, events = lance_table(str(orders), lake), OutletEventAccessors()
        given = {"table": str(orders), "lance_conn_id": lake, "outlets": [asset], **arguments}
        context: Any = {"ti": Attempt(), "run_id": "manual__1", "outlet_events": events}
        answer = LanceAlterTableOperator(task_id="change", **given).execute(context)
        assert answer.pop("seconds") >= 0
        return {**answer, "event": events[asset].extra}

    return run


@pytest.mark.parametrize(("again", "previous"), [(False, 3), (True, 5)])
def test_versions_of_others_between_two_changes_are_not_its_own(
    change: Change, orders: Table, monkeypatch: pytest.MonkeyPatch, again: bool, previous: int
) -> None:
    change(types={"n": "int64"}, **({"add": {"note": "string"}} if again else {}))
    genuine = LanceTable.add_columns

    def add_columns(table: LanceTable, *arguments: Any, **named: Any) -> Any:
        for _ in range(2 if again else 1):
            lance.write_dataset(
                opened(orders).to_table(),
                namespace_client=orders.namespace,
                table_id=orders.id,
                mode="append",
            )
        return genuine(table, *arguments, **named)

    monkeypatch.setattr(LanceTable, "add_columns", add_columns)
    result = change(types={"n": "int64"}, add={"note": "string"})

    assert (result["previous_version"], result["version"]) == (previous, previous + (not again))


@of_both_kinds
def test_columns_are_added_once_empty_or_computed(change: Change, orders: Table, managed_by: str) -> None:
    columns: dict[str, Any] = {"note": "string", "v": "float[2]", "at": pa.timestamp("us", "UTC")}
    arguments = {"add": columns, "expressions": {"twice": "n * 2", "zero": "0"}}

    first = change(**arguments)
    again = change(**arguments)

    versions: dict[str, Any] = {"table": str(orders), "version": 4, "previous_version": 1}
    versions["operation"] = "alter_table"
    added = {"columns": ["note", "v", "at", "twice", "zero"], "dropped_indices": []}
    location = orders.namespace.describe_table(DescribeTableRequest(id=orders.id)).location
    at = {"location": location}
    assert first == {**versions, **added, **at, "outcome": "done", "reason": "", "event": {**versions, **at}}
    assert again["outcome"] != "done"
    assert (again["version"], again["columns"], again["event"]["previous_version"]) == (4, [], 4)
    empty = dict.fromkeys(columns)
    assert opened(orders).to_table().drop_columns(["price", "s"]).to_pylist() == [
        {"n": 1, **empty, "twice": 2, "zero": 0},
        {"n": 2, **empty, "twice": 4, "zero": 0},
    ]
    assert all(field.nullable for field in opened(orders).schema)
    described = orders.namespace.describe_table(DescribeTableRequest(id=orders.id))
    assert described.version == 4 or managed_by == "storage"


@of_both_kinds
def test_columns_are_renamed_widened_and_made_nullable_once(change: Change, orders: Table) -> None:
    arguments = {
        "rename": {"n": "number"},
        "types": {"number": "bigint", "s": "struct<a: bigint, b: string>"},
    }

    first = change(**arguments)
    again = change(**arguments)

    assert (first["version"], first["columns"]) == (4, ["number", "s"])
    assert (again["version"], again["outcome"] == "done") == (4, False)
    found = opened(orders)
    assert found.schema.field("number").type == pa.int64()
    assert found.to_table().to_pylist() == [
        {"number": 1, "price": 1.5, "s": {"a": 1, "b": None}},
        {"number": 2, "price": None, "s": None},
    ]


@of_both_kinds
def test_columns_are_dropped_once(change: Change, orders: Table) -> None:
    first, again = (change(drop=["price", "unknown"]) for _ in range(2))

    assert (first["version"], first["columns"], first["event"]["version"]) == (2, ["price"], 2)
    assert (again["version"], again["outcome"] == "done") == (2, False)
    assert opened(orders).schema.names == ["n", "s"]


def test_nulls_are_allowed(change: Change, orders: Table) -> None:
    opened(orders).alter_columns({"path": "n", "nullable": False})

    answers = [change(nullable=["n"]) for _ in range(2)]

    assert [answer["outcome"] == "done" for answer in answers] == [True, False]
    assert opened(orders).schema.field("n").nullable


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"add": {"n": "string"}}, "n is int32, not string"),
        (
            {"add": {"N": "int"}},
            "N: another column differs from it only in case",
        ),
        ({"add": {"a.b": "int"}}, "the name contains a dot"),
        ({"add": {"x": "integr"}}, r"columns\['x'\]: expected a type such as"),
        ({"expressions": {"x": "nowhere + 1"}}, "no column .nowhere."),
        ({"expressions": {"x": " "}}, "expected SQL for x, got blank text"),
        ({"add": {}}, "each is empty; expected a change"),
        ({"rename": {"n": "price"}}, "columns 'n' and 'price' both exist"),
        ({"rename": {"x": "y"}}, "rename: column 'x' does not exist"),
        ({"types": {"n": "int16"}}, "n is int32, which cannot become int16"),
        (
            {"types": {"s": "struct<b: int>"}},
            "s is struct<a: int32>, which cannot",
        ),
        (
            {"types": {"price": "float"}},
            "price is double, which cannot become float",
        ),
        ({"nullable": ["x"]}, "nullable: column 'x' does not exist"),
        ({"drop": ["n", "price", "s"]}, "are all of its columns"),
        ({"drop": ["n"], "table": "db$nowhere"}, "TABLE_NOT_FOUND|NAMESPACE"),
    ],
)
def test_what_cannot_be_done_fails_without_retry_and_commits_nothing(
    change: Change, orders: Table, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(AirflowFailException, match=message):
        change(**arguments)

    assert opened(orders).version == 1


@pytest.mark.parametrize(
    ("arguments", "version"),
    [
        ({"types": {"n": "bigint"}}, 4),
        ({"drop": ["n"]}, 3),
    ],
)
def test_an_index_is_dropped_only_on_request(
    change: Change, orders: Table, arguments: dict[str, Any], version: int
) -> None:
    opened(orders).create_scalar_index("n", "BTREE")

    with pytest.raises(AirflowFailException, match=r"would drop the indices n_idx \(n\)"):
        change(**arguments)
    answer = change(**arguments, drop_indices=True)

    assert (answer["version"], answer["dropped_indices"]) == (version, ["n_idx"])
    assert opened(orders).describe_indices() == []


def test_an_index_follows_the_renamed_column(change: Change, orders: Table) -> None:
    opened(orders).create_scalar_index("n", "BTREE")

    change(rename={"n": "number"})

    assert opened(orders).describe_indices()[0].field_names == ["number"]


@of_both_kinds
@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"expressions": {"x": "n + 1"}}, ["n", "price", "s", "x"]),
        ({"types": {"n": "bigint"}}, ["n", "price", "s"]),
        ({"drop": ["price"]}, ["n", "s"]),
    ],
)
def test_rows_that_another_writer_appends_meanwhile_are_kept(
    change: Change, orders: Table, arguments: dict[str, Any], names: list[str]
) -> None:
    def append() -> None:
        lance.write_dataset(ROWS, namespace_client=orders.namespace, table_id=orders.id, mode="append")

    with Point(SchemaCommits, "_commit", after=False, committed=False).interrupted_by(append):
        answer = change(**arguments)

    found = opened(orders).to_table()
    assert (answer["version"], answer["previous_version"], found.num_rows) == (3, 2, 4)
    assert found.column_names == names
    assert found["n"].to_pylist() == [1, 2, 1, 2]
    if "x" in names:
        assert found["x"].to_pylist() == [2, 3, 2, 3]


def test_another_task_that_made_the_same_change_meanwhile_is_found(change: Change, orders: Table) -> None:
    def other() -> None:
        change(add={"x": "int"})

    with Point(SchemaCommits, "_commit", after=False, committed=False).interrupted_by(other):
        answer = change(add={"x": "int"})

    assert (answer["version"], answer["outcome"] == "done", answer["columns"]) == (2, False, [])


def test_all_kinds_of_changes_are_made_in_order_by_one_task(change: Change, orders: Table) -> None:
    arguments: dict[str, Any] = {
        "rename": {"n": "number"},
        "add": {"note": "string"},
        "expressions": {"twice": "number * 2"},
        "drop": ["price"],
    }

    first, again = change(**arguments), change(**arguments)

    assert opened(orders).schema.names == ["number", "s", "note", "twice"]
    assert (first["previous_version"], first["columns"]) == (1, ["number", "note", "twice", "price"])
    assert (again["version"], again["outcome"] == "done") == (first["version"], False)


@pytest.mark.parametrize("added", [{"add": {"price": "string"}}, {"expressions": {"price": "cents / 100"}}])
def test_a_column_is_not_added_under_a_name_that_a_renaming_frees(
    change: Change, orders: Table, added: dict[str, Any]
) -> None:
    with pytest.raises(AirflowFailException, match="column 'price' is renamed, and another column of"):
        change(rename={"price": "cents"}, **added)

    assert opened(orders).version == 1


def test_a_task_without_a_change_is_an_error_of_the_dag() -> None:
    with pytest.raises(ValueError, match="expected at least one of them"):
        LanceAlterTableOperator(task_id="change", table="db$t")
