"""Requests of the specification on a table's data: rows, queries, indices, tags, branches, columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from lance_namespace import LanceNamespace
from lance_namespace.errors import (
    InvalidInputError,
    TableAlreadyExistsError,
    TableBranchAlreadyExistsError,
    TableBranchNotFoundError,
    TableIndexAlreadyExistsError,
    TableIndexNotFoundError,
    TableNotFoundError,
    TableTagAlreadyExistsError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
)
from lance_namespace_urllib3_client import models

from airflow_provider_lancens.conditions import parse_condition, parse_expression
from airflow_provider_lancens.namespace.interface import redacted_responses
from airflow_provider_lancens.namespace.interface.core import AnyRequest, NamespaceCore
from airflow_provider_lancens.namespace.interface.open_dataset import (
    TableData,
    check_columns,
    lance_condition,
    last_transaction,
    opened,
    opened_to_commit,
    with_system_columns,
)
from airflow_provider_lancens.namespace.locations import shown_location
from airflow_provider_lancens.namespace.operations.catalog_columns import update_catalog_columns
from airflow_provider_lancens.namespace.paging import page_of
from airflow_provider_lancens.namespace.requests import as_model, choice, refuse, table_id
from airflow_provider_lancens.namespace.storage.file_paths import is_file_path
from airflow_provider_lancens.namespace.storage.object_store import BRANCHES, VERSIONS
from airflow_provider_lancens.namespace.storage.table_links import check_links
from airflow_provider_lancens.namespace.storage.version_tags import (
    create_branch,
    create_tag,
    delete_tag,
    list_branches,
    list_tags,
    move_tag,
    temporary_tag,
)
from airflow_provider_lancens.namespace.unreadable_columns import (
    check_values_left,
    column_problems,
    name_problems,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset, LanceScanner

_CREATE, _EXIST_OK, _OVERWRITE, _APPEND = "create", "exist_ok", "overwrite", "append"
_FIXED_STORAGE = "the namespace's storage options are used; leave it out"
_NO_PROPERTIES = "rows have no properties; leave it out"
_DECLARED = {"location", "storage_options", "properties", "managed_versioning"}
_VECTOR = "vector"
"""The column to search if a query names none, and no other column has vectors."""
_FOUND = ("_distance", "_score", "_relevance_score")
"""The columns that a search adds."""
_ONE_BY_ONE = "query one vector after the other"
_NO_STRUCTURE = "only string_query is supported; query the dataset with lance.query for others"
_SCALAR = ("BTREE", "BITMAP", "LABEL_LIST", "NGRAM", "ZONEMAP", "BLOOMFILTER", "INVERTED", "FTS")
_FULL_TEXT = ("INVERTED", "FTS")
_VECTOR_INDICES = ("IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ")
_VECTOR_FIELDS = (
    "num_partitions",
    "num_sub_vectors",
    "num_bits",
    "sample_rate",
    "max_iterations",
    "target_partition_size",
    "m",
    "ef_construction",
)
_LANCE_NAMES = {"max_iterations": "max_iters"}
_TEXT_FIELDS = (
    "with_position",
    "base_tokenizer",
    "language",
    "max_token_length",
    "lower_case",
    "stem",
    "remove_stop_words",
    "ascii_folding",
)
_READY = "SUCCEEDED"
_EXISTS = "Dataset already exists"
"""What Lance says if it can't create the first manifest."""
_ATTEMPTS = 4
"""How often the first version is tried."""
_NOT_STORED = "only columns of an expression are supported, whose values are stored"
_ONE_COMMIT = "expected the same value for all columns, since they are changed in one commit"


