"""Requests that create, count and change the rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from lance_namespace import LanceNamespace
from lance_namespace.errors import (
    InvalidInputError,
    TableAlreadyExistsError,
    TableNotFoundError,
    TableVersionNotFoundError,
)
from lance_namespace_urllib3_client import models

from airflow_provider_lancens.conditions import parse_condition, parse_expression
from airflow_provider_lancens.namespace.interface import redacted_responses
from airflow_provider_lancens.namespace.interface.core import AnyRequest, NamespaceCore
from airflow_provider_lancens.namespace.interface.open_dataset import (
    TableData,
    lance_condition,
    opened,
    opened_to_commit,
)
from airflow_provider_lancens.namespace.requests import as_model, choice, refuse, table_id
from airflow_provider_lancens.namespace.storage.table_links import check_links

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset

_CREATE, _EXIST_OK, _OVERWRITE, _APPEND = "create", "exist_ok", "overwrite", "append"
_FIXED_STORAGE = "the storage options are those of the namespace; leave it out"
_NO_PROPERTIES = "rows have no properties; leave it out"


class RowRequests(NamespaceCore):
    """CreateTable, CountTableRows, InsertIntoTable, MergeInsertIntoTable, UpdateTable, DeleteFromTable."""

    def create_table(self, request: AnyRequest, request_data: bytes) -> models.CreateTableResponse:
        """Declare a table, and write its first version. Modes CREATE, EXIST_OK, OVERWRITE.

        A request that ended after the declaration can be repeated: a table without data counts as missing.

        Args:
            request: the request.
            request_data: the rows as an Arrow IPC stream.

        Raises:
            NamespaceNotFoundError: (1) its namespace doesn't exist.
            TableAlreadyExistsError: (5) it exists, and the mode is CREATE.
            InvalidInputError: (13) the request or the rows are invalid.
        """
        model = as_model(models.CreateTableRequest, request)
        refuse(model, {"storage_options": _FIXED_STORAGE})
        mode = choice(model.mode, (_CREATE, _EXIST_OK, _OVERWRITE), _CREATE, "mode")
        rows = read_rows(request_data)
        data = self._declared(model)
        with data.specified_errors():
            written = self._create(data, rows, mode)
        made = TableData.of(self, model.id).table  # with the version that was committed
        return redacted_responses.CreateTableResponse(
            location=data.location,
            version=None if written is None else written.version,
            storage_options=self._config.vended(None),
            properties=dict(made.parameters),
        )

    def _declared(self, model: models.CreateTableRequest) -> TableData:
        try:
            return TableData.of(self, model.id)
        except TableNotFoundError:
            self._tables.declare(table_id(model.id, self._metastore), None, model.properties or {})
            return TableData.of(self, model.id)

    def _create(self, data: TableData, rows: pa.RecordBatchReader, mode: str) -> LanceDataset | None:
        import lance

        data.check_commits()
        try:
            existing = data.open()
        except TableVersionNotFoundError:
            mode = _CREATE
        else:
            if mode == _EXIST_OK:
                return None
            if mode == _CREATE:
                raise TableAlreadyExistsError(f"table {data.id} exists, at version {existing.version}")
        return lance.write_dataset(rows, mode=mode, **destination(data))

    def count_table_rows(self, request: AnyRequest) -> models.CountTableRowsResponse:
        """Count a table's rows, or those that match a predicate.

        Raises:
            LanceNamespaceError: see `opened`.
        """
        model = as_model(models.CountTableRowsRequest, request)
        with opened(self, model) as dataset:
            return models.CountTableRowsResponse(
                count=dataset.count_rows(lance_condition(dataset, model.predicate, "predicate"))
            )

    def insert_into_table(self, request: AnyRequest, request_data: bytes) -> models.InsertIntoTableResponse:
        """Append rows, or replace all rows by them. Modes APPEND, OVERWRITE.

        Args:
            request: the request.
            request_data: the rows as an Arrow IPC stream.

        Raises:
            LanceNamespaceError: see `opened`.
        """
        import lance

        model = as_model(models.InsertIntoTableRequest, request)
        mode = choice(model.mode, (_APPEND, _OVERWRITE), _APPEND, "mode")
        rows = CountedRows(read_rows(request_data))
        data = TableData.of(self, model.id)
        data.check_commits()
        with data.specified_errors():
            target: dict[str, Any] = destination(data)
            if model.branch:
                target = {"uri": data.open(branch=model.branch)}
            written = lance.write_dataset(rows.reader(), mode=mode, **target)
        return models.InsertIntoTableResponse(num_inserted_rows=rows.count, version=written.version)

    def merge_insert_into_table(
        self, request: AnyRequest, request_data: bytes
    ) -> models.MergeInsertIntoTableResponse:
        """Update, insert and delete rows by comparing key columns with those of other rows.

        Args:
            request: the request.
            request_data: the other rows as an Arrow IPC stream.

        Raises:
            LanceNamespaceError: see `opened`.
        """
        model = as_model(models.MergeInsertIntoTableRequest, request)
        if not model.on:
            raise InvalidInputError("on: expected key columns, got none")
        rows = read_rows(request_data)
        with opened_to_commit(self, model) as dataset:
            counts = _merge_of(dataset, model, rows.schema).execute(rows)
            return models.MergeInsertIntoTableResponse(
                num_updated_rows=counts["num_updated_rows"],
                num_inserted_rows=counts["num_inserted_rows"],
                num_deleted_rows=counts["num_deleted_rows"],
                version=dataset.version,
            )

    def update_table(self, request: AnyRequest) -> models.UpdateTableResponse:
        """Set columns of the rows that match a predicate to the values of SQL expressions.

        Raises:
            LanceNamespaceError: see `opened`.
        """
        model = as_model(models.UpdateTableRequest, request)
        refuse(model, {"properties": _NO_PROPERTIES})
        with opened_to_commit(self, model) as dataset:
            updates = {
                column: parse_expression(text, dataset.schema, f"updates: {column}")
                for column, text in dict(model.updates).items()
            }
            predicate = lance_condition(dataset, model.predicate, "predicate")
            changed = dataset.update(updates, predicate)
            return models.UpdateTableResponse(
                updated_rows=changed["num_rows_updated"], version=dataset.version
            )

    def delete_from_table(self, request: AnyRequest) -> models.DeleteFromTableResponse:
        """Delete the rows that match a predicate.

        Raises:
            LanceNamespaceError: see `opened`.
        """
        model = as_model(models.DeleteFromTableRequest, request)
        with opened_to_commit(self, model) as dataset:
            dataset.delete(str(lance_condition(dataset, model.predicate, "predicate")))
            return models.DeleteFromTableResponse(version=dataset.version)


@dataclass
class CountedRows:
    """Rows that are counted while they are read."""

    source: pa.RecordBatchReader
    count: int = 0

    def reader(self) -> pa.RecordBatchReader:
        """Return the rows."""
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self.source.schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self.source:
            self.count += batch.num_rows
            yield batch


def read_rows(request_data: bytes) -> pa.RecordBatchReader:
    """Read the rows of a request, once they are checked: Lance explains no error of a stream that it reads.

    Raises:
        InvalidInputError: (13) they are no Arrow IPC stream, or text in them isn't UTF-8.
    """
    import pyarrow as pa

    from airflow_provider_lancens.namespace.row_errors import RowError

    try:
        content = pa.py_buffer(request_data)
        _check_rows(pa.ipc.open_stream(content))
        return pa.ipc.open_stream(content)
    except (pa.ArrowException, OSError, TypeError) as error:
        raise InvalidInputError(f"request_data: expected rows as an Arrow IPC stream: {error}") from error
    except RowError as error:
        raise InvalidInputError(f"request_data: {error}") from error


def _check_rows(rows: pa.RecordBatchReader) -> None:
    """Read all rows, which are in memory already, and check their text.

    Raises:
        RowError: some isn't UTF-8: Lance would commit it, and fail to read it.
    """
    from airflow_provider_lancens.namespace.row_errors import check_text, contains_text, rows_from

    columns = [(index, field.name) for index, field in enumerate(rows.schema) if contains_text(field.type)]
    start = 0
    for batch in rows:
        with rows_from(start):
            for index, name in columns:
                check_text(batch.column(index), name)
        start += batch.num_rows


def destination(data: TableData) -> dict[str, Any]:
    """Return the arguments by which `lance.write_dataset` writes to a declared table.

    Raises:
        InvalidInputError: (13) a symbolic link leads out of its folder.
    """
    check_links(data.location)
    if data.authority(data.namespace):
        return {"namespace_client": _Declared(data.namespace), "table_id": list(data.id.parts)}
    return {"uri": data.location, "storage_options": data.options}


class _Declared(LanceNamespace):
    """A namespace whose table was declared before Lance creates the dataset."""

    def __init__(self, namespace: NamespaceCore) -> None:
        self._namespace = namespace

    def namespace_id(self) -> str:
        return self._namespace.namespace_id()

    def declare_table(self, request: AnyRequest) -> models.DeclareTableResponse:
        found = self._namespace.describe_table({"id": request.id})
        return redacted_responses.DeclareTableResponse(**found.model_dump(include=_DECLARED))

    def describe_table(self, request: AnyRequest) -> models.DescribeTableResponse:
        return self._namespace.describe_table(request)

    def list_table_versions(self, request: AnyRequest) -> models.ListTableVersionsResponse:
        return self._namespace.list_table_versions(request)

    def describe_table_version(self, request: AnyRequest) -> models.DescribeTableVersionResponse:
        return self._namespace.describe_table_version(request)

    def create_table_version(self, request: AnyRequest) -> models.CreateTableVersionResponse:
        return self._namespace.create_table_version(request)


_DECLARED = {"location", "storage_options", "properties", "managed_versioning"}


def _merge_of(dataset: LanceDataset, model: models.MergeInsertIntoTableRequest, rows: pa.Schema) -> Any:
    merge: Any = dataset.merge_insert(model.on)
    if model.when_matched_update_all:
        merge = merge.when_matched_update_all(
            _matched_condition(dataset, rows, model.when_matched_update_all_filt)
        )
    if model.when_not_matched_insert_all:
        merge = merge.when_not_matched_insert_all()
    if model.when_not_matched_by_source_delete:
        argument = "when_not_matched_by_source_delete_filt"
        condition = lance_condition(dataset, getattr(model, argument), argument)
        merge = merge.when_not_matched_by_source_delete(condition)
    if model.use_index is not None:
        merge = merge.use_index(model.use_index)
    return merge if model.timeout is None else merge.retry_timeout(_duration(model.timeout))


def _matched_condition(dataset: LanceDataset, rows: pa.Schema, text: str | None) -> str | None:
    """Return a condition on two rows of the same key, in Lance's SQL: ``source`` is the new one."""
    import pyarrow as pa

    if text is None:
        return None
    both = pa.schema([("source", pa.struct(list(rows))), ("target", pa.struct(list(dataset.schema)))])
    return parse_condition(text, both, "when_matched_update_all_filt").lance_sql


def _duration(text: str) -> timedelta:
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
    number = text.rstrip("msh")
    try:
        return timedelta(seconds=float(number) * units[text[len(number) :] or "s"])
    except (KeyError, ValueError):
        raise InvalidInputError(f"timeout: expected a duration such as 30s, got {text!r}") from None
