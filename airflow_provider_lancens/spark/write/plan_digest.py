"""A digest of a DataFrame's plan, which differs if the rows differ, without computing them."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from typing import Any

_log = logging.getLogger(__name__)

_KNOWN_NODES = frozenset(
    {
        "Project",
        "Filter",
        "Join",
        "Aggregate",
        "Union",
        "Intersect",
        "Except",
        "Distinct",
        "Deduplicate",
        "Sort",
        "GlobalLimit",
        "LocalLimit",
        "Offset",
        "Tail",
        "Window",
        "Generate",
        "Expand",
        "Sample",
        "SubqueryAlias",
        "View",
        "ResolvedHint",
        "Repartition",
        "RepartitionByExpression",
        "RebalancePartitions",
        "OneRowRelation",
        "Range",
        "LocalRelation",
    }
)
"""Nodes of a plan whose text says all that they do, and local rows, which are added to it."""
_FILES = "org.apache.spark.sql.execution.datasources.HadoopFsRelation"
_SHORTENED, _SUBQUERY = " more fields", "subquery#"
_UNKNOWN = frozenset(
    {"PythonUDF", "PythonUDTF", "ScalarScalaUDF", "JavaUDF", "PythonDataSource", "NamedTable"}
)
"""Functions, tables and sources of Python in the plan of a Spark Connect client."""
_FORMATS = frozenset({"parquet", "orc", "csv", "json", "text", "avro"})
_PLAN_ID = "plan_id"


def plan_digest(frame: Any) -> str | None:
    """Return a digest of a DataFrame's plan, its local rows and the files that it reads.

    It is the same in any process, unless a literal of the plan differs, such as the time of the call.

    Args:
        frame: a DataFrame of a session in this process, or of Spark Connect.

    Returns:
        None if the plan doesn't say which rows it yields, as with functions in Python, RDDs, and tables and
        sources other than files.
    """
    try:
        parts = list(_remote_plan(frame) if hasattr(frame, "_plan") else _plan(frame))
    except _UnknownPlanError:
        return None
    except Exception as error:  # noqa: BLE001 - the plan's classes are Spark's own, and differ by version
        _log.debug("no digest of the plan: %s", error)
        return None
    text = "\n".join([frame.schema.json(), *parts, *sorted(frame.inputFiles())])
    return hashlib.sha256(text.encode()).hexdigest()


class _UnknownPlanError(Exception):
    """The plan doesn't say which rows it yields."""


def _plan(frame: Any) -> Iterator[str]:
    analyzed = frame._jdf.queryExecution().analyzed()
    patterns = frame.sparkSession._jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    if any(analyzed.containsPattern(pattern) for pattern in (patterns.PYTHON_UDF(), patterns.SCALA_UDF())):
        raise _UnknownPlanError
    text: str = analyzed.canonicalized().toString()
    if _SHORTENED in text or _SUBQUERY in text:
        raise _UnknownPlanError
    yield text
    nodes = [analyzed]
    while nodes:
        node = nodes.pop()
        name = node.nodeName()
        if name == "LocalRelation":
            yield node.data().mkString("\n")
        elif name == "LogicalRelation" and node.relation().getClass().getName() == _FILES:
            pass  # the paths of its files follow
        elif name not in _KNOWN_NODES:
            raise _UnknownPlanError
        children = node.children()
        nodes.extend(children.apply(number) for number in range(children.size()))


def _remote_plan(frame: Any) -> Iterator[str]:
    plan = frame._plan.to_proto(frame._session.client)
    _make_stable(plan)
    yield plan.SerializeToString(deterministic=True).hex()


def _make_stable(message: Any) -> None:
    """Remove the numbers of a plan's nodes, which differ between sessions.

    Raises:
        _UnknownPlanError: it has a function, or reads something else than files.
    """
    name = message.DESCRIPTOR.name
    if name in _UNKNOWN or (name == "DataSource" and message.format not in _FORMATS):
        raise _UnknownPlanError
    for field, value in message.ListFields():
        if field.name == _PLAN_ID:
            message.ClearField(field.name)
        elif field.message_type is not None:
            for nested in _messages(value):
                _make_stable(nested)


def _messages(value: Any) -> list[Any]:
    """Return the messages of a field: of one, a list or a map."""
    found = [value] if hasattr(value, "DESCRIPTOR") else value.values() if hasattr(value, "values") else value
    return [message for message in found if hasattr(message, "DESCRIPTOR")]
