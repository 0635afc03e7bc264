"""DropNamespace with CASCADE: the plan first, foreign tables stop it, files survive."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import lance
import pyarrow as pa
import pytest
from lance_namespace import LanceNamespace
from lance_namespace.errors import ErrorCode

from tests.conformance.codes import refused_with
from tests.conformance.conftest import Backend
from tests.conformance.foreign import make_foreign_table


def test_a_cascade_drops_the_tables_and_then_the_namespace_and_keeps_their_files(
    namespace: LanceNamespace, db: list[str]
) -> None:
    lance.write_dataset(
        pa.table({"x": [1]}), namespace_client=namespace, table_id=[*db, "full"], mode="create"
    )
    namespace.declare_table({"id": [*db, "empty"]})
    place = namespace.describe_table({"id": [*db, "full"]}).location
    namespace.drop_namespace({"id": db, "behavior": "Cascade"})
    with refused_with(ErrorCode.NAMESPACE_NOT_FOUND):
        namespace.describe_namespace({"id": db})
    assert lance.dataset(place).count_rows() == 1


def test_a_plan_names_what_would_go_and_changes_nothing(
    backend: Backend, namespace: LanceNamespace, db: list[str]
) -> None:
    namespace.declare_table({"id": [*db, "ours"]})
    make_foreign_table(backend, db, "theirs")
    plan = namespace.plan_drop_namespace({"id": db})  # type: ignore[attr-defined]
    assert [str(table) for table in plan.lance_tables] == ["$".join([*db, "ours"])]
    assert [str(table) for table in plan.foreign_tables] == ["$".join([*db, "theirs"])]
    assert [str(one) for one in plan.namespaces] == ["$".join(db)]
    assert namespace.list_tables({"id": db}).tables == ["ours"]


def test_a_foreign_table_stops_a_cascade_before_anything_goes(
    backend: Backend, namespace: LanceNamespace, db: list[str]
) -> None:
    namespace.declare_table({"id": [*db, "ours"]})
    make_foreign_table(backend, db, "theirs")
    with refused_with(ErrorCode.NAMESPACE_NOT_EMPTY, "theirs"):
        namespace.drop_namespace({"id": db, "behavior": "cascade"})
    assert namespace.list_tables({"id": db}).tables == ["ours"]


def just_before(verb: str, namespace: Any, event: Callable[[], object]) -> Any:
    """Let something happen just before the namespace's metastore does this, the first time in the block."""
    metastore = type(namespace._metastore)
    real, left = getattr(metastore, verb), [event]

    def late(self: object, *arguments: object) -> object:
        while left:
            left.pop()()
        return real(self, *arguments)

    return patch.object(metastore, verb, late)


def test_a_lance_table_that_goes_during_the_plan_is_no_foreign_one(
    backend: Backend, namespace: LanceNamespace, db: list[str]
) -> None:
    for name in ("goes", "stays"):
        namespace.declare_table({"id": [*db, name]})
    other = backend.connect()
    with just_before("list_lance_tables", namespace, lambda: other.deregister_table({"id": [*db, "goes"]})):
        plan = namespace.plan_drop_namespace({"id": db})  # type: ignore[attr-defined]
    assert plan.foreign_tables == ()
    assert [str(table) for table in plan.lance_tables] == ["$".join([*db, "stays"])]


@pytest.mark.parametrize("mode", ["fail", "skip"])
def test_a_namespace_that_goes_during_the_plan_was_not_found(
    backend: Backend, namespace: LanceNamespace, mode: str
) -> None:
    db, other = backend.database(), backend.connect()
    namespace.create_namespace({"id": db})
    request = {"id": db, "behavior": "cascade", "mode": mode}
    with just_before("list_tables", namespace, lambda: other.drop_namespace({"id": db})):
        if mode == "skip":
            namespace.drop_namespace(request)
        else:
            with refused_with(ErrorCode.NAMESPACE_NOT_FOUND):
                namespace.drop_namespace(request)


@pytest.mark.parametrize("allowed", ["by name", "*"])
def test_a_foreign_table_goes_when_it_is_allowed(
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
def test_tables_of_other_writers_are_read_however_they_spell_it(
    backend: Backend, namespace: LanceNamespace, db: list[str], spelling: str
) -> None:
    make_foreign_table(backend, db, "twin", {"table_type": spelling})
    assert namespace.list_tables({"id": db}).tables == ["twin"]
    assert namespace.describe_table({"id": [*db, "twin"]}).properties["table_type"] == spelling
    namespace.deregister_table({"id": [*db, "twin"]})
