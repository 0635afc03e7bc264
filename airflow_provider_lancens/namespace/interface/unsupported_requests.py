"""Requests of the specification that a metastore can't answer, and what to do instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn

from lance_namespace.errors import UnsupportedOperationError

_DATASET = "dataset = lance.dataset(namespace_client=namespace, table_id=[...])"
_SEVERAL_ENTRIES = "a metastore cannot change several tables at once"
_NO_TRANSACTIONS = "a metastore has no transactions"
_NO_VIEWS = (
    "a metastore cannot compute one; write the rows into a table with a job, such as LanceOverwriteOperator"
)


def _on_dataset(call: str) -> str:
    return f"{_DATASET}, then {call}"


ALTERNATIVES: Mapping[str, str] = {
    "alter_table_backfill_columns": _on_dataset(
        "dataset.add_columns(...) with a function, or a job on Spark"
    ),
    "alter_transaction": f"{_NO_TRANSACTIONS}; a commit is one call of create_table_version",
    "batch_commit_tables": f"{_SEVERAL_ENTRIES}; call the operations one by one",
    "batch_create_table_versions": f"{_SEVERAL_ENTRIES}; call create_table_version for each table",
    "batch_delete_table_versions": _on_dataset(
        "dataset.cleanup_old_versions(), or LanceCleanUpVersionsOperator"
    ),
    "create_empty_table": "declare_table, which replaces it, or create_table without rows",
    "create_materialized_view": _NO_VIEWS,
    "describe_transaction": f"{_NO_TRANSACTIONS}; for the transaction of a version: {_DATASET}, then "
    "dataset.read_transaction(version)",
    "refresh_materialized_view": _NO_VIEWS,
}
"""Alternative by operation; the conformance page lists them."""


def unsupported(operation: str, instead: str) -> Callable[..., NoReturn]:
    """Return a method that refuses an operation, and names the alternative."""

    def refuse(_self: object, *_request: object, **_named: object) -> NoReturn:
        raise UnsupportedOperationError(
            f"{operation} is not supported by a metastore's namespace; instead: {instead}"
        )

    refuse.__name__ = operation
    refuse.__doc__ = (
        f"Not supported; instead: {instead}.\n\nRaises:\n    UnsupportedOperationError: (0) always."
    )
    return refuse
