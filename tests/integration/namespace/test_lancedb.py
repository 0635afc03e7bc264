"""LanceDB with a namespace given by its dotted path and properties."""

from typing import Any

import lancedb
import pyarrow as pa
import pytest
from lance_namespace import LanceNamespace

from tests.support.backends import PACKAGE, Backend

pytestmark = pytest.mark.thorough


@pytest.fixture
def lake(backend: Backend) -> Any:
    return lancedb.connect_namespace(f"{PACKAGE}.{backend.kind}", dict(backend.properties))


def test_a_table_is_created_opened_listed_and_dropped(lake: Any, db: list[str]) -> None:
    created = lake.create_table("t", pa.table({"x": [1, 2]}), namespace_path=db)
    created.add(pa.table({"x": [3]}))
    assert lake.open_table("t", namespace_path=db).count_rows() == 3
    assert lake.list_tables(namespace_path=db).tables == ["t"]
    lake.drop_table("t", namespace_path=db)
    assert lake.list_tables(namespace_path=db).tables == []


def test_vectors_are_searched(lake: Any, db: list[str]) -> None:
    data = [{"id": number, "vector": [float(number), 0.0]} for number in range(20)]
    table = lake.create_table("vectors", data, namespace_path=db)
    found = table.search([7.1, 0.0]).limit(1).to_list()
    assert found[0]["id"] == 7


def test_many_tables_are_listed_in_pages(lake: Any, namespace: LanceNamespace, db: list[str]) -> None:
    names = [f"t{number:02}" for number in range(23)]
    for name in names:
        namespace.declare_table({"id": [*db, name]})
    seen, token = [], None
    while True:
        page = lake.list_tables(namespace_path=db, page_token=token, limit=10)
        seen += page.tables
        token = page.page_token
        if not token:
            break
    assert seen == names


def test_namespaces_are_created_listed_described_and_dropped(lake: Any, backend: Backend) -> None:
    target = backend.database()
    lake.create_namespace(target, properties={"team": "search"})
    assert target[-1] in lake.list_namespaces(namespace_path=target[:-1], limit=1000).namespaces
    assert lake.describe_namespace(target).properties["team"] == "search"
    lake.drop_namespace(target)
    assert target[-1] not in lake.list_namespaces(namespace_path=target[:-1], limit=1000).namespaces


def test_an_existing_table_is_opened_or_overwritten_by_mode(lake: Any, db: list[str]) -> None:
    lake.create_table("t", pa.table({"x": [1]}), namespace_path=db)
    with pytest.raises(Exception, match="exist"):
        lake.create_table("t", pa.table({"x": [2]}), namespace_path=db)
    lake.create_table("t", pa.table({"x": [2, 3]}), mode="overwrite", namespace_path=db)
    assert lake.open_table("t", namespace_path=db).to_arrow()["x"].to_pylist() == [2, 3]
