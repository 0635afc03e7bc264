"""Details of one table: its newest version, its schema, the maintenance due, and a sample of its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.configuration import conf
from lance_namespace.errors import InvalidInputError, PermissionDeniedError

from airflow_provider_lancens.doctor.checks import check_table
from airflow_provider_lancens.doctor.findings import run
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.redaction import redact
from airflow_provider_lancens.spark.freshness import expected_age, freshness
from airflow_provider_lancens.spark.table.resolved_table import resolved_table

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset

    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

SAMPLE_SECTION, SAMPLE_OPTION = "lancens", "show_sample_rows"
_SAMPLE_ROWS = 10
_LONGEST_VALUE = 120
_ITEMS = 6
"""How many items of a list are shown, such as of a vector."""


def describe(hook: LanceHook, table: str) -> dict[str, Any]:
    """Return a table's location, version authority, newest version and schema.

    Returns:
        ``version`` is 0 and ``fields`` empty if nothing was written yet; ``freshness`` is None unless a
        property of the table says how often it gets new data.
    """
    with resolved_table(hook.get_reader(), table) as target:
        newest = target.open_latest()
        return {
            "location": redact(target.dataset.location),
            "managed": target.dataset.version_authority is not None,
            "version": 0 if newest is None else newest.version,
            "fields": [] if newest is None else _fields(newest.schema),
            "freshness": _freshness(target, newest),
            "sample": sample_is_allowed(),
        }


def check(hook: LanceHook, table: str) -> dict[str, Any]:
    """Return the doctor's findings of a table, and its indices with what they cover."""
    identifier = TableId.parse(table)
    findings = run(f"table {identifier}", lambda: check_table(hook, identifier))
    return {"findings": [finding.as_dict() for finding in findings], "indices": _indices(hook, table)}


def sample_is_allowed() -> bool:
    """Return whether an administrator lets the page show rows."""
    return bool(conf.getboolean(SAMPLE_SECTION, SAMPLE_OPTION, fallback=False))


def sample(hook: LanceHook, table: str) -> dict[str, Any]:
    """Return some rows of a table's newest version as text, without its binary columns.

    Raises:
        PermissionDeniedError: (15) the administrator doesn't allow it.
    """
    if not sample_is_allowed():
        raise PermissionDeniedError(
            f"rows are not shown: the option {SAMPLE_OPTION} in section [{SAMPLE_SECTION}] is not True"
        )
    with resolved_table(hook.get_reader(), table) as target:
        dataset = target.open_latest()
        if dataset is None:
            return {"version": 0, "columns": [], "rows": []}
        columns = [field.name for field in dataset.schema if not _is_binary(field.type)]
        read = dataset.scanner(columns=columns, limit=_SAMPLE_ROWS, batch_size=_SAMPLE_ROWS).to_table()
    rows = [[_text(value) for value in row.values()] for row in read.to_pylist()]
    return {"version": dataset.version, "columns": columns, "rows": rows}


def _fields(schema: pa.Schema) -> list[dict[str, Any]]:
    return [{"name": field.name, "type": str(field.type), "nullable": field.nullable} for field in schema]


def _freshness(target: ResolvedTable, newest: LanceDataset | None) -> dict[str, Any] | None:
    """Return the age of the newest data if the table has a maximum; the doctor reports an invalid maximum."""
    try:
        expected = expected_age(target.expected_update)
    except InvalidInputError:
        return None
    if expected is None:
        return None
    found = freshness(target.id, newest, expected)
    return {"updated": found.updated_at, "late": found.is_late, "text": found.reason}


def _indices(hook: LanceHook, table: str) -> list[dict[str, Any]]:
    with resolved_table(hook.get_reader(), table) as target:
        dataset = target.open_latest()
        if dataset is None:
            return []
        rows = dataset.count_rows()
        return [_index(found, rows) for found in dataset.describe_indices()]


def _index(found: Any, rows: int) -> dict[str, Any]:
    return {
        "name": found.name,
        "columns": list(found.field_names),
        "type": found.index_type,
        "indexed": min(found.num_rows_indexed, rows),
        "rows": rows,
        "segments": len(found.segments),
        "bytes": found.total_size_bytes or 0,
    }


def _is_binary(arrow_type: pa.DataType) -> bool:
    import pyarrow as pa

    is_nested = pa.types.is_nested(arrow_type)
    if is_nested and any(_is_binary(arrow_type.field(i).type) for i in range(arrow_type.num_fields)):
        return True
    return bool(
        pa.types.is_binary(arrow_type)
        or pa.types.is_large_binary(arrow_type)
        or pa.types.is_fixed_size_binary(arrow_type)
    )


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, list):
        shown = ", ".join(str(_text(item)) for item in value[:_ITEMS])
        return f"[{shown}]" if len(value) <= _ITEMS else f"[{shown}, …] ({len(value)} values)"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
