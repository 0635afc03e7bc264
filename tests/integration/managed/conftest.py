"""A managed table on each kind of metastore and storage."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.managed.managed_table import ManagedTable
from tests.support.lakes import LAKES, Lake, bucket_of, glue_lake, hive, hive_lake

__all__ = ["hive"]


@pytest.fixture(params=[pytest.param(lake, marks=marks) for lake, marks in LAKES.items()])
def lake(request: pytest.FixtureRequest, database: str, tmp_path: Path) -> Lake:
    match request.param:
        case "hive":
            return hive_lake(request.getfixturevalue("metastore"), tmp_path)
        case "hive-4":
            return hive_lake(request.getfixturevalue("hms4"), tmp_path)
        case _:
            glue = request.getfixturevalue("glue")
            return glue_lake(glue, bucket_of(glue, database))


@pytest.fixture
def table(lake: Lake, database: str) -> Iterator[ManagedTable]:
    """A managed table at version 1, with the row 1."""
    declared = lake.declare(database)
    declared.append(1)
    yield declared
    drop = {"id": [database], "behavior": "cascade", "mode": "skip"}
    declared.namespace.drop_namespace(drop)
    declared.namespace.close()
