"""Requests that change the columns and the metadata of a table, or restore one of its versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lance_namespace.errors import InvalidInputError
from lance_namespace_urllib3_client import models

from airflow_provider_lancens.conditions import parse_expression
from airflow_provider_lancens.namespace.interface.core import AnyRequest, NamespaceCore
from airflow_provider_lancens.namespace.interface.open_dataset import (
    TableData,
    check_columns,
    last_transaction,
    opened_to_commit,
)
from airflow_provider_lancens.namespace.operations.catalog_columns import describe_columns
from airflow_provider_lancens.namespace.requests import as_model, refuse

if TYPE_CHECKING:
    import pyarrow as pa

_NOT_STORED = "only columns of an expression are supported, whose values are stored"
_ONE_COMMIT = "expected the same value for all columns, since they are changed in one commit"


class SchemaRequests(NamespaceCore):
    """Add, alter and drop columns, update the metadata of a table or of its columns, restore a version."""

    def alter_table_add_columns(self, request: AnyRequest) -> models.AlterTableAddColumnsResponse:
        """Add columns with the values of SQL expressions; no other column is rewritten.

        Raises:
            UnsupportedOperationError: (0) a column is virtual, or computed by a function.
            LanceNamespaceError: see `opened_to_commit`.
        """
        model = as_model(models.AlterTableAddColumnsRequest, request)
        for entry in model.new_columns:
            refuse(entry, {"computed": _NOT_STORED, "virtual_column": _NOT_STORED})
            if not entry.expression:
                raise InvalidInputError(f"new_columns: {entry.name}: expected an expression, got none")
        with opened_to_commit(self, model) as dataset:
            dataset.add_columns(
                {
                    entry.name: parse_expression(
                        str(entry.expression), dataset.schema, f"new_columns: {entry.name}"
                    )
                    for entry in model.new_columns
                }
            )
            return models.AlterTableAddColumnsResponse(version=dataset.version)

    def alter_table_alter_columns(self, request: AnyRequest) -> models.AlterTableAlterColumnsResponse:
        """Rename columns, or change their type or whether they may be null.

        Raises:
            UnsupportedOperationError: (0) a column is virtual.
            TableColumnNotFoundError: (12) a column doesn't exist.
            LanceNamespaceError: see `opened_to_commit`.
        """
        model = as_model(models.AlterTableAlterColumnsRequest, request)
        for entry in model.alterations:
            refuse(entry, {"virtual_column": _NOT_STORED})
        with opened_to_commit(self, model) as dataset:
            check_columns(dataset, [entry.path for entry in model.alterations], model.id)
            alterations: list[Any] = [_alteration(entry) for entry in model.alterations]
            dataset.alter_columns(*alterations)
            return models.AlterTableAlterColumnsResponse(version=dataset.version)

    def alter_table_drop_columns(self, request: AnyRequest) -> models.AlterTableDropColumnsResponse:
        """Drop columns; their bytes remain until a compaction and a clean-up.

        Raises:
            TableColumnNotFoundError: (12) a column doesn't exist.
            LanceNamespaceError: see `opened_to_commit`.
        """
        model = as_model(models.AlterTableDropColumnsRequest, request)
        with opened_to_commit(self, model) as dataset:
            check_columns(dataset, model.columns, model.id)
            dataset.drop_columns(model.columns)
            return models.AlterTableDropColumnsResponse(version=dataset.version)

    def update_table_schema_metadata(self, request: AnyRequest) -> models.UpdateTableSchemaMetadataResponse:
        """Set entries of a table's schema metadata; others are kept.

        Raises:
            LanceNamespaceError: see `opened_to_commit`.
        """
        model = as_model(models.UpdateTableSchemaMetadataRequest, request)
        with opened_to_commit(self, model) as dataset:
            metadata: Any = dataset.update_schema_metadata(dict(model.metadata or {}))
            return models.UpdateTableSchemaMetadataResponse(
                metadata=metadata, transaction_id=last_transaction(dataset)
            )

    def update_field_metadata(self, request: AnyRequest) -> models.UpdateFieldMetadataResponse:
        """Set entries of columns' metadata, remove those that are null, and, if requested, all others.

        Raises:
            TableColumnNotFoundError: (12) a column doesn't exist.
            LanceNamespaceError: see `opened_to_commit`.
        """
        model = as_model(models.UpdateFieldMetadataRequest, request)
        if len({bool(entry.replace) for entry in model.updates}) > 1:
            raise InvalidInputError(f"updates: replace: {_ONE_COMMIT}")
        paths = [entry.path for entry in model.updates]
        with opened_to_commit(self, model) as dataset:
            check_columns(dataset, paths, model.id)
            updates = {entry.path: dict(entry.metadata) for entry in model.updates}
            dataset.update_field_metadata(updates, replace=any(entry.replace for entry in model.updates))
            fields = {path: _field_metadata(dataset, path) for path in paths}
            return models.UpdateFieldMetadataResponse(version=dataset.version, fields=fields)

    def restore_table(self, request: AnyRequest) -> models.RestoreTableResponse:
        """Make an older version the newest again, by a new commit.

        Raises:
            LanceNamespaceError: see `opened_to_commit`.
        """
        model = as_model(models.RestoreTableRequest, request)
        data = TableData.of(self, model.id)
        data.check_commits()
        with data.specified_errors():
            dataset = data.open(model.version, model.branch)
            dataset.restore()  # type: ignore[no-untyped-call]
            return models.RestoreTableResponse(transaction_id=last_transaction(dataset))

    def describe_columns(
        self, table: Sequence[str], schema: pa.Schema | None = None, location: str | None = None
    ) -> bool:
        """Describe a dataset's columns in its catalog table, where DESCRIBE of other clients shows them.

        An extension of the specification. The writes of this package call it if they change the columns; call
        it after changes by others.

        Args:
            table: its identifier.
            schema: the columns of the newest version, if the caller knows them.
            location: where the caller wrote that version, if it must be the location of the table.

        Returns:
            False if the catalog table described them already.

        Raises:
            InvalidInputError: (13) two names differ only in case, which a metastore can't describe.
            StaleTableError: (14) the table is at another location.
            LanceNamespaceError: see `opened_to_commit`.
        """
        data = TableData.of(self, table)
        with data.specified_errors():
            columns = data.open().schema if schema is None else schema
        return describe_columns(self._metastore, data.id, columns, location)


def _alteration(entry: models.AlterColumnsEntry) -> dict[str, Any]:
    given = {"name": entry.rename, "nullable": entry.nullable}
    alteration = {"path": entry.path, **{name: one for name, one in given.items() if one is not None}}
    return alteration if entry.data_type is None else {**alteration, "data_type": _type(entry)}


def _type(entry: models.AlterColumnsEntry) -> Any:
    from lance.schema import json_to_schema

    try:
        field = {"name": entry.path, "type": entry.data_type, "nullable": True}
        return json_to_schema({"fields": [field]}).field(0).type
    except (ValueError, OSError, KeyError) as error:
        raise InvalidInputError(
            f"alterations: {entry.path}: data_type: expected a type such as {{'type': 'int64'}}, got "
            f"{entry.data_type}: {error}"
        ) from error


def _field_metadata(dataset: Any, path: str) -> dict[str, str]:
    field = dataset.lance_schema.field(path)
    return {} if field is None else dict(field.metadata)
