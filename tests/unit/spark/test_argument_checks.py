"""An argument of a wrong type is refused by its name before anything is done."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pendulum
import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens import LanceCatalog, Table, WriteIdentity
from airflow_provider_lancens.spark.argument_checks import CHECKS
from airflow_provider_lancens.spark.options import MAX_ROWS, Overwrite, Upsert
from airflow_provider_lancens.spark.release_sets import ReleaseSet

CHECKED_ELSEWHERE = {
    "Any",
    "int",
    "int | None",
    "str | Mapping[str, Any] | WriteResult",
    "SchemaMode",
    "WhenMatched",
    "IfUnavailable",
    "Mapping[str, int] | Sequence[TableRef]",
    "TableRef",
    "str | TableId",
    "str | NamespaceId",
    "pa.Schema | Mapping[str, str] | None",
    "Callable[[CascadePlan], object] | None",
}
"""Annotations of arguments whose own code checks them, or of any type."""

CATALOG = ("declare_table", "register_table", "list_tables", "create_namespace", "drop_namespace")


def arguments(kind: type) -> list[tuple[str, str, str]]:
    return [
        (name, argument, annotation)
        for name, method in vars(kind).items()
        if not name.startswith("_") and inspect.isfunction(method)
        for argument, annotation in method.__annotations__.items()
        if argument != "return"
    ]


class Odd:
    """A value of no type that any argument takes."""


@pytest.fixture
def orders(lake: LanceCatalog) -> Table:
    table = lake.declare_table("orders")
    table.append(pa.table({"id": [1, 2]}))
    return table


def call(method: Callable[..., Any], argument: str, value: Any) -> Any:
    """Call a method with one argument, and anything for the others that it requires."""
    given = {
        one.name: ["id"] if one.annotation == "Sequence[str]" else "orders"
        for one in inspect.signature(method).parameters.values()
        if one.default is one.empty
    }
    return method(**{**given, argument: value})


@pytest.mark.parametrize("kind", [Table, LanceCatalog, ReleaseSet])
def test_the_type_of_each_argument_is_checked_somewhere(kind: type) -> None:
    annotations = {annotation for _, _, annotation in arguments(kind)}

    unknown = [one for one in annotations - CHECKED_ELSEWHERE - CHECKS.keys() if "Literal[" not in one]

    assert unknown == []


@pytest.mark.parametrize(
    ("method", "argument"), [(name, one) for name, one, kind in arguments(Table) if kind in CHECKS]
)
def test_an_argument_of_a_table_of_another_type_is_refused_by_its_name(
    orders: Table, method: str, argument: str
) -> None:
    with pytest.raises(InvalidInputError, match=rf"^{argument}: expected "):
        call(getattr(orders, method), argument, Odd())
    assert orders.version == 1


@pytest.mark.parametrize(
    ("method", "argument"),
    [(name, one) for name, one, kind in arguments(LanceCatalog) if name in CATALOG and kind in CHECKS],
)
def test_an_argument_of_a_catalog_of_another_type_is_refused_by_its_name(
    lake: LanceCatalog, method: str, argument: str
) -> None:
    with pytest.raises(InvalidInputError, match=rf"^{argument}: expected "):
        call(getattr(lake, method), argument, Odd())
    assert lake.list_tables() == []


@pytest.mark.parametrize(
    ("method", "given", "message"),
    [
        ("delete", {"where": True}, "where: expected text, got True"),
        ("to_arrow", {"columns": ["id", None]}, r"columns: expected a list of names, got \['id', None\]"),
        ("drop_columns", {"columns": [1]}, r"columns: expected a list of names, got \[1\]"),
        ("alter_columns", {"rename": {"id": 1}}, "rename: expected text, 'id' is of type int"),
        (
            "add_columns",
            {"columns": ["id"]},
            "columns: expected a mapping of names, got a value of type list",
        ),
        (
            "check_freshness",
            {"max_age": 3600},
            "max_age: expected a timedelta, or text such as PT6H, got 3600",
        ),
        ("history", {"limit": -1}, f"limit: expected a whole number from 0 to {MAX_ROWS}, got -1"),
        ("history", {"limit": "9"}, f"limit: expected a whole number from 0 to {MAX_ROWS}, got '9'"),
        ("to_arrow", {"limit": 2**63}, f"limit: expected a whole number from 0 to {MAX_ROWS}, or None, got "),
        ("restore", {"version": "\ud800"}, "version: expected text that UTF-8 can encode, got "),
        ("find_write", {"key": "\ud800"}, "key: expected text that UTF-8 can encode, got "),
        (
            "compact",
            {"thresholds": {"min_small": 1}},
            "thresholds: 'min_small' is unknown; expected min_small_",
        ),
        ("compact", {"compaction_options": 5}, "compaction_options: expected CompactionOptions or a mapping"),
        ("maintain", {"indices": ["id"]}, r"indices\[0\]: expected IndexSpec or a mapping of its fields"),
        (
            "maintain",
            {"indices": [{"column": "id", "type": "BTREE"}]},
            r"indices\[0\]: 'type' is unknown; expected column, index_type",
        ),
        (
            "maintain",
            {"indices": [{"column": "id", "index_type": 1}]},
            r"indices\[0\]: index_type: expected one of .*, got 1",
        ),
        ("create_index", {"column": "id", "index_type": None}, "index_type: expected text, got None"),
        (
            "delete_tag",
            {"name": "t", "if_missing": "skpi"},
            "if_missing: expected one of fail, skip, got 'skpi'",
        ),
    ],
)
def test_what_is_wrong_with_a_value_is_said(
    orders: Table, method: str, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=f"^{message}"):
        getattr(orders, method)(**given)
    assert orders.version == 1


def test_nothing_is_deleted_if_what_to_do_without_it_is_misspelt(orders: Table) -> None:
    orders.tag("kept", 1)

    with pytest.raises(InvalidInputError, match=r"^if_missing: "):
        orders.delete_tag("kept", if_missing="skpi")  # type: ignore[arg-type]
    assert [one.name for one in orders.tags()] == ["kept"]


def test_a_message_about_properties_has_no_value_of_theirs(lake: LanceCatalog) -> None:
    for properties in ({"password": b"hush"}, ["hush"]):
        with pytest.raises(InvalidInputError, match=r"^properties: expected") as refused:
            lake.declare_table("orders", properties=properties)  # type: ignore[arg-type]
        assert "hush" not in str(refused.value)


def test_a_location_that_is_a_path_is_refused_with_the_expected_type(
    lake: LanceCatalog, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInputError, match=r"^location: expected text, got PosixPath"):
        lake.register_table("orders", tmp_path)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [3, "id", b"id", {"id": 1}, ["id", None], [""]])
def test_columns_of_a_write_are_a_list_of_names(value: Any) -> None:
    for make in (
        lambda: Upsert(on=value),
        lambda: Overwrite(on=value),
        lambda: Upsert(on=["x"], update_columns=value),
        lambda: Upsert(on=["x"], delete_when="y", helper_columns=value),
    ):
        with pytest.raises(
            InvalidInputError, match=r"^(on|update_columns|helper_columns): expected a list of"
        ):
            make()


@pytest.mark.parametrize("value", [0, False, [], " "])
def test_the_column_that_orders_rows_is_text(value: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^sequence_by: expected the name of a column"):
        Upsert(on=["x"], sequence_by=value)


@pytest.mark.parametrize("field", ["key", "fingerprint", "execution_id"])
def test_the_identity_of_a_write_is_text(field: str) -> None:
    with pytest.raises(InvalidInputError, match=f"^{field}: expected text, or None; got 7"):
        WriteIdentity(**{field: 7})  # type: ignore[arg-type]


def test_an_expected_version_of_a_release_is_a_number(lake: LanceCatalog, orders: Table) -> None:
    lake.declare_table("releases")

    with pytest.raises(InvalidInputError, match=r"^expected_version: expected a whole number"):
        lake.release_set("releases").release({"orders": 1}, expected_version="0")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"^tables: expected a mapping of tables to versions"):
        lake.release_set("releases").release("orders")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"^tables\[0\]: expected a result or an XCom with a version"):
        lake.release_set("releases").release(["orders"])
    assert lake.table("releases").version is None


def test_a_duration_of_pendulum_is_a_timedelta(orders: Table) -> None:
    orders.append(pa.table({"id": [3]}))

    moved = orders.move_bookmark("reader", 1, expires_after=pendulum.duration(days=3))
    expired = orders.expire_versions(older_than=pendulum.duration(days=3))

    assert moved.expires_at is not None
    assert moved.moved_at is not None
    assert timedelta(days=2) < moved.expires_at - moved.moved_at < timedelta(days=4)
    assert expired.versions == 0
