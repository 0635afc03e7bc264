"""Check on executors that all rows of a write match a condition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa


def matching(
    batches: Iterable[pa.RecordBatch], condition: str, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the batches, each after all of its rows were found to match.

    Args:
        batches: the rows, with these columns.
        condition: see `sql_predicate`.
        schema: the columns.

    Raises:
        InvalidInputError: (13) a row doesn't match; a row for which the condition is null doesn't either.
    """
    from airflow_provider_lancens.spark.write.files.sql_predicate import parse_predicate

    predicate = parse_predicate(condition, schema)
    fails = ~(predicate.expression & predicate.expression.is_valid())
    for batch in batches:
        others = pa.Table.from_batches([batch.select(sorted(predicate.columns))]).filter(fails)
        if others.num_rows:
            _refuse(condition, others.slice(0, 1).to_pylist()[0], others.num_rows)
        yield batch


def _refuse(condition: str, example: dict[str, object], count: int) -> None:
    from lance_namespace.errors import InvalidInputError  # takes a second: only where it is raised

    raise InvalidInputError(
        f"replace_where: rows that don't match {condition!r}, such as {example} ({count} in one batch); "
        "filter the rows, or change the condition; nothing was committed"
    )
