"""DropNamespace with CASCADE: plans, foreign tables, and files that are kept."""

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import LanceNamespace
from lance_namespace.errors import ErrorCode

from tests.conformance.codes import refused_with
from tests.conformance.foreign import make_foreign_table
from tests.conformance.races import just_before
from tests.support.backends import Backend, params


def test_a_cascade_drops_tables_then_the_namespace_and_keeps_the_files(
    namespace: LanceNamespace, db: list[str]
) -> None:
    lance.write_dataset(
        pa.table({"x": [1]}), namespace_client=namespace, table_id=[*db, "full"], mode="create"
    )
    namespace.declare_table({"id": [*db, "empty"]})
    location = namespace.describe_table({"id": [*db, "full"]}).location
    namespace.drop_namespace({"id": db, "behavior": "Cascade"})
    with refused_with(ErrorCode.NAMESPACE_NOT_FOUND):
        namespace.describe_namespace({"id": db})
    assert lance.dataset(location).count_rows() == 1


def test_a_plan_lists_what_would_be_dropped_and_changes_nothing(
    backend: Backend, namespace: LanceNamespace, db: list[str]
) -> None:
    namespace.declare_table({"id": [*db, "ours"]})
    make_foreign_table(backend, db, "theirs")
    plan = namespace.plan_drop_namespace({"id": db})  # type: ignore[attr-defined]
    assert [str(table) for table in plan.lance_tables] == ["$".join([*db, "ours"])]
    assert [str(table) for table in plan.foreign_tables] == ["$".join([*db, "theirs"])]
    assert [str(one) for one in plan.namespaces] == ["$".join(db)]
    assert namespace.list_tables({"id": db}).tables == ["ours"]


def test_a_foreign_table_stops_a_cascade_before_anything_is_dropped(
    backend: Backend, namespace: LanceNamespace, db: list[str]
) -> None:
    namespace.declare_table({"id": [*db, "ours"]})
    make_foreign_table(backend, db, "theirs")
    with refused_with(ErrorCode.NAMESPACE_NOT_EMPTY, "theirs"):
        namespace.drop_namespace({"id": db, "behavior": "cascade"})
    assert namespace.list_tables({"id": db}).tables == ["ours"]


def test_a_lance_table_dropped_during_the_plan_is_not_reported_as_foreign(
    backend: Backend, namespace: LanceNamespace, db: list[str]
) -> None:
    for name in ("goes", "stays"):
        namespace.declare_table({"id": [*db, name]})
    other = backend.connect()
    read = "scan_tables" if backend.kind == "GlueNamespace" else "get_tables"  # Glue lists no names first
    with just_before(read, namespace, lambda: other.deregister_table({"id": [*db, "goes"]})):
        plan = namespace.plan_drop_namespace({"id": db})  # type: ignore[attr-defined]
    assert plan.foreign_tables == ()
    assert [str(table) for table in plan.lance_tables] == ["$".join([*db, "stays"])]


@pytest.mark.parametrize("mode", ["fail", "skip"])
def test_a_namespace_dropped_during_the_plan_is_not_found(
    backend: Backend, namespace: LanceNamespace, mode: str
) -> None:
    db, other = backend.database(), backend.connect()
    namespace.create_namespace({"id": db})
    request = {"id": db, "behavior": "cascade", "mode": mode}
    with just_before("scan_tables", namespace, lambda: other.drop_namespace({"id": db})):
        if mode == "skip":
            namespace.drop_namespace(request)
        else:
            with refused_with(ErrorCode.NAMESPACE_NOT_FOUND):
                namespace.drop_namespace(request)


@pytest.mark.parametrize("allowed", ["by name", "*"])
def test_an_allowed_foreign_table_is_dropped(
    backend: Backend, namespace: LanceNamespace, db: list[str], allowed: str
) -> None:
    file = Path(make_foreign_table(backend, db, "theirs")) / "part-0.txt"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("theirs")
    names = "$".join([*db, "theirs"]) if allowed == "by name" else "*"
    namespace.drop_namespace({"id": db, "behavior": "cascade", "context": {"cascade.foreign-tables": names}})
    with refused_with(ErrorCode.NAMESPACE_NOT_FOUND):
        namespace.describe_namespace({"id": db})
    assert file.read_text() == "theirs"


def test_a_foreign_table_is_neither_listed_nor_described_nor_deregistered(
    backend: Backend, namespace: LanceNamespace, db: list[str]
) -> None:
    make_foreign_table(backend, db, "theirs")
    table = [*db, "theirs"]
    assert namespace.list_tables({"id": db}).tables == []
    for operation in ("describe_table", "table_exists", "deregister_table", "drop_table"):
        with refused_with(ErrorCode.INVALID_INPUT, "not a Lance table"):
            getattr(namespace, operation)({"id": table})
    with refused_with(ErrorCode.TABLE_ALREADY_EXISTS):
        namespace.declare_table({"id": table})


@pytest.mark.parametrize("spelling", ["LANCE", "Lance", "lAnCe"])
def test_table_type_is_recognized_in_any_case(
    backend: Backend, namespace: LanceNamespace, db: list[str], spelling: str
) -> None:
    make_foreign_table(backend, db, "twin", {"table_type": spelling})
    assert namespace.list_tables({"id": db}).tables == ["twin"]
    assert namespace.describe_table({"id": [*db, "twin"]}).properties["table_type"] == spelling
    namespace.deregister_table({"id": [*db, "twin"]})


@pytest.mark.parametrize("backend", params(["hive2-on-4.0.1", "glue-double"]), indirect=True)
def test_a_table_with_an_invalid_name_is_not_listed_and_keeps_its_namespace(
    backend: Backend, namespace: Any
) -> None:
    db = backend.database()
    namespace.create_namespace({"id": db})
    namespace.declare_table({"id": [*db, "ours"]})
    make_foreign_table(backend, db, "a$b", {"table_type": "lance"})
    assert namespace.list_tables({"id": db}).tables == ["ours"]
    with refused_with(ErrorCode.NAMESPACE_NOT_EMPTY):
        namespace.drop_namespace({"id": db, "behavior": "cascade"})
    assert namespace.list_tables({"id": db}).tables == []
    namespace.namespace_exists({"id": db})
