"""One language for conditions on rows, see docs/conditions.md: parsed completely, against a table's columns.

A condition is parsed on the driver, and rendered for Lance, Arrow and Spark from the same tree, so their own
parsers never get text that they would accept, ignore or interpret differently.
"""

from airflow_provider_lancens.conditions.condition import Condition, is_null, parse_condition
from airflow_provider_lancens.conditions.expressions import parse_expression

__all__ = ["Condition", "is_null", "parse_condition", "parse_expression"]
