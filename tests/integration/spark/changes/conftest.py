"""The tables of maintenance tests, and reads of changes."""

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_lancens.spark import read_changes
from tests.integration.spark.maintenance.conftest import Maintained, hive, on_glue, stored, table

__all__ = ["hive", "on_glue", "stored", "table"]

Changes = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def changes(table: Maintained) -> Changes:
    """Read changes as sorted tuples: the values, the type, and the version."""

    def read(after: int | None, version: int, **arguments: Any) -> list[tuple[Any, ...]]:
        frame = read_changes(
            table.spark, table.spec, table.id, after_version=after, version=version, **arguments
        )
        return sorted((tuple(row) for row in frame.collect()), key=repr)

    return read