class DataRequests(NamespaceCore):
    """Requests on the rows, indices, tags, branches and columns of a table."""

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
        _check_new_columns(read_rows(request_data).schema)  # checked before the table is declared
        data = self._declared(model)
        with data.specified_errors():
            written = self._create(data, request_data, mode)
        created = TableData.of(self, model.id).table  # read again, with the committed version
        return redacted_responses.CreateTableResponse(
            location=data.location,
            version=None if written is None else written.version,
            storage_options=self._config.vended(None),
            properties=dict(created.parameters),
        )

    def _declared(self, model: models.CreateTableRequest) -> TableData:
        try:
            return TableData.of(self, model.id)
        except TableNotFoundError:
            self._tables.declare(table_id(model.id, self._metastore), None, model.properties or {})
            return TableData.of(self, model.id)

    def _create(
        self, data: TableData, checked: bytes, mode: str, attempts: int = _ATTEMPTS
    ) -> LanceDataset | None:
        import lance
        import pyarrow as pa

        data.check_commits()
        try:
            existing, needed = data.open(), mode
        except TableVersionNotFoundError:
            needed = _CREATE
        else:
            if mode == _EXIST_OK:
                return None
            if mode == _CREATE:
                raise TableAlreadyExistsError(f"table {data.id} exists, at version {existing.version}")
        try:
            return lance.write_dataset(_rows_in(pa.py_buffer(checked)), mode=needed, **destination(data))
        except OSError as error:
            # Another client has created the dataset, or the store reported a conflict and stored nothing.
            if attempts == 1 or not str(error).startswith(_EXISTS):
                raise
        return self._create(data, checked, mode, attempts - 1)

    def count_table_rows(self, request: AnyRequest) -> models.CountTableRowsResponse:
        """Count a table's rows, or the rows that match a predicate.

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
            if mode == _OVERWRITE or (column_problems(rows.source.schema) and not data.has_version()):
                _check_new_columns(rows.source.schema)
            target: dict[str, Any] = destination(data)
            if model.branch:
                target = {"uri": data.open(branch=model.branch)}
            written = lance.write_dataset(rows.reader(), mode=mode, **target)
        return models.InsertIntoTableResponse(num_inserted_rows=rows.count, version=written.version)

    def merge_insert_into_table(
        self, request: AnyRequest, request_data: bytes
    ) -> models.MergeInsertIntoTableResponse:
        """Update, insert and delete rows by comparing their key columns with the key columns of other rows.

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
            _check_once("updates", [column for column, _ in model.updates])
            updates = {
                column: parse_expression(text, dataset.schema, f"updates: {column}")
                for column, text in model.updates
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

    def query_table(self, request: AnyRequest) -> models.QueryTableResponse:
        """Return the rows that a query finds, as an Arrow IPC file.

        Raises:
            UnsupportedOperationError: (0) several vectors, or a structured full-text query.
            LanceNamespaceError: see `opened`.
        """
        model = as_model(models.QueryTableRequest, request)
        with opened(self, model) as dataset:
            return models.QueryTableResponse(data=_as_file(_scanner(dataset, model).to_table()))

    def explain_table_query_plan(self, request: AnyRequest) -> str:
        """Return the plan of a query.

        Raises:
            LanceNamespaceError: see `query_table`.
        """
        model = as_model(models.ExplainTableQueryPlanRequest, request)
        named = {"id": model.id, "branch": model.branch or model.query.branch}
        query = as_model(models.QueryTableRequest, model.query.model_copy(update=named))
        with opened(self, query) as dataset:
            plan: str = _scanner(dataset, query).explain_plan(verbose=bool(model.verbose))
            return plan

    def analyze_table_query_plan(self, request: AnyRequest) -> str:
        """Run a query, and return its plan with what each step did.

        Raises:
            LanceNamespaceError: see `query_table`.
        """
        model = as_model(models.AnalyzeTableQueryPlanRequest, request)
        with opened(self, model) as dataset:
            plan: str = _scanner(dataset, model).analyze_plan()
            return plan

    def get_table_stats(self, request: AnyRequest) -> models.GetTableStatsResponse:
        """Return the numbers of a table's rows, bytes, indices and fragments.

        Raises:
            LanceNamespaceError: see `opened`.
        """
        model = as_model(models.GetTableStatsRequest, request)
        with opened(self, model) as dataset:
            rows = sorted(fragment.count_rows() for fragment in dataset.get_fragments())
            small: int = dataset.stats.dataset_stats()["num_small_files"]
            stored: Any = dataset.stats.data_stats()
            return models.GetTableStatsResponse(
                total_bytes=sum(field.bytes_on_disk for field in stored.fields),
                num_rows=sum(rows),
                num_indices=len(dataset.describe_indices()),
                fragment_stats=models.FragmentStats(
                    num_fragments=len(rows), num_small_fragments=small, lengths=_summary(rows)
                ),
            )

    def create_table_index(self, request: AnyRequest) -> models.CreateTableIndexResponse:
        """Build a vector, scalar or full-text index of a column.

        Raises:
            TableIndexAlreadyExistsError: (7) there is an index of that name.
            TableColumnNotFoundError: (12) the column doesn't exist.
            LanceNamespaceError: see `opened`.
        """
        return models.CreateTableIndexResponse(
            transaction_id=self._index(request, (*_VECTOR_INDICES, *_SCALAR))
        )

    def create_table_scalar_index(self, request: AnyRequest) -> models.CreateTableScalarIndexResponse:
        """Build a scalar or full-text index of a column.

        Raises:
            LanceNamespaceError: see `create_table_index`.
        """
        return models.CreateTableScalarIndexResponse(transaction_id=self._index(request, _SCALAR))

    def _index(self, request: AnyRequest, allowed: tuple[str, ...]) -> str:
        model = as_model(models.CreateTableIndexRequest, request)
        kind = model.index_type.upper()
        if kind not in allowed:
            raise InvalidInputError(
                f"index_type: expected one of {', '.join(allowed)}, got {model.index_type!r}"
            )
        with opened_to_commit(self, model) as dataset:
            check_columns(dataset, [model.column], model.id)
            name = model.name or f"{model.column}_idx"
            if any(index.name == name for index in dataset.describe_indices()):
                raise TableIndexAlreadyExistsError(f"table {'$'.join(model.id or ())} has an index {name!r}")
            _build(dataset, model, kind, name)
            return last_transaction(dataset)

    def list_table_indices(self, request: AnyRequest) -> models.ListTableIndicesResponse:
        """List a table's indices by name, paginated.

        Raises:
            LanceNamespaceError: see `opened`.
        """
        model = as_model(models.ListTableIndicesRequest, request)
        with opened(self, model) as dataset:
            indices = {index.name: index for index in dataset.describe_indices()}
            page = page_of(indices, model.page_token, model.limit)
            rows = dataset.count_rows() if page.names else 0
            contents = [_content(indices[name], rows) for name in page.names]
        return models.ListTableIndicesResponse(indexes=contents, page_token=page.token)

    def describe_table_index_stats(self, request: AnyRequest) -> models.DescribeTableIndexStatsResponse:
        """Return the type of an index, and how many rows it covers.

        Raises:
            TableIndexNotFoundError: (6) there is no such index.
            LanceNamespaceError: see `opened`.
        """
        model = as_model(models.DescribeTableIndexStatsRequest, request)
        with opened(self, model) as dataset:
            _check_index(dataset, model)
            stats: Any = dataset.stats.index_stats(model.index_name)
            segments = stats.get("indices") or [{}]
            return models.DescribeTableIndexStatsResponse(
                distance_type=segments[0].get("metric_type"),
                index_type=stats["index_type"],
                num_indexed_rows=stats["num_indexed_rows"],
                num_unindexed_rows=stats["num_unindexed_rows"],
                num_indices=stats["num_indices"],
            )

    def drop_table_index(self, request: AnyRequest) -> models.DropTableIndexResponse:
        """Drop an index.

        Raises:
            TableIndexNotFoundError: (6) there is no such index.
            LanceNamespaceError: see `opened`.
        """
        model = as_model(models.DropTableIndexRequest, request)
        with opened_to_commit(self, model) as dataset:
            _check_index(dataset, model)
            dataset.drop_index(str(model.index_name))
            return models.DropTableIndexResponse(transaction_id=last_transaction(dataset))

    def list_table_tags(self, request: AnyRequest) -> models.ListTableTagsResponse:
        """List a table's tags by name, paginated.

        Raises:
            LanceNamespaceError: see `opened`.
        """
        model = as_model(models.ListTableTagsRequest, request)
        with opened(self, model) as dataset:
            found = list_tags(dataset)
        page = page_of(found, model.page_token, model.limit)
        tags = {name: _tag(found[name]) for name in page.names}
        return models.ListTableTagsResponse(tags=tags, page_token=page.token)

    def get_table_tag_version(self, request: AnyRequest) -> models.GetTableTagVersionResponse:
        """Return the version that a tag names.

        Raises:
            TableTagNotFoundError: (8) there is no such tag.
            LanceNamespaceError: see `opened`.
        """
        model = as_model(models.GetTableTagVersionRequest, request)
        with opened(self, model) as dataset:
            tag = list_tags(dataset).get(model.tag)
        if tag is None:
            raise _no_tag(model)
        return models.GetTableTagVersionResponse(version=tag["version"], branch=tag.get("branch"))

    def create_table_tag(self, request: AnyRequest) -> models.CreateTableTagResponse:
        """Tag a version, which protects it from clean-ups.

        Raises:
            TableTagAlreadyExistsError: (9) there is a tag of that name.
            TableVersionNotFoundError: (11) there is no such version.
            ConcurrentModificationError: (14) a clean-up may be removing it.
            LanceNamespaceError: see `opened`.
        """
        model = as_model(models.CreateTableTagRequest, request)
        data = TableData.of(self, model.id)
        with data.specified_errors():
            is_new = create_tag(data.open(), data.files, model.tag, _checked_version(data, model))
        if not is_new:
            raise TableTagAlreadyExistsError(f"table {data.id} has a tag {model.tag!r}")
        return models.CreateTableTagResponse()

    def update_table_tag(self, request: AnyRequest) -> models.UpdateTableTagResponse:
        """Move a tag to another version.

        Raises:
            TableTagNotFoundError: (8) there is no such tag.
            TableVersionNotFoundError: (11) there is no such version.
            ConcurrentModificationError: (14) a clean-up may be removing it.
            LanceNamespaceError: see `opened`.
        """
        model = as_model(models.UpdateTableTagRequest, request)
        data = TableData.of(self, model.id)
        with data.specified_errors():
            exists = move_tag(data.open(), data.files, model.tag, _checked_version(data, model))
        if not exists:
            raise _no_tag(model)
        return models.UpdateTableTagResponse()

    def delete_table_tag(self, request: AnyRequest) -> models.DeleteTableTagResponse:
        """Delete a tag; its version is kept until a clean-up.

        Raises:
            TableTagNotFoundError: (8) there is no such tag.
            LanceNamespaceError: see `opened`.
        """
        model = as_model(models.DeleteTableTagRequest, request)
        with opened(self, model) as dataset:
            existed = delete_tag(dataset, model.tag)
        if not existed:
            raise _no_tag(model)
        return models.DeleteTableTagResponse()

    def list_table_branches(self, request: AnyRequest) -> models.ListTableBranchesResponse:
        """List a table's branches by name, paginated.

        Raises:
            LanceNamespaceError: see `opened`.
        """
        model = as_model(models.ListTableBranchesRequest, request)
        with opened(self, model) as dataset:
            found: Mapping[str, Any] = list_branches(dataset)
        page = page_of(found, model.page_token, model.limit)
        branches = {name: _branch(found[name]) for name in page.names}
        return models.ListTableBranchesResponse(branches=branches, page_token=page.token)

    def create_table_branch(self, request: AnyRequest) -> models.CreateTableBranchResponse:
        """Create a branch of a version, by default of the newest one of main.

        Raises:
            TableBranchAlreadyExistsError: (23) there is a branch of that name.
            TableVersionNotFoundError: (11) there is no such version.
            ConcurrentModificationError: (14) a clean-up may be removing it.
            LanceNamespaceError: see `opened`.
        """
        model = as_model(models.CreateTableBranchRequest, request)
        if not is_file_path(f"{BRANCHES}/{model.name}/{VERSIONS}"):
            raise InvalidInputError(f"name: expected the name of a branch, got {shown_location(model.name)}")
        data = TableData.of(self, model.id)
        with data.specified_errors():
            check_links(data.location, model.name)
            parent = data.open(model.from_version, model.from_branch)
            version = (model.from_branch, parent.version) if model.from_branch else parent.version
            is_new = create_branch(parent, data.files, model.name, version)
        if not is_new:
            raise TableBranchAlreadyExistsError(f"table {data.id} has a branch {model.name!r}")
        return models.CreateTableBranchResponse()

    def delete_table_branch(self, request: AnyRequest) -> models.DeleteTableBranchResponse:
        """Delete a branch with its versions.

        Raises:
            TableBranchNotFoundError: (22) there is no such branch.
            LanceNamespaceError: see `opened`.
        """
        model = as_model(models.DeleteTableBranchRequest, request)
        with opened(self, model) as dataset:
            if model.name not in list_branches(dataset):
                raise TableBranchNotFoundError(
                    f"table {'$'.join(model.id or ())} has no branch {model.name!r}"
                )
            check_links(dataset.uri, model.name)
            dataset.branches.delete(model.name)
        return models.DeleteTableBranchResponse()

    def alter_table_add_columns(self, request: AnyRequest) -> models.AlterTableAddColumnsResponse:
        """Add columns with the values of SQL expressions; no other column is rewritten.

        Raises:
            UnsupportedOperationError: (0) a column is virtual, or computed by a function.
            InvalidInputError: (13) Lance can't store a name, or the table has it already.
            LanceNamespaceError: see `opened_to_commit`.
        """
        model = as_model(models.AlterTableAddColumnsRequest, request)
        _check_once("new_columns", [entry.name for entry in model.new_columns])
        for entry in model.new_columns:
            refuse(entry, {"computed": _NOT_STORED, "virtual_column": _NOT_STORED})
            if not entry.expression:
                raise InvalidInputError(f"new_columns: {entry.name}: expected an expression, got none")
        with opened_to_commit(self, model) as dataset:
            names = dataset.schema.names
            _check_names("new_columns", names, [*names, *(entry.name for entry in model.new_columns)])
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
            InvalidInputError: (13) Lance can't store a new name, or the table has it already.
            LanceNamespaceError: see `opened_to_commit`.
        """
        model = as_model(models.AlterTableAlterColumnsRequest, request)
        for entry in model.alterations:
            refuse(entry, {"virtual_column": _NOT_STORED})
        with opened_to_commit(self, model) as dataset:
            check_columns(dataset, [entry.path for entry in model.alterations], model.id)
            renamed = {entry.path: entry.rename for entry in model.alterations if entry.rename is not None}
            names = dataset.schema.names
            _check_names("alterations", names, [renamed.get(name, name) for name in names])
            alterations: list[Any] = [_alteration(entry) for entry in model.alterations]
            dataset.alter_columns(*alterations)
            return models.AlterTableAlterColumnsResponse(version=dataset.version)

    def alter_table_drop_columns(self, request: AnyRequest) -> models.AlterTableDropColumnsResponse:
        """Drop columns; their bytes remain until a compaction and a clean-up.

        Raises:
            TableColumnNotFoundError: (12) a column doesn't exist.
            InvalidInputError: (13) rows would be left without values.
            LanceNamespaceError: see `opened_to_commit`.
        """
        model = as_model(models.AlterTableDropColumnsRequest, request)
        with opened_to_commit(self, model) as dataset:
            check_columns(dataset, model.columns, model.id)
            check_values_left(dataset, model.columns, "$".join(model.id or ()))
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
        """Set entries of columns' metadata; remove null entries and, if requested, all other entries.

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
            ConcurrentModificationError: (14) a clean-up may be removing the version.
            InvalidInputError: (13) the version is staged.
            LanceNamespaceError: see `opened_to_commit`.
        """
        model = as_model(models.RestoreTableRequest, request)
        data = TableData.of(self, model.id)
        data.check_commits()
        with data.specified_errors():
            dataset = data.open(model.version, model.branch)
            version = (model.branch, model.version) if model.branch else model.version
            with temporary_tag(dataset, data.files, version):
                dataset.restore()  # type: ignore[no-untyped-call]
            return models.RestoreTableResponse(transaction_id=last_transaction(dataset))

    def update_catalog_columns(
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
        return update_catalog_columns(self._metastore, data.id, columns, location)


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
        return _rows_in(content)
    except (pa.ArrowException, OSError, TypeError) as error:
        raise InvalidInputError(f"request_data: expected rows as an Arrow IPC stream: {error}") from error
    except RowError as error:
        raise InvalidInputError(f"request_data: {error}") from error


def _rows_in(stream: pa.Buffer) -> pa.RecordBatchReader:
    """Return the rows of an Arrow IPC stream, in memory that Lance takes."""
    import pyarrow as pa

    from airflow_provider_lancens.namespace.arrow_memory import aligned_batch

    rows = pa.ipc.open_stream(stream)
    return pa.RecordBatchReader.from_batches(rows.schema, map(aligned_batch, rows))


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


def _check_new_columns(rows: pa.Schema) -> None:
    """Check columns that become the table's; rows are appended to those that it has, whoever named them.

    Raises:
        InvalidInputError: (13) a column can't be stored, or not be read back.
    """
    if problems := column_problems(rows):
        raise InvalidInputError(f"request_data: {'; '.join(problems)}")


def destination(data: TableData) -> dict[str, Any]:
    """Return the arguments by which `lance.write_dataset` writes to a declared table.

    Raises:
        InvalidInputError: (13) a symbolic link leads out of its folder.
    """
    check_links(data.location)
    if data.authority(data.namespace):
        return {"namespace_client": _DeclaredNamespace(data.namespace), "table_id": list(data.id.parts)}
    return {"uri": data.location, "storage_options": data.options}


class _DeclaredNamespace(LanceNamespace):
    """A namespace whose table was declared before Lance creates the dataset."""

    def __init__(self, namespace: NamespaceCore) -> None:
        self._namespace = namespace

    def namespace_id(self) -> str:
        return self._namespace.namespace_id()

    def declare_table(self, request: AnyRequest) -> models.DeclareTableResponse:
        description = self._namespace.describe_table({"id": request.id})
        return redacted_responses.DeclareTableResponse(**description.model_dump(include=_DECLARED))

    def describe_table(self, request: AnyRequest) -> models.DescribeTableResponse:
        return self._namespace.describe_table(request)

    def list_table_versions(self, request: AnyRequest) -> models.ListTableVersionsResponse:
        return self._namespace.list_table_versions(request)

    def describe_table_version(self, request: AnyRequest) -> models.DescribeTableVersionResponse:
        return self._namespace.describe_table_version(request)

    def create_table_version(self, request: AnyRequest) -> models.CreateTableVersionResponse:
        return self._namespace.create_table_version(request)


def _merge_of(dataset: LanceDataset, model: models.MergeInsertIntoTableRequest, rows: pa.Schema) -> Any:
    for switch in ("when_matched_update_all", "when_not_matched_by_source_delete"):
        if getattr(model, f"{switch}_filt") is not None and not getattr(model, switch):
            raise InvalidInputError(
                f"{switch}_filt: has no effect without {switch}; set it, or leave this out"
            )
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


def _check_names(argument: str, before: Sequence[str], after: Sequence[str]) -> None:
    """Check the names of a table's columns after a change, without what was wrong with them before."""
    known = set(name_problems(before))
    if problems := [problem for problem in name_problems(after) if problem not in known]:
        raise InvalidInputError(f"{argument}: {'; '.join(problems)}")


def _check_once(argument: str, columns: Sequence[str]) -> None:
    for column in columns:
        if columns.count(column) > 1:
            raise InvalidInputError(f"{argument}: column {column!r} is named twice")


def _duration(text: str) -> timedelta:
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
    number = text.rstrip("msh")
    try:
        return timedelta(seconds=float(number) * units[text[len(number) :] or "s"])
    except (KeyError, ValueError):
        raise InvalidInputError(f"timeout: expected a duration such as 30s, got {text!r}") from None


def _summary(rows: list[int]) -> models.FragmentSummary:
    """Summarize sorted numbers of rows."""
    if not rows:
        return models.FragmentSummary(min=0, max=0, mean=0, p25=0, p50=0, p75=0, p99=0)

    def percentile(percent: int) -> int:
        return rows[(len(rows) - 1) * percent // 100]

    return models.FragmentSummary(
        min=rows[0],
        max=rows[-1],
        mean=sum(rows) // len(rows),
        **{f"p{percent}": percentile(percent) for percent in (25, 50, 75, 99)},
    )


def _as_file(rows: pa.Table) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _scanner(dataset: LanceDataset, model: Any) -> LanceScanner:
    """Return the scanner of a query; `model` is a request with its fields."""
    vector = model.vector.single_vector
    refuse(model.vector, {"multi_vector": _ONE_BY_ONE})
    return dataset.scanner(
        columns=_columns(dataset, model),
        filter=lance_condition(dataset, model.filter, "filter"),
        limit=None if vector else model.k,
        offset=model.offset,
        nearest=_nearest(dataset, model, vector) if vector else None,
        full_text_query=_full_text(model),
        prefilter=model.prefilter,
        with_row_id=model.with_row_id,
        fast_search=model.fast_search,
    )


def _columns(dataset: LanceDataset, model: Any) -> list[str] | dict[str, str] | None:
    if model.columns is None:
        return None
    names: list[str] | None = model.columns.column_names
    aliases: dict[str, str] | None = model.columns.column_aliases
    if not aliases:
        return names
    schema = with_system_columns(dataset, _FOUND)
    return {
        name: parse_expression(text, schema, f"columns: column_aliases: {name}")
        for name, text in aliases.items()
    }


def _nearest(dataset: LanceDataset, model: Any, vector: list[float]) -> dict[str, Any]:
    given = {
        "metric": model.distance_type,
        "nprobes": model.nprobes,
        "minimum_nprobes": model.minimum_nprobes,
        "maximum_nprobes": model.maximum_nprobes,
        "refine_factor": model.refine_factor,
        "ef": model.ef,
    }
    nearest: dict[str, Any] = {
        "column": model.vector_column or _vector_column(dataset.schema),
        "q": vector,
        "k": model.k + (model.offset or 0),  # the offset skips some of the rows that the search finds
        "use_index": not model.bypass_vector_index,
        **{name: value for name, value in given.items() if value is not None},
    }
    if model.lower_bound is not None or model.upper_bound is not None:
        nearest["distance_range"] = (model.lower_bound, model.upper_bound)
    return nearest


def _vector_column(schema: pa.Schema) -> str:
    import pyarrow as pa

    vectors = [field.name for field in schema if pa.types.is_fixed_size_list(field.type)]
    return vectors[0] if len(vectors) == 1 else _VECTOR


def _full_text(model: Any) -> dict[str, Any] | None:
    query = model.full_text_query
    if query is None:
        return None
    refuse(query, {"structured_query": _NO_STRUCTURE})
    if query.string_query is None:
        return None
    return {"query": query.string_query.query, "columns": query.string_query.columns}


def _check_index(dataset: LanceDataset, model: Any) -> None:
    names = sorted(index.name for index in dataset.describe_indices())
    if model.index_name not in names:
        raise TableIndexNotFoundError(
            f"table {'$'.join(model.id)} has no index {model.index_name!r}; "
            f"indices: {', '.join(names) or 'none'}"
        )


def _build(dataset: LanceDataset, model: models.CreateTableIndexRequest, kind: str, name: str) -> None:
    if kind in _SCALAR:
        given = _given(model, _TEXT_FIELDS) if kind in _FULL_TEXT else {}
        dataset.create_scalar_index(model.column, kind, name, replace=False, **given)  # type: ignore[arg-type]
        return
    metric = {} if model.distance_type is None else {"metric": model.distance_type}
    dataset.create_index(model.column, kind, name, **metric, **_given(model, _VECTOR_FIELDS))


def _given(model: models.CreateTableIndexRequest, names: tuple[str, ...]) -> dict[str, Any]:
    values = {_LANCE_NAMES.get(name, name): getattr(model, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _content(index: Any, rows: int) -> models.IndexContent:
    segments = index.segments
    return models.IndexContent(
        index_name=index.name,
        index_uuid=str(segments[0].uuid),
        columns=index.field_names,
        status=_READY,
        index_type=index.index_type,
        type_url=index.type_url,
        num_indexed_rows=index.num_rows_indexed,
        num_unindexed_rows=max(rows - index.num_rows_indexed, 0),
        size_bytes=index.total_size_bytes,
        num_segments=len(segments),
    )


def _no_tag(model: Any) -> TableTagNotFoundError:
    return TableTagNotFoundError(f"table {'$'.join(model.id)} has no tag {model.tag!r}")


def _checked_version(data: TableData, model: Any) -> Any:
    """Return a reference to the version to tag.

    Raises:
        TableVersionNotFoundError: (11) there is none.
    """
    try:
        data.open(model.version, model.branch)
    except ValueError as error:
        raise TableVersionNotFoundError(
            f"table {data.id}: branch {model.branch!r} has no version {model.version}"
        ) from error
    return (model.branch, model.version) if model.branch else model.version


def _tag(stored: Mapping[str, Any]) -> models.TagContents:
    return models.TagContents(
        branch=stored.get("branch"), version=stored["version"], manifest_size=stored["manifest_size"]
    )


def _branch(stored: Mapping[str, Any]) -> models.BranchContents:
    return models.BranchContents(
        parent_branch=stored.get("parent_branch"),
        parent_version=stored["parent_version"],
        create_at=stored["create_at"],
        manifest_size=stored["manifest_size"],
    )


def _alteration(entry: models.AlterColumnsEntry) -> dict[str, Any]:
    given = {"name": entry.rename, "nullable": entry.nullable}
    alteration = {"path": entry.path, **{name: value for name, value in given.items() if value is not None}}
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
