"""Tables are declared with their columns, and what exists is compared with what is asked for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens import LanceCatalog, connect

COLUMNS = {"id": "bigint", "day": "date", "v": "float[2]", "tags": "list<string>"}
ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("v", pa.list_(pa.float32(), 2)),
        ("tags", pa.list_(pa.string())),
    ]
)


@pytest.fixture
def lake(tmp_path: Path) -> LanceCatalog:
    return connect("dir", {"root": str(tmp_path)})


@pytest.mark.parametrize("schema", [COLUMNS, ARROW], ids=["names of types", "Arrow"])
def test_a_table_that_is_declared_with_columns_has_a_version_without_rows(
    lake: LanceCatalog, schema: Any
) -> None:
    orders = lake.declare_table("orders", schema=schema)

    assert (orders.version, orders.count_rows()) == (1, 0)
    assert orders.schema == ARROW


def test_a_repeated_declaration_changes_nothing(lake: LanceCatalog) -> None:
    orders = lake.declare_table("orders", schema=COLUMNS)
    orders.append(pa.table({"id": [1]}), schema_mode="merge")
    orders.add_columns({"note": "string"})
    version = orders.version

    again = lake.declare_table("orders", schema=COLUMNS)

    assert (again.version, again.count_rows()) == (version, 1)


def test_columns_are_created_where_an_earlier_try_declared_the_table_alone(lake: LanceCatalog) -> None:
    assert lake.declare_table("orders").version is None

    assert lake.declare_table("orders", schema={"id": "bigint"}).version == 1


def test_the_first_write_of_a_declared_table_can_be_staged(lake: LanceCatalog) -> None:
    orders = lake.declare_table("orders", schema={"id": "bigint"})

    staged = orders.append(pa.table({"id": [1]}), stage=True)

    assert orders.count_rows() == 0
    orders.publish(staged)
    assert orders.count_rows() == 1


def test_several_declarations_at_once_create_one_version(lake: LanceCatalog) -> None:
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: lake.declare_table("orders", schema=COLUMNS).version, range(8)))

    assert made == [1] * 8


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"id": "string"}, "its column 'id' is int64, not string as schema says"),
        ({"id": "bigint", "note": "string"}, "its column 'note' is missing, not string as schema says"),
        ({}, "schema: expected at least one column"),
        ({"id": "text"}, r"schema\['id'\]: expected a type such as int64"),
        ({"id": 7}, "schema: expected types as text by column, got 'id': 7"),
        ("id bigint", r"schema: expected a pyarrow\.Schema or a mapping"),
    ],
)
def test_other_columns_are_refused(lake: LanceCatalog, schema: Any, message: str) -> None:
    lake.declare_table("orders", schema={"id": "bigint"})

    with pytest.raises(InvalidInputError, match=message):
        lake.declare_table("orders", schema=schema)


@pytest.mark.parametrize("schema", [{}, {"id": "text"}])
def test_a_schema_that_is_refused_declares_nothing(lake: LanceCatalog, schema: Any) -> None:
    with pytest.raises(InvalidInputError, match="schema"):
        lake.declare_table("orders", schema=schema)

    assert lake.list_tables() == []


def test_an_unknown_version_authority_is_refused(lake: LanceCatalog) -> None:
    with pytest.raises(InvalidInputError, match="version_authority: expected one of storage, catalog"):
        lake.declare_table("orders", version_authority="impl")  # type: ignore[arg-type]


LAYOUT = {"stable_row_ids": True, "vector_columns": {"v": 2}, "blob_columns": ["photo"]}


@pytest.fixture
def registered(lake: LanceCatalog) -> LanceCatalog:
    """A catalog with a table that was registered, so that its entry lacks the layout of its data."""
    lake.create_namespace("shop")
    schema = {"id": "bigint", "v": "array<float>", "photo": "binary"}
    orders = lake.declare_table("shop.orders", schema=schema, layout=LAYOUT)
    location = orders.location
    lake.deregister_table("shop.orders")
    lake.register_table("shop.orders", location)
    return lake


def test_a_table_that_was_registered_is_declared_again_with_the_layout_of_its_data(
    registered: LanceCatalog,
) -> None:
    assert "lancens.layout" not in registered.table("shop.orders").properties

    for schema in (None, {"id": "bigint", "v": "array<float>", "photo": "binary"}):
        again = registered.declare_table("shop.orders", schema=schema, layout=LAYOUT)
        assert again.declaration is not None
        assert again.declaration.outcome == "unchanged"


@pytest.mark.parametrize(
    "layout",
    [{"data_storage_version": "2.1"}, {"vector_columns": {"v": 3}}, {"blob_columns": ["id"]}],
    ids=str,
)
def test_a_table_that_was_registered_is_refused_with_another_layout_than_its_datas(
    registered: LanceCatalog, layout: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInputError, match="already exists with layout="):
        registered.declare_table("shop.orders", layout=layout)


def test_stable_row_ids_cannot_be_declared_for_data_without_them(lake: LanceCatalog) -> None:
    lake.create_namespace("shop")
    orders = lake.declare_table("shop.orders", schema={"id": "bigint"})

    with pytest.raises(InvalidInputError, match="already exists with layout="):
        lake.declare_table("shop.orders", layout={"stable_row_ids": True})

    assert orders.version == 1
