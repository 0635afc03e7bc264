"""Catalogs of Hive 3, on the servers that support them."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lance_namespace import LanceNamespace
from lance_namespace.errors import ErrorCode

from tests.conformance.codes import refused_with
from tests.conformance.races import just_before
from tests.support.backends import BACKENDS, Backend, params

WITH_CATALOGS = [name for name, (_, kind, _) in BACKENDS.items() if kind == "Hive3Namespace"]

pytestmark = pytest.mark.parametrize("backend", params(WITH_CATALOGS), indirect=True)


@pytest.fixture
def catalog(namespace: LanceNamespace) -> Iterator[list[str]]:
    created = [f"cat_{uuid.uuid4().hex[:8]}"]
    namespace.create_namespace({"id": created})
    yield created
    namespace.drop_namespace({"id": created, "mode": "skip", "behavior": "cascade"})


def test_a_catalog_is_described_with_its_description_and_location(
    namespace: LanceNamespace, tmp_path: Path
) -> None:
    target, location = [f"cat_{uuid.uuid4().hex[:8]}"], str(tmp_path / "lake house")
    given = {"database.description": "all clicks", "database.location-uri": location}
    namespace.create_namespace({"id": target, "properties": given})
    assert namespace.describe_namespace({"id": target}).properties == given
    assert target[0] in namespace.list_namespaces({"id": []}).namespaces
    namespace.drop_namespace({"id": target})


def test_a_catalog_and_its_databases_lie_below_root(
    namespace: LanceNamespace, catalog: list[str], backend: Backend
) -> None:
    database = [*catalog, "db"]
    namespace.create_namespace({"id": database})
    root, location = backend.properties["root"], "database.location-uri"
    assert namespace.describe_namespace({"id": catalog}).properties[location] == f"{root}/{catalog[0]}"
    assert namespace.describe_namespace({"id": database}).properties[location] == f"{root}/{catalog[0]}/db.db"


def test_properties_that_a_catalog_does_not_store_are_refused(namespace: LanceNamespace) -> None:
    with refused_with(ErrorCode.INVALID_INPUT, "team"):
        namespace.create_namespace({"id": ["cat_x"], "properties": {"team": "search"}})


def test_the_modes_of_a_create_hold_for_catalogs(namespace: LanceNamespace, catalog: list[str]) -> None:
    with refused_with(ErrorCode.NAMESPACE_ALREADY_EXISTS, catalog[0]):
        namespace.create_namespace({"id": catalog})
    namespace.create_namespace({"id": catalog, "mode": "exist_ok"})
    new = {"database.description": "new"}
    namespace.create_namespace({"id": catalog, "mode": "overwrite", "properties": new})
    assert new.items() <= namespace.describe_namespace({"id": catalog}).properties.items()


def test_the_catalog_hive_always_exists(namespace: LanceNamespace) -> None:
    namespace.namespace_exists({"id": ["hive"]})
    namespace.create_namespace({"id": ["hive"], "mode": "exist_ok"})
    with refused_with(ErrorCode.NAMESPACE_ALREADY_EXISTS):
        namespace.create_namespace({"id": ["hive"]})
    for refused in (
        lambda: namespace.create_namespace({"id": ["hive"], "mode": "overwrite"}),
        lambda: namespace.drop_namespace({"id": ["hive"], "behavior": "cascade"}),
        lambda: namespace.drop_namespace({"id": ["hive", "default"], "behavior": "cascade"}),
    ):
        with refused_with(ErrorCode.INVALID_INPUT):
            refused()


def test_a_database_in_a_missing_catalog_is_refused(namespace: LanceNamespace) -> None:
    missing = f"cat_{uuid.uuid4().hex[:8]}"
    with refused_with(ErrorCode.NAMESPACE_NOT_FOUND, missing):
        namespace.create_namespace({"id": [missing, "db"]})
    with refused_with(ErrorCode.NAMESPACE_NOT_FOUND, missing):
        namespace.list_namespaces({"id": [missing]})


def test_the_empty_default_database_does_not_prevent_dropping_a_catalog(
    namespace: LanceNamespace, catalog: list[str]
) -> None:
    assert namespace.list_namespaces({"id": catalog}).namespaces == ["default"]
    namespace.drop_namespace({"id": catalog})
    assert catalog[0] not in namespace.list_namespaces({"id": []}).namespaces


@pytest.mark.parametrize("inside", [["db"], ["default", "t"]], ids=["a database", "a table in default"])
def test_restrict_refuses_a_non_empty_catalog(
    namespace: LanceNamespace, catalog: list[str], inside: list[str]
) -> None:
    before = namespace.describe_namespace({"id": catalog}).properties
    if len(inside) == 1:
        namespace.create_namespace({"id": [*catalog, *inside]})
    else:
        namespace.declare_table({"id": [*catalog, *inside]})
    with refused_with(ErrorCode.NAMESPACE_NOT_EMPTY):
        namespace.drop_namespace({"id": catalog})
    assert namespace.describe_namespace({"id": catalog}).properties == before
    assert "default" in namespace.list_namespaces({"id": catalog}).namespaces


def test_equal_names_in_two_catalogs_are_two_tables(namespace: LanceNamespace, catalog: list[str]) -> None:
    database = f"db_{uuid.uuid4().hex[:8]}"
    for home in (catalog, ["hive"]):
        namespace.create_namespace({"id": [*home, database]})
        namespace.declare_table({"id": [*home, database, "t"], "properties": {"home": home[0]}})
    for home in (catalog, ["hive"]):
        found = namespace.describe_table({"id": [*home, database, "t"]})
        assert found.properties["home"] == home[0]
    namespace.drop_namespace({"id": ["hive", database], "behavior": "cascade"})


def test_dropping_a_catalog_deletes_no_file(
    namespace: LanceNamespace, catalog: list[str], backend: Backend
) -> None:
    namespace.create_namespace({"id": [*catalog, "db"]})
    declared = namespace.declare_table({"id": [*catalog, "db", "t"]})
    root = Path(backend.properties["root"], catalog[0])
    kept = [
        Path(declared.location, "data.bin"),
        root / "db.db" / "a.txt",
        root / "default" / "b.txt",
    ]
    default = namespace.describe_namespace({"id": [*catalog, "default"]}).properties
    kept += [Path(default["database.location-uri"]) / "mine.txt", root / "c.txt"]
    for file in kept:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("mine")
    namespace.drop_namespace({"id": catalog, "behavior": "cascade"})
    assert all(file.read_text() == "mine" for file in kept)


def test_a_database_created_after_the_plan_stops_the_drop_of_its_catalog(
    namespace: Any, catalog: list[str]
) -> None:
    namespace.create_namespace({"id": [*catalog, "planned"]})
    plan = namespace.plan_drop_namespace({"id": catalog})
    namespace.create_namespace({"id": [*catalog, "late"]})
    with refused_with(ErrorCode.NAMESPACE_NOT_EMPTY, f"{catalog[0]}$late (a new namespace)"):
        namespace.drop_planned_namespace(plan)
    namespace.namespace_exists({"id": [*catalog, "planned"]})
    namespace.drop_planned_namespace(namespace.plan_drop_namespace({"id": catalog}))


def test_a_database_created_during_the_drop_keeps_its_catalog(namespace: Any, catalog: list[str]) -> None:
    namespace.create_namespace({"id": [*catalog, "planned"]})
    plan = namespace.plan_drop_namespace({"id": catalog})
    with (
        just_before(
            "drop_namespace", namespace, lambda: namespace.create_namespace({"id": [*catalog, "late"]})
        ),
        refused_with(ErrorCode.NAMESPACE_NOT_EMPTY, "were dropped: late; run it again"),
    ):
        namespace.drop_planned_namespace(plan)
    assert "late" in namespace.list_namespaces({"id": catalog}).namespaces
