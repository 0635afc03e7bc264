"""Keeps the columns that a catalog table describes up to date, where the namespace can."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

_log = logging.getLogger(__name__)


def update_catalog_columns(target: ResolvedTable, schema: pa.Schema) -> None:
    """Describe the columns of a version that was just committed, which a failure doesn't undo.

    Args:
        target: the table; namespaces other than this package's have nothing to describe.
        schema: the columns.

    Raises:
        StaleTableError: (14) the table was dropped or declared again meanwhile, so that no reader finds the
            version by its name.
    """
    from airflow_provider_lancens.namespace.stale_table import StaleTableError

    describe = getattr(target.namespace, "update_catalog_columns", None)
    if describe is None:
        return
    try:
        describe(target.parts, schema, target.dataset.location)
    except (StaleTableError, spec_errors.TableNotFoundError) as error:
        raise StaleTableError(
            f"table {target.id} was dropped, renamed or declared again while it was written to: the version "
            f"that was committed at {target.dataset.location} isn't part of the table of this name; run it "
            "again"
        ) from error
    except spec_errors.LanceNamespaceError as error:
        _log.warning(
            "Table %s is committed, but its catalog table could not be updated with its columns, so "
            "DESCRIBE in other clients shows outdated columns or none: %s",
            target.id,
            error,
        )
