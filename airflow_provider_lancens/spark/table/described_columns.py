"""Keeps the columns that a catalog table describes up to date, where the namespace can."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

_log = logging.getLogger(__name__)


def describe_columns(target: ResolvedTable, schema: pa.Schema) -> None:
    """Describe the columns of a version that was just committed, which a failure doesn't undo.

    Args:
        target: the table; namespaces other than this package's have nothing to describe.
        schema: the columns.
    """
    describe = getattr(target.namespace, "describe_columns", None)
    if describe is None:
        return
    try:
        describe(target.parts, schema)
    except spec_errors.LanceNamespaceError as error:
        _log.warning(
            "Table %s is committed, but its catalog table could not be updated with its columns, so "
            "DESCRIBE in other clients shows outdated columns or none: %s",
            target.id,
            error,
        )
