"""Idempotency keys of writes: the same for the same data in any run or try."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.template_args import parse_text

if TYPE_CHECKING:
    from airflow.sdk import Context
    from lance_namespace import LanceNamespace

    from airflow_provider_lancens.identifiers import TableId
    from airflow_provider_lancens.spark.lance_catalog import LanceCatalog
    from airflow_provider_lancens.spark.options import OnExistingKey, WriteIdentity
    from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable

_log = logging.getLogger(__name__)

ON_EXISTING_KEY_CONF = "lance_on_existing_key"
"""Key of a run's configuration."""


def write_key(given: Any, context: Context) -> str:
    """Return the rendered key that a task was given, or the default key if it was given none.

    Raises:
        AirflowFailException: it is empty text, or the task is mapped over something that doesn't identify
            its item.
    """
    if given is None:
        return default_key(context)
    if (key := parse_text(given)) is None:
        raise AirflowFailException(
            f"key={given!r}: expected text, or None for a key of the task and its interval or run"
        )
    return key


def default_key(context: Context, item: str | None = None) -> str:
    """Return the default key of a task instance: the same for all its tries, clears and reruns.

    Args:
        context: the task's context.
        item: what identifies the item of a mapped task; by default a digest of what it was given.

    Raises:
        AirflowFailException: the task is mapped over something that doesn't identify its item.
    """
    from airflow_provider_lancens.operators._spark.mapped_item import mapped_item

    instance = context["ti"]
    parts = [instance.dag_id, instance.task_id]
    if (item := item or mapped_item(context)) is not None:
        parts.append(f"[{item}]")
    start, end = context.get("data_interval_start"), context.get("data_interval_end")
    if start is None or end is None:
        return "/".join([*parts, str(context["run_id"])])
    return "/".join([*parts, start.isoformat(), end.isoformat()])


def former_task_ids(context: Context) -> list[str]:
    """Return the ids that a task in task groups had if it was moved into them, and that no other task has."""
    task_id: str = context["ti"].task_id
    parts = task_id.split(".")
    former = [".".join(parts[number:]) for number in range(1, len(parts))]
    task = context.get("task")
    dag = task.dag if former and task is not None else None
    return [] if dag is None else [task_id for task_id in former if not dag.has_task(task_id)]


def key_of_moved_task(key: str, context: Context, target: ResolvedTable) -> str:
    """Return a task's default key, or the key under which it wrote before it was moved into a task group.

    Args:
        key: the default key, which may continue after the task's own.
        context: the task's context.
        target: the table.
    """
    from airflow_provider_lancens.spark.keys import is_used

    former = former_task_ids(context)
    if not former or is_used(target, key):
        return key
    dag_id, own = context["ti"].dag_id, context["ti"].task_id
    for task_id in former:
        before = f"{dag_id}/{task_id}" + key.removeprefix(f"{dag_id}/{own}")
        if is_used(target, before) and not _is_taken(before, context, target):
            _log.info("Found key %r of this task before it was moved into a task group", before)
            return before
    return key


def _is_taken(key: str, context: Context, target: ResolvedTable) -> bool:
    """Return whether another task that was moved, into another group, has found the key and written under it.

    A task of the former id may have become several. If each wrote under its key, each would replace the rows
    of the one before.
    """
    from airflow_provider_lancens.spark.keys import look_up
    from airflow_provider_lancens.spark.options import WriteIdentity

    found = look_up(target, WriteIdentity(key, on_existing_key="write_again"), replaces_rows=False).repeated
    if found is None:
        return False
    dag_id, _, rest = found.execution_id.partition("/")  # see `execution_id_of`
    task_id = rest.partition("/")[0]
    instance, dag = context["ti"], context["task"].dag
    is_other = dag_id == instance.dag_id and task_id != instance.task_id
    return is_other and dag is not None and dag.has_task(task_id)


def write_key_in(
    namespace: NamespaceSpec | LanceNamespace, table: TableId, given: Any, context: Context
) -> str:
    """Return the key that a task was given, or the default key under which it commits to a table.

    Args:
        namespace: the namespace of the table.
        table: the table; it is only opened for a task that may have been moved into a task group.
        given: the rendered argument; None for the default key.
        context: the task's context.

    Raises:
        AirflowFailException: it is empty text, or the task is mapped over something that doesn't identify
            its item.
        TableNotFoundError: (4) the table isn't declared.
    """
    from airflow_provider_lancens.spark.table.resolved_table import resolved_table

    key = write_key(given, context)
    if given is not None or not former_task_ids(context):
        return key
    with resolved_table(namespace, table) as target:
        return key_of_moved_task(key, context, target)


def identity_in(
    lake: LanceCatalog, table: TableId, key: Any, on_existing_key: OnExistingKey, context: Context
) -> WriteIdentity:
    """Return what identifies a write of a task to a table, see `write_key_in`.

    Args:
        lake: the catalog of the table.
        table: the table.
        key: the rendered key; None for the default key.
        on_existing_key: the argument; the run's configuration wins over it.
        context: the task's context.

    Raises:
        AirflowFailException: the key or the configuration is invalid, or there is no such table.
    """
    from airflow_provider_lancens.spark.options import WriteIdentity

    policy = existing_key_policy(on_existing_key, context)
    with lake.attempt(f"looking up the key of this task in table {str(table)!r}"):
        found = write_key_in(lake.namespace, table, key, context)
    return WriteIdentity(found, on_existing_key=policy, execution_id=execution_id_of(context))


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
    """Return what all tries of an execution share, and no other: once cleared, or in a new run, it differs.

    A clear adds to `max_tries` what was tried before. A run that was deleted and is made again under the
    same id, as ``airflow dags test`` does, begins at another time; that time stays while its tasks are
    retried. Airflow's own id of a task instance differs in each try.
    """
    instance = context["ti"]
    started = getattr(context.get("dag_run"), "start_date", None)
    names = [instance.dag_id, instance.task_id, context["run_id"], instance.map_index, instance.max_tries]
    return "/".join(map(str, names if started is None else [*names, started.isoformat()]))


def is_first_try(context: Context) -> bool:
    """Return whether no earlier try of the same execution has run; false if that isn't known.

    `max_tries` is what was tried before the last clear, and the retries.
    """
    instance, task = context["ti"], context.get("task")
    retries, try_number = getattr(task, "retries", None), getattr(instance, "try_number", None)
    return None not in (retries, try_number) and try_number == instance.max_tries - (retries or 0) + 1
