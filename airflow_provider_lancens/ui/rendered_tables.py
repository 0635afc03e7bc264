"""Tables in the rendered template fields of task instances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_lancens.identifiers import InvalidIdentifierError, TableId


def named_tables(fields: Mapping[str, Any]) -> list[str]:
    """Return the valid identifiers in the field ``table``, which is one or a list.

    Args:
        fields: rendered template fields by name.
    """
    named = fields.get("table")
    return [table for one in (named if isinstance(named, list) else [named]) if (table := _normal(one))]


def _normal(table: Any) -> str:
    try:
        return str(TableId.parse(table))
    except InvalidIdentifierError:
        return ""
