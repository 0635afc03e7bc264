"""Recall of a vector index: the share of the true nearest neighbors that it finds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.system_columns import ROW_ID
from airflow_provider_lancens.spark.maintenance.index import metric_of
from airflow_provider_lancens.spark.maintenance.maintenance_options import METRICS
from airflow_provider_lancens.spark.maintenance.table_state import table_state
from airflow_provider_lancens.spark.options import check_positive
from airflow_provider_lancens.spark.storage_failures import storage_failures
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace import LanceNamespace


def measure_recall(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    column: str,
    *,
    queries: int = 100,
    k: int = 10,
    nprobes: int | None = None,
    refine_factor: int | None = None,
) -> float:
    """Return the share of the true nearest neighbors of random rows that the index of a column finds.

    Runs in this process: for each query it also searches the whole column. Without an index, the recall is 1.

    Args:
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.
        column: a column of vectors.
        queries: the number of rows whose neighbors are searched.
        k: the number of neighbors of each, the recall is that "at k".
        nprobes: the number of partitions that the index searches; by default Lance's.
        refine_factor: the index returns this many times `k` neighbors, which are then compared by their
            exact distances; by default none.

    Returns:
        From 0 to 1.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        TableVersionNotFoundError: (11) nothing was written to it yet.
        TableColumnNotFoundError: (12) there is no such column.
        InvalidInputError: (13) it has no vectors, or an argument is invalid.
        ServiceUnavailableError: (17) the storage or the metastore failed.
    """
    given = {"nprobes": nprobes, "refine_factor": refine_factor}
    search = {name: value for name, value in given.items() if value is not None}
    try:
        for name, value in {"queries": queries, "k": k, **search}.items():
            check_positive(name, value)
    except ValueError as error:
        raise spec_errors.InvalidInputError(str(error)) from error
    with table_state(namespace, table) as state:
        reference = state.target.dataset
        with storage_failures(reference.location, reference.storage_options):
            sample = _sample(state.table, state.dataset, column, queries)
            metric = _metric(state.dataset, column)
            searches = [{"column": column, "q": vector, "k": k, "metric": metric} for vector in sample]
            truth = [_found(state.dataset, {**query, "use_index": False}) for query in searches]
            found = [_found(state.dataset, {**query, **search}) for query in searches]
    hits = sum(len(true & indexed) for true, indexed in zip(truth, found, strict=True))
    return hits / sum(map(len, truth))


def _sample(table: str, dataset: LanceDataset, column: str, queries: int) -> list[Any]:
    if column not in dataset.schema.names:
        raise spec_errors.TableColumnNotFoundError(
            f"table {table}: column={column!r} does not exist; columns: {dataset.schema.names}"
        )
    if not pa.types.is_fixed_size_list(dataset.schema.field(column).type):
        kind = dataset.schema.field(column).type
        raise spec_errors.InvalidInputError(
            f"table {table}: column {column} is {kind}; recall requires vectors"
        )
    rows = dataset.sample(min(queries, dataset.count_rows()), columns=[column])
    vectors = [vector.values for vector in rows[column] if vector.is_valid]
    if not vectors:
        raise spec_errors.InvalidInputError(
            f"table {table}: column {column} has no vectors to search the neighbors of"
        )
    return vectors


def _metric(dataset: LanceDataset, column: str) -> str:
    """Return the metric of the column's vector index; without one, Lance's default."""
    on_column = [index for index in dataset.describe_indices() if index.field_names == [column]]
    return next((metric_of(index) for index in on_column if "metric_type" in index.details), METRICS[0])


def _found(dataset: LanceDataset, nearest: dict[str, Any]) -> set[int]:
    found = dataset.to_table(columns=["_distance"], nearest=nearest, with_row_id=True)
    return set(found[ROW_ID].to_pylist())
