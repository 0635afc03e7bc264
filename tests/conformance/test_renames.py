"""Refusals of RenameTable, and TableExists: every documented code."""

import pytest
from lance_namespace import LanceNamespace
from lance_namespace.errors import ErrorCode

from tests.conformance.codes import refused_with
from tests.support.backends import RENAME, Backend


def expected(backend: Backend, code: ErrorCode) -> ErrorCode:
    return ErrorCode.UNSUPPORTED if RENAME in backend.cannot else code


def test_a_missing_table_is_not_renamed(namespace: LanceNamespace, db: list[str]) -> None:
    with refused_with(ErrorCode.TABLE_NOT_FOUND, "missing"):
        namespace.rename_table({"id": [*db, "missing"], "new_table_name": "t"})


def test_a_table_is_not_renamed_into_a_missing_namespace(
    backend: Backend, namespace: LanceNamespace, db: list[str]
) -> None:
    namespace.declare_table({"id": [*db, "t"]})
    with refused_with(expected(backend, ErrorCode.NAMESPACE_NOT_FOUND)):
        namespace.rename_table(
            {"id": [*db, "t"], "new_table_name": "u", "new_namespace_id": backend.database()}
        )
    assert namespace.list_tables({"id": db}).tables == ["t"]


@pytest.mark.parametrize("name", ["a/b", "", "a$b"])
def test_renaming_to_an_invalid_name_is_refused(namespace: LanceNamespace, db: list[str], name: str) -> None:
    namespace.declare_table({"id": [*db, "t"]})
    with refused_with(ErrorCode.INVALID_INPUT):
        namespace.rename_table({"id": [*db, "t"], "new_table_name": name})


def test_an_existing_table_exists(namespace: LanceNamespace, db: list[str]) -> None:
    namespace.declare_table({"id": [*db, "t"]})
    namespace.table_exists({"id": [*db, "T"]})


def test_registering_in_a_missing_namespace_is_refused(backend: Backend, namespace: LanceNamespace) -> None:
    with refused_with(ErrorCode.NAMESPACE_NOT_FOUND):
        namespace.register_table({"id": [*backend.database(), "t"], "location": "/somewhere"})
