"""CreateNamespace, ListNamespaces, DescribeNamespace, NamespaceExists, DropNamespace."""

from pathlib import Path

import pytest
from lance_namespace import LanceNamespace
from lance_namespace.errors import ErrorCode
from lance_namespace_urllib3_client import models

from tests.conformance.codes import refused_with
from tests.support.backends import Backend


def test_a_created_namespace_is_described_with_its_properties(
    backend: Backend, namespace: LanceNamespace
) -> None:
    target = backend.database()
    given = {"team": "search", "database.description": "clicks", "database.owner": "ana"}
    namespace.create_namespace(models.CreateNamespaceRequest(id=target, properties=given))
    found = namespace.describe_namespace({"id": target}).properties
    assert given.items() <= found.items()
    namespace.drop_namespace({"id": target})


def test_a_namespace_is_stored_below_root_by_default(
    backend: Backend, namespace: LanceNamespace, tmp_path: Path
) -> None:
    default, elsewhere_id = backend.database(), backend.database()
    namespace.create_namespace({"id": default})
    elsewhere = str(tmp_path / "elsewhere")
    namespace.create_namespace({"id": elsewhere_id, "properties": {"database.location-uri": elsewhere}})
    location = "database.location-uri"
    catalogs = [level for level in backend.parent if level != "hive"]
    expected = "/".join([backend.properties["root"], *catalogs, f"{default[-1]}.db"])
    assert namespace.describe_namespace({"id": default}).properties[location] == expected
    assert namespace.describe_namespace({"id": elsewhere_id}).properties[location] == elsewhere
    for target in (default, elsewhere_id):
        namespace.drop_namespace({"id": target})


def test_creating_an_existing_namespace_is_refused(namespace: LanceNamespace, db: list[str]) -> None:
    with refused_with(ErrorCode.NAMESPACE_ALREADY_EXISTS, db[-1]):
        namespace.create_namespace({"id": db})


@pytest.mark.parametrize("mode", ["EXIST_OK", "ExistOk", "exist_ok", "existok"])
def test_exist_ok_leaves_the_existing_namespace_unchanged(
    backend: Backend, namespace: LanceNamespace, mode: str
) -> None:
    target = backend.database()
    namespace.create_namespace({"id": target, "properties": {"kept": "1"}})
    namespace.create_namespace({"id": target, "mode": mode, "properties": {"new": "1"}})
    found = namespace.describe_namespace({"id": target}).properties
    assert found["kept"] == "1"
    assert "new" not in found
    namespace.drop_namespace({"id": target})


def test_overwriting_an_empty_namespace_replaces_its_properties(
    backend: Backend, namespace: LanceNamespace
) -> None:
    target = backend.database()
    namespace.create_namespace({"id": target, "properties": {"old": "1", "database.description": "old"}})
    namespace.create_namespace({"id": target, "mode": "Overwrite", "properties": {"new": "1"}})
    found = namespace.describe_namespace({"id": target}).properties
    assert found["new"] == "1"
    assert "old" not in found
    assert "database.description" not in found
    namespace.drop_namespace({"id": target})


def test_overwriting_a_non_empty_namespace_is_refused(namespace: LanceNamespace, db: list[str]) -> None:
    namespace.declare_table({"id": [*db, "kept"]})
    with refused_with(ErrorCode.NAMESPACE_NOT_EMPTY):
        namespace.create_namespace({"id": db, "mode": "overwrite"})
    assert namespace.list_tables({"id": db}).tables == ["kept"]


@pytest.mark.parametrize("field", ["mode", "properties"])
def test_creating_a_namespace_with_an_invalid_field_is_refused(
    backend: Backend, namespace: LanceNamespace, field: str
) -> None:
    bad = {"mode": {"mode": "sometimes"}, "properties": {"properties": {"count": 1}}}[field]
    with refused_with(ErrorCode.INVALID_INPUT, field):
        namespace.create_namespace({"id": backend.database(), **bad})


@pytest.mark.parametrize("operation", ["create_namespace", "drop_namespace"])
def test_the_root_can_neither_be_created_nor_dropped(namespace: LanceNamespace, operation: str) -> None:
    with refused_with(ErrorCode.INVALID_INPUT, "root"):
        getattr(namespace, operation)({"id": []})


def test_namespaces_are_listed_sorted_and_in_pages(backend: Backend, namespace: LanceNamespace) -> None:
    made = sorted((backend.database() for _ in range(5)), key=lambda target: target[-1])
    for target in reversed(made):
        namespace.create_namespace({"id": target})
    seen: list[str] = []
    token = None
    while True:
        request = {"id": list(backend.parent), "limit": 2, "page_token": token}
        page = namespace.list_namespaces(request)
        assert len(page.namespaces) <= 2
        seen += page.namespaces
        token = page.page_token
        if not token:
            break
    assert seen == sorted(set(seen))
    assert {target[-1] for target in made} <= set(seen)
    for target in made:
        namespace.drop_namespace({"id": target})


def test_a_database_has_no_child_namespaces(namespace: LanceNamespace, db: list[str]) -> None:
    assert namespace.list_namespaces({"id": db}).namespaces == []


@pytest.mark.parametrize(
    "operation",
    ["describe_namespace", "list_namespaces", "list_tables", "namespace_exists", "drop_namespace"],
)
def test_a_missing_namespace_is_not_found(
    backend: Backend, namespace: LanceNamespace, operation: str
) -> None:
    with refused_with(ErrorCode.NAMESPACE_NOT_FOUND):
        getattr(namespace, operation)({"id": backend.database()})


def test_an_existing_namespace_and_the_root_exist(namespace: LanceNamespace, db: list[str]) -> None:
    namespace.namespace_exists({"id": db})
    namespace.namespace_exists({"id": []})


def test_dropping_a_missing_namespace_may_be_skipped(backend: Backend, namespace: LanceNamespace) -> None:
    namespace.drop_namespace({"id": backend.database(), "mode": "SKIP"})


def test_restrict_refuses_a_non_empty_namespace(namespace: LanceNamespace, db: list[str]) -> None:
    namespace.declare_table({"id": [*db, "kept"]})
    with refused_with(ErrorCode.NAMESPACE_NOT_EMPTY):
        namespace.drop_namespace({"id": db, "behavior": "Restrict"})
    assert namespace.list_tables({"id": db}).tables == ["kept"]


def test_namespace_names_are_case_insensitive(namespace: LanceNamespace, db: list[str]) -> None:
    namespace.namespace_exists({"id": [part.upper() for part in db]})


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(namespace: LanceNamespace, limit: int) -> None:
    with refused_with(ErrorCode.INVALID_INPUT, "limit"):
        namespace.list_namespaces({"id": [], "limit": limit})


def test_a_foreign_page_token_is_refused(namespace: LanceNamespace) -> None:
    with refused_with(ErrorCode.INVALID_INPUT, "page_token"):
        namespace.list_namespaces({"id": [], "page_token": "17"})
