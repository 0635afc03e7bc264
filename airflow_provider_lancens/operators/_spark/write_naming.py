"""Idempotency keys and fingerprints of writes: the same for the same data in any run or try."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.template_args import parse_text

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_lancens.spark.options import OnExistingKey


ON_EXISTING_KEY_CONF = "lance_on_existing_key"
"""Key of a run's configuration."""


def idempotency_key(given: Any, context: Context) -> str:
    """Return the rendered key that a task was given, or the default key if it is empty."""
    return parse_text(given) or default_idempotency_key(context)


def default_idempotency_key(context: Context) -> str:
    """Return the default key of a task instance: the same for all its tries, clears and reruns."""
    instance = context["ti"]
    parts = [instance.dag_id, instance.task_id]
    if instance.map_index is not None and instance.map_index >= 0:
        parts.append(f"[{instance.map_index}]")
    start, end = context.get("data_interval_start"), context.get("data_interval_end")
    if start is None or end is None:
        return "/".join([*parts, str(context["run_id"])])
    return "/".join([*parts, start.isoformat(), end.isoformat()])


def existing_key_policy(given: OnExistingKey, context: Context) -> OnExistingKey:
    """Return what to do if the key was committed before: the run's configuration wins over the argument.

    Raises:
        AirflowFailException: the configuration has something else than one of the choices.
    """
    from airflow_provider_lancens.spark.options import ON_EXISTING_KEY

    conf = getattr(context.get("dag_run"), "conf", None) or {}
    override = conf.get(ON_EXISTING_KEY_CONF)
    if isinstance(override, Mapping):
        override = override.get(context["ti"].task_id)
    if override is None:
        return given
    if override not in ON_EXISTING_KEY:
        raise AirflowFailException(
            f"{ON_EXISTING_KEY_CONF} in the run's configuration: expected one of "
            f"{', '.join(ON_EXISTING_KEY)}, or a mapping of task ids to them, got {override!r}"
        )
    return cast("OnExistingKey", override)


def execution_id_of(context: Context) -> str:
    """Return an id of a repetition: the same for all its retries, another one once the task is cleared."""
    instance = context["ti"]
    names = (instance.dag_id, instance.task_id, context["run_id"], instance.map_index, instance.max_tries)
    return "/".join(map(str, names))


def fingerprint_of(*parts: Mapping[str, Any]) -> str:
    """Return text that differs if any value differs; values without a repr are named by their type."""
    return json.dumps(parts, sort_keys=True, default=_plain_value)


def conditions(replace_where: str | None) -> list[dict[str, str]]:
    """Return the part of a fingerprint that a condition adds, so that others keep theirs."""
    return [] if replace_where is None else [{"replace_where": replace_where}]


def _plain_value(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if callable(value) or getattr(type(value), "__repr__", None) is object.__repr__:
        # Its text would contain an address, which differs between processes.
        return getattr(value, "__qualname__", type(value).__qualname__)
    return str(value)
