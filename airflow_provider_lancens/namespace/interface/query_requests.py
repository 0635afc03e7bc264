"""Requests that query a table, explain a query, or describe what a table consists of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lance_namespace_urllib3_client import models

from airflow_provider_lancens.conditions import parse_expression
from airflow_provider_lancens.namespace.interface.core import AnyRequest, NamespaceCore
from airflow_provider_lancens.namespace.interface.open_dataset import (
    lance_condition,
    opened,
    with_system_columns,
)
from airflow_provider_lancens.namespace.requests import as_model, refuse

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset, LanceScanner

_VECTOR = "vector"
"""The column to search if a query names none, and no other column has vectors."""
_FOUND = ("_distance", "_score", "_relevance_score")
"""The columns that a search adds."""
_ONE_BY_ONE = "query one vector after the other"
_NO_STRUCTURE = "only string_query is supported; query the dataset with lance.query for others"


class QueryRequests(NamespaceCore):
    """QueryTable, ExplainTableQueryPlan, AnalyzeTableQueryPlan, GetTableStats."""

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
        query = model.query.model_copy(update={"id": model.id, "branch": model.branch or model.query.branch})
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
        "k": model.k,
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
