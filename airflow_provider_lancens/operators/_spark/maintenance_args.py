"""Arguments of the maintenance operators: checked as a DAG is parsed, and thresholds again once rendered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.template_args import check_mapping, is_template, parse_number
from airflow_provider_lancens.spark.maintenance import maintenance_options
from airflow_provider_lancens.spark.maintenance.maintenance_options import CompactionOptions, IndexSpec

if TYPE_CHECKING:
    from airflow_provider_lancens.operators.lance_operator import LanceOperator
    from airflow_provider_lancens.spark.maintenance.maintenance_options import Thresholds

_INDEX_FIELDS = ("column", "index_type", "name", "options")
"""The fields of `IndexSpec`, which are also arguments of `LanceCreateIndexOperator`."""


def check_thresholds(**given: Any) -> None:
    """Check the thresholds that are not templates.

    Raises:
        ValueError: one is out of its range; the message names it.
    """
    maintenance_options.check_thresholds(
        {name: value for name, value in given.items() if not is_template(value)}
    )


def parse_thresholds(operator: LanceOperator, *names: str) -> Thresholds:
    """Parse the rendered thresholds of an operator, by the names of its attributes.

    Raises:
        AirflowFailException: one is out of its range; the message names it.
    """
    from airflow_provider_lancens.spark.maintenance.maintenance_options import Thresholds

    try:
        return Thresholds(**{name: parse_number(getattr(operator, name)) for name in names})
    except ValueError as error:
        raise AirflowFailException(str(error)) from error


def compaction_options(argument: str, options: Mapping[str, Any]) -> CompactionOptions:
    """Make the options of a compaction from an operator's mapping.

    Raises:
        ValueError: there is no such option, or its value is out of range; the message names both.
    """
    try:
        return CompactionOptions(**options)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{argument}: {error}") from error


def index_specs(argument: str, indices: Any) -> tuple[IndexSpec, ...]:
    """Make the specifications of indices from an operator's list of mappings.

    Raises:
        TypeError: it is not a list of mappings.
        ValueError: a mapping lacks a field, or has an unknown or invalid field; the message names it.
    """
    if isinstance(indices, str | Mapping) or not isinstance(indices, Iterable):
        raise TypeError(f"{argument}: is of type {type(indices).__name__}; expected a list of mappings")
    return tuple(_index_spec(f"{argument}[{n}]", index) for n, index in enumerate(indices))


def _index_spec(argument: str, index: Any) -> IndexSpec:
    given = check_mapping(argument, index)
    if missing := [name for name in ("column", "index_type") if not isinstance(given.get(name), str)]:
        raise ValueError(f"{argument}: requires {missing[0]!r}, which is text")
    if unknown := [name for name in given if name not in _INDEX_FIELDS]:
        raise ValueError(f"{argument}: has {unknown[0]!r}; expected {', '.join(_INDEX_FIELDS)}")
    options = check_mapping(f"{argument}['options']", given.get("options"))
    try:
        return IndexSpec(**{**given, "name": given.get("name") or "", "options": options})
    except ValueError as error:
        raise ValueError(f"{argument}: {error}") from error
