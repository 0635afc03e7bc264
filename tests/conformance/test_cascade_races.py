"""A cascade executes exactly its plan, whatever other clients do meanwhile."""

import logging
import time
from collections.abc import Callable
from typing import Any

import pytest
from lance_namespace import LanceNamespace
from lance_namespace.errors import ErrorCode

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.metastore_protocol import ParameterChange
from airflow_provider_lancens.namespace.operations import cascade
from tests.conformance.codes import refused_with
from tests.conformance.foreign import make_foreign_table
from tests.conformance.races import just_before
from tests.support.backends import Backend

Event = Callable[[Any, list[str]], object]


@pytest.fixture
def other(backend: Backend) -> Any:
    """Another client of the same server."""
    with backend.connect() as connected:  # type: ignore[attr-defined]
        yield connected


def declared(namespace: LanceNamespace, db: list[str], *names: str) -> None:
    for name in names:
        namespace.declare_table({"id": [*db, name]})


def create_another(other: Any, db: list[str]) -> None:
    declared(other, db, "late")


def replace_elsewhere(other: Any, db: list[str]) -> None:
    location = other.deregister_table({"id": [*db, "b"]}).location
    other.declare_table({"id": [*db, "b"], "location": f"{location}-elsewhere"})


def drop_table_type(other: Any, db: list[str]) -> None:
    other._metastore.update_table(
        TableId.of([*db, "b"]), lambda _: ParameterChange({"note": "taken over"}, remove=["table_type"])
    )


@pytest.mark.parametrize(
    ("event", "named"),
    [
        (create_another, "late (new)"),
        (replace_elsewhere, "b ("),
        (drop_table_type, "b (changed to a table that isn't Lance)"),
    ],
)
def test_changes_after_the_plan_stop_the_drop_before_anything_is_dropped(
    namespace: Any, other: Any, db: list[str], event: Event, named: str
) -> None:
    declared(namespace, db, "a", "b")
    plan = namespace.plan_drop_namespace({"id": db})
    event(other, db)
    held = other._metastore.list_tables(plan.target)
    with refused_with(ErrorCode.NAMESPACE_NOT_EMPTY, named, "nothing was dropped"):
        namespace.drop_planned_namespace(plan, ["*"])
    assert sorted(other._metastore.list_tables(plan.target)) == sorted(held)
    namespace.drop_planned_namespace(namespace.plan_drop_namespace({"id": db}), ["*"])
    with refused_with(ErrorCode.NAMESPACE_NOT_FOUND):
        namespace.describe_namespace({"id": db})


def test_a_recreated_table_is_another_table_even_at_the_same_location(
    namespace: Any, other: Any, db: list[str]
) -> None:
    declared(namespace, db, "a")
    [planned] = namespace.plan_drop_namespace({"id": db}).tables
    other.deregister_table({"id": [*db, "a"]})
    while int(time.time()) <= planned.created:  # servers count in seconds
        time.sleep(0.05)
    other.declare_table({"id": [*db, "a"], "location": planned.location})
    [again] = namespace.plan_drop_namespace({"id": db}).tables
    assert (again.location, planned.difference(again)) == (planned.location, "recreated")


def test_a_commit_after_the_plan_does_not_stop_the_drop(namespace: Any, other: Any, db: list[str]) -> None:
    declared(namespace, db, "a")
    plan = namespace.plan_drop_namespace({"id": db})
    other._metastore.update_table(TableId.of([*db, "a"]), lambda _: ParameterChange({"version": "7"}))
    namespace.drop_planned_namespace(plan)
    with refused_with(ErrorCode.NAMESPACE_NOT_FOUND):
        namespace.describe_namespace({"id": db})


def test_a_table_dropped_by_another_client_after_the_plan_is_reported_as_dropped(
    namespace: Any, other: Any, db: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    declared(namespace, db, "a", "b")
    plan = namespace.plan_drop_namespace({"id": db})
    other.deregister_table({"id": [*db, "b"]})
    with caplog.at_level(logging.INFO):
        namespace.drop_planned_namespace(plan)
    assert f"another client already dropped planned tables: {'$'.join([*db, 'b'])}" in caplog.text
    with refused_with(ErrorCode.NAMESPACE_NOT_FOUND):
        namespace.describe_namespace({"id": db})


def test_a_namespace_dropped_by_another_client_after_the_plan_is_not_found(
    backend: Backend, namespace: Any, other: Any
) -> None:
    db = backend.database()
    namespace.create_namespace({"id": db})
    plan = namespace.plan_drop_namespace({"id": db})
    other.drop_namespace({"id": db})
    with refused_with(ErrorCode.NAMESPACE_NOT_FOUND):
        namespace.drop_planned_namespace(plan)


def test_a_table_created_during_the_drop_keeps_its_namespace(
    namespace: Any, other: Any, db: list[str]
) -> None:
    declared(namespace, db, "a", "b")
    plan = namespace.plan_drop_namespace({"id": db})
    with (
        just_before("drop_namespace", namespace, lambda: create_another(other, db)),
        refused_with(
            ErrorCode.NAMESPACE_NOT_EMPTY, "it was not dropped, since another client added to it", "late"
        ),
    ):
        namespace.drop_planned_namespace(plan)
    assert other.list_tables({"id": db}).tables == ["late"]


def test_a_table_replaced_during_the_drop_is_kept(
    namespace: Any, other: Any, db: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cascade, "_AT_ONCE", 1)
    declared(namespace, db, "a", "b")
    plan = namespace.plan_drop_namespace({"id": db})
    with (
        just_before("drop_tables", namespace, lambda: replace_elsewhere(other, db)),
        refused_with(ErrorCode.NAMESPACE_NOT_EMPTY, "the drop was interrupted", "$".join([*db, "b"])),
    ):
        namespace.drop_planned_namespace(plan)
    assert other.list_tables({"id": db}).tables == ["b"]


def test_a_foreign_table_created_after_the_plan_is_kept_even_if_any_is_allowed(
    backend: Backend, namespace: Any, db: list[str]
) -> None:
    plan = namespace.plan_drop_namespace({"id": db})
    make_foreign_table(backend, db, "theirs")
    with refused_with(ErrorCode.NAMESPACE_NOT_EMPTY, "theirs (new)"):
        namespace.drop_planned_namespace(plan, ["*"])
    assert namespace._metastore.list_tables(plan.target) == ["theirs"]


@pytest.mark.parametrize("text", ["theirs", "a$b$c$d", "$"])
def test_an_invalid_table_identifier_allows_no_foreign_table(
    namespace: Any, db: list[str], text: str
) -> None:
    plan = namespace.plan_drop_namespace({"id": db})
    with refused_with(ErrorCode.INVALID_INPUT, "foreign tables"):
        namespace.drop_planned_namespace(plan, [text])
    namespace.namespace_exists({"id": db})
