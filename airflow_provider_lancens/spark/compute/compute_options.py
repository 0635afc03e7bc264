"""Arguments of a computed column. Plain data: loads quickly, since DAGs load it."""

from __future__ import annotations

DEFAULT_BATCH_ROWS = 1024


def check_sizes(batch_rows: object, commit_every: object, max_tasks: object) -> None:
    """Check the sizes of batches and steps.

    Raises:
        ValueError: one isn't a positive number; the message names it.
    """
    # Only where an operator is made: a module less for those that import one.
    from airflow_provider_lancens.spark.maintenance.maintenance_options import check_positive

    check_positive("batch_rows", batch_rows)
    for name, value in (("commit_every", commit_every), ("max_tasks", max_tasks)):
        if value is not None:
            check_positive(name, value)
