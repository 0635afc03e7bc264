"""Check on executors that all rows of a write match a condition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from airflow_provider_lancens.conditions import Condition


def matching(batches: Iterable[pa.RecordBatch], condition: Condition) -> Iterator[pa.RecordBatch]:
    """Yield the batches, each after all of its rows were found to match.

    Args:
        batches: the rows.
        condition: the condition on them.

    Raises:
        InvalidInputError: (13) a row doesn't match; a row for which the condition is null doesn't either.
    """
    for batch in batches:
        others = batch.filter(pc.invert(pc.fill_null(condition.mask(batch), False)))
        if others.num_rows:
            _refuse(condition, others.select(sorted(condition.columns)), others.num_rows)
        yield batch


def _refuse(condition: Condition, others: pa.RecordBatch, count: int) -> None:
    from lance_namespace.errors import InvalidInputError  # takes a second: only where it is raised

    example = others.slice(0, 1).to_pylist()[0]
    raise InvalidInputError(
        f"replace_where: rows that don't match {condition.text!r}, such as {example} ({count} in one batch); "
        "filter the rows, or change the condition; nothing was committed"
    )
