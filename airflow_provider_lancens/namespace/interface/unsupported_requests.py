"""Operations of `lance_namespace` that a metastore doesn't support, and their alternatives.

A metastore has catalog tables. Operations on the rows, the schema or the indices of a table are pylance's,
on a data set that is opened through the namespace; their commits go through the namespace too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn

from lance_namespace.errors import UnsupportedOperationError

from airflow_provider_lancens.namespace.interface.core import NamespaceCore

_DATASET = "dataset = lance.dataset(namespace_client=namespace, table_id=[...])"
_SEVERAL_ENTRIES = "a metastore cannot change several tables at once"
_NO_TRANSACTIONS = "a metastore has no transactions"
_NO_VIEWS = (
    "a metastore cannot compute one; write the rows into a table with a job, such as LanceSparkIngestOperator"
)


def _on_dataset(call: str) -> str:
    return f"{_DATASET}, then {call}"


ALTERNATIVES: Mapping[str, str] = {
    "alter_table_add_columns": _on_dataset("dataset.add_columns(...), or LanceAddColumnsOperator"),
    "alter_table_alter_columns": _on_dataset("dataset.alter_columns(...), or LanceAlterColumnsOperator"),
    "alter_table_backfill_columns": _on_dataset("dataset.add_columns(...) with a function or SQL"),
    "alter_table_drop_columns": _on_dataset("dataset.drop_columns([...]), or LanceDropColumnsOperator"),
    "alter_transaction": f"{_NO_TRANSACTIONS}; a commit is one call of create_table_version",
    "analyze_table_query_plan": _on_dataset("dataset.scanner(...).analyze_plan()"),
    "batch_commit_tables": f"{_SEVERAL_ENTRIES}; call the operations one by one",
    "batch_create_table_versions": f"{_SEVERAL_ENTRIES}; call create_table_version for each table",
    "batch_delete_table_versions": _on_dataset(
        "dataset.cleanup_old_versions(), or LanceCleanUpVersionsOperator"
    ),
    "count_table_rows": _on_dataset("dataset.count_rows(filter)"),
    "create_empty_table": "declare_table, which replaces it, or "
    "lance.write_dataset(schema.empty_table(), mode='create', namespace_client=namespace, table_id=[...])",
    "create_materialized_view": _NO_VIEWS,
    "create_table": "lance.write_dataset(rows, mode='create', namespace_client=namespace, table_id=[...])",
    "create_table_branch": _on_dataset("dataset.create_branch(name)"),
    "create_table_index": _on_dataset("dataset.create_index(...), or LanceCreateIndexOperator"),
    "create_table_scalar_index": _on_dataset("dataset.create_scalar_index(...), or LanceCreateIndexOperator"),
    "create_table_tag": _on_dataset("dataset.tags.create(tag, version), or LanceTagVersionOperator"),
    "delete_from_table": _on_dataset("dataset.delete(condition), or LanceDeleteRowsOperator"),
    "delete_table_branch": _on_dataset("dataset.branches.delete(name)"),
    "delete_table_tag": _on_dataset("dataset.tags.delete(tag), or LanceReleaseVersionOperator"),
    "describe_table_index_stats": _on_dataset("dataset.stats.index_stats(index)"),
    "describe_transaction": f"{_NO_TRANSACTIONS}; that of a version: {_DATASET}, then "
    "dataset.read_transaction(version)",
    "drop_table_index": _on_dataset("dataset.drop_index(index)"),
    "explain_table_query_plan": _on_dataset("dataset.scanner(...).explain_plan()"),
    "get_table_stats": _on_dataset("dataset.stats.dataset_stats()"),
    "get_table_tag_version": _on_dataset("dataset.tags.get_version(tag)"),
    "insert_into_table": "lance.write_dataset(rows, mode='append', namespace_client=namespace, "
    "table_id=[...])",
    "list_table_branches": _on_dataset("dataset.branches.list()"),
    "list_table_indices": _on_dataset("dataset.describe_indices()"),
    "list_table_tags": _on_dataset("dataset.tags.list()"),
    "merge_insert_into_table": _on_dataset("dataset.merge_insert(columns)"),
    "query_table": _on_dataset("dataset.to_table(filter=..., nearest=...)"),
    "refresh_materialized_view": _NO_VIEWS,
    "restore_table": _on_dataset("dataset.checkout_version(version).restore()"),
    "update_field_metadata": _on_dataset("dataset.update_field_metadata(...)"),
    "update_table": _on_dataset("dataset.update(values, where=condition)"),
    "update_table_schema_metadata": _on_dataset("dataset.update_schema_metadata(...)"),
    "update_table_tag": _on_dataset("dataset.tags.update(tag, version), or LanceTagVersionOperator"),
}
"""Alternative by operation; the conformance page lists them."""


class UnsupportedRequests(NamespaceCore):
    """Refuses each operation of `ALTERNATIVES` by an UnsupportedOperationError that names the alternative."""


def _refusing(operation: str, instead: str) -> Callable[..., NoReturn]:
    def refuse(_self: NamespaceCore, *_request: object, **_named: object) -> NoReturn:
        raise UnsupportedOperationError(
            f"{operation} is not supported by a metastore's namespace; instead: {instead}"
        )

    refuse.__name__ = operation
    refuse.__doc__ = (
        f"Not supported; instead: {instead}.\n\nRaises:\n    UnsupportedOperationError: (0) always."
    )
    return refuse


for _operation, _instead in ALTERNATIVES.items():
    setattr(UnsupportedRequests, _operation, _refusing(_operation, _instead))
