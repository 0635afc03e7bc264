"""What an ingesting task calls its write: the same for the same data, whichever run or try it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.hooks.arguments import parse_text

if TYPE_CHECKING:
    from airflow.sdk import Context


def idempotency_key(given: Any, context: Context) -> str:
    """The key that a task was given, as a template rendered it; where that is nothing, the default one."""
    return parse_text(given) or default_idempotency_key(context)


def default_idempotency_key(context: Context) -> str:
    """What a task instance writes, in words: the same for each of its tries, clears and reruns."""
    instance = context["ti"]
    parts = [instance.dag_id, instance.task_id]
    if instance.map_index is not None and instance.map_index >= 0:
        parts.append(f"[{instance.map_index}]")
    start, end = context.get("data_interval_start"), context.get("data_interval_end")
    if start is None or end is None:
        return "/".join([*parts, str(context["run_id"])])
    return "/".join([*parts, start.isoformat(), end.isoformat()])


def fingerprint_of(*parts: Mapping[str, Any]) -> str:
    """Words that differ where one of these values does; what has no words of its own counts by its type."""
    return json.dumps(parts, sort_keys=True, default=_words)


def _words(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if callable(value) or getattr(type(value), "__repr__", None) is object.__repr__:
        # Its words would be an address, which is another one in each process.
        return getattr(value, "__qualname__", type(value).__qualname__)
    return str(value)
