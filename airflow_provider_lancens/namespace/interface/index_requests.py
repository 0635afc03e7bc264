"""Requests on the indices of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lance_namespace.errors import InvalidInputError, TableIndexAlreadyExistsError, TableIndexNotFoundError
from lance_namespace_urllib3_client import models

from airflow_provider_lancens.namespace.interface.core import AnyRequest, NamespaceCore
from airflow_provider_lancens.namespace.interface.open_dataset import (
    check_columns,
    last_transaction,
    opened,
    opened_to_commit,
)
from airflow_provider_lancens.namespace.paging import page_of
from airflow_provider_lancens.namespace.requests import as_model

if TYPE_CHECKING:
    from lance import LanceDataset

_SCALAR = ("BTREE", "BITMAP", "LABEL_LIST", "NGRAM", "ZONEMAP", "BLOOMFILTER", "INVERTED", "FTS")
_FULL_TEXT = ("INVERTED", "FTS")
_VECTOR = ("IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ")
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


class IndexRequests(NamespaceCore):
    """CreateTableIndex, CreateTableScalarIndex, ListTableIndices, DescribeTableIndexStats, DropTableIndex."""

    def create_table_index(self, request: AnyRequest) -> models.CreateTableIndexResponse:
        """Build a vector, scalar or full-text index of a column.

        Raises:
            TableIndexAlreadyExistsError: (7) there is an index of that name.
            TableColumnNotFoundError: (12) the column doesn't exist.
            LanceNamespaceError: see `opened`.
        """
        return models.CreateTableIndexResponse(transaction_id=self._index(request, (*_VECTOR, *_SCALAR)))

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
            found = {index.name: index for index in dataset.describe_indices()}
            page = page_of(found, model.page_token, model.limit)
            rows = dataset.count_rows() if page.names else 0
            contents = [_content(found[name], rows) for name in page.names]
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
