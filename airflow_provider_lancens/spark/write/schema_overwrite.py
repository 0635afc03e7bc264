"""Changes of columns and indices by an overwrite: refused unless requested, and logged."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.lance_errors import LANCE_ERRORS

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset

    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

_log = logging.getLogger(__name__)


def overwrite_mismatch(
    table: str, rows: pa.Schema, base: LanceDataset
) -> spec_errors.TableSchemaValidationError:
    """Return the error for an overwrite whose rows don't fit the existing columns.

    Args:
        table: the table's identifier, for the message.
        rows: the schema of the rows as Arrow.
        base: the current dataset.

    Returns:
        An error that names the columns that would be dropped, added or changed, and the indices that would
        be dropped.
    """
    indices = _index_names(base)
    lost = f"; it would drop the indices {', '.join(indices)}" if indices else ""
    changes = schema_changes(base.schema, rows)
    return spec_errors.TableSchemaValidationError(
        f"table {table}: mode 'overwrite' would change its columns: {changes}{lost}. Select, cast or rename "
        "the columns of the rows, or pass schema_mode='overwrite' to replace those of the table, or "
        "schema_mode='merge' to keep both"
    )


def report_overwrite(target: ResolvedTable, version: int) -> None:
    """Log which columns and indices of the previous version a committed overwrite changed or dropped.

    Lance drops all indices of a dataset that is overwritten, even if its columns stay.

    Args:
        target: the table.
        version: the version that the overwrite made.
    """
    if version == 1:
        return
    try:
        before, after = target.open(version - 1), target.open(version)
    except (*LANCE_ERRORS, spec_errors.LanceNamespaceError) as error:
        # It is committed, so logging must not fail it: the previous version may have been cleaned up.
        _log.warning(
            "table %s: cannot determine which columns version %d changed: %s", target.id, version, error
        )
        return
    if changes := schema_changes(before.schema, after.schema):
        _log.info("table %s: version %d changed the columns: %s", target.id, version, changes)
    if indices := _index_names(before):
        names = ", ".join(indices)
        _log.warning(
            "table %s: version %d dropped the indices %s with the rows they covered; create them again",
            target.id,
            version,
            names,
        )


def schema_changes(before: pa.Schema, after: pa.Schema) -> str:
    """Return the differences between two schemas, ignoring the order of columns; empty if there are none."""
    old = dict(zip(before.names, before.types, strict=True))
    new = dict(zip(after.names, after.types, strict=True))
    dropped = [name for name in old if name not in new]
    added = [f"{name} ({new[name]})" for name in new if name not in old]
    changed = [f"{n} from {old[n]} to {new[n]}" for n in old if n in new and old[n] != new[n]]
    parts = {"drops": dropped, "adds": added, "changes": changed}
    return "; ".join(f"{verb} {', '.join(names)}" for verb, names in parts.items() if names)


def _index_names(dataset: LanceDataset) -> list[str]:
    return [f"{index.name} ({', '.join(index.field_names)})" for index in dataset.describe_indices()]
