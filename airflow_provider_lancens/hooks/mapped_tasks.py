"""What a mapped task, or its mapped task group, was given by ``expand`` or ``expand_kwargs``."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.sdk import Context


def map_index(context: Mapping[str, Any] | Context) -> int | None:
    """Return the index of a mapped task's item; None if the task isn't mapped."""
    index = getattr(context.get("ti"), "map_index", None)
    return index if isinstance(index, int) and index >= 0 else None


def expand_input(task: Any) -> Any:
    """Return what ``expand`` or ``expand_kwargs`` was called with, on the task or on its task group.

    Args:
        task: the task of a context.
    """
    declared = _declared(task)
    if hasattr(declared, "_get_specified_expand_input"):
        return declared._get_specified_expand_input()
    closest = getattr(declared, "get_closest_mapped_task_group", None)
    group = closest() if closest is not None else None
    return getattr(group, "_expand_input", None)


def arguments_of_item(task: Any, context: Context) -> Mapping[str, Any]:
    """Return the arguments of an operator that the item of the running task gives, before rendering.

    A task group's item isn't meant, whose values tasks take as templates; nor are the arguments of a
    function.

    Args:
        task: the task of a context.
        context: the running task's context; an item of another task's XCom is pulled again.
    """
    declared = _declared(task)
    if not hasattr(declared, "_get_specified_expand_input") or hasattr(declared, "op_kwargs_expand_input"):
        return {}
    given: Mapping[str, Any]
    given, _ = declared._get_specified_expand_input().resolve(context)
    return given


def items_of(found: Sequence[Any], get: Callable[[Sequence[Any], int], Any] = operator.getitem) -> list[Any]:
    """Return the items of a sequence that Airflow resolves when they are read.

    Args:
        found: the XComs of a mapped task, or what ``.map``, ``.zip`` or ``.concat`` return.
        get: returns the item at a position.
    """
    if type(found).__name__ == "LazyXComSequence":  # one request for all XComs of a mapped task
        return list(found[:])
    return [get(found, number) for number in range(len(found))]


def is_lazy(value: object) -> bool:
    """Return whether a value is such a sequence."""
    return isinstance(value, Sequence) and type(value).__module__.partition(".")[0] == "airflow"


def with_lists(value: Any) -> Any:
    """Return a value with a list instead of each such sequence in it, which no other process can read."""
    if is_lazy(value):
        value = items_of(value)
    if type(value) in (list, tuple):
        return type(value)(with_lists(element) for element in value)
    return {key: with_lists(element) for key, element in value.items()} if type(value) is dict else value


def _declared(task: Any) -> Any:
    # While a mapped task runs, its context has the operator for its item; the DAG has the mapped one.
    dag = getattr(task, "dag", None)
    return dag.get_task(task.task_id) if dag is not None and dag.has_task(task.task_id) else task
