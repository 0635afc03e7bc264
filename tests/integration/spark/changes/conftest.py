"""The tables of maintenance tests, and reads of changes."""

from typing import Any

import pytest

from tests.support.changed_tables import Changes
from tests.support.maintained_tables import Maintained, hive, on_glue, stored, table
from tests.support.reads import read_changes

__all__ = ["hive", "on_glue", "stored", "table"]


@pytest.fixture
def changes(table: Maintained) -> Changes:
    """Read changes as sorted tuples: the values, the type, and the version."""

    def read(after: int | None, version: int, **arguments: Any) -> list[tuple[Any, ...]]:
        frame = read_changes(
            table.spark, table.spec, table.id, after_version=after, version=version, **arguments
        )
        return sorted((tuple(row) for row in frame.collect()), key=repr)

    return read
