"""Commits by pylance and LanceDB through the namespace: metastore and storage agree."""

from collections.abc import Callable

import lance
import lancedb
import pytest

from tests.integration.managed.managed_table import ManagedTable
from tests.support.lakes import NEW, Lake

OPERATIONS: dict[str, Callable[[lance.LanceDataset], object]] = {
    "insert": lambda data: data.insert(NEW),
    "delete": lambda data: data.delete("row = 1"),
    "update": lambda data: data.update({"row": "row + 10"}),
    "merge": lambda data: data.merge_insert("row").when_not_matched_insert_all().execute(NEW),
    "compact": lambda data: data.optimize.compact_files(),
    "index": lambda data: data.create_scalar_index("row", "BTREE"),
    "add columns": lambda data: data.add_columns({"twice": "row * 2"}),
    "restore": lambda data: data.checkout_version(1).restore(),
}


@pytest.fixture
def written(hive: Lake, database: str) -> ManagedTable:
    """A managed table at version 2, in two fragments."""
    table = hive.declare(database)
    table.append(1)
    table.append(2)
    return table


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_pylance_commits_through_the_namespace(
    written: ManagedTable, operation: Callable[[lance.LanceDataset], object]
) -> None:
    operation(written.open())
    assert written.version is not None
    assert written.version > 2
    assert written.namespace.compare_table(written.parts).verdict == "consistent"
    assert written.rows() == written.rows_by_path()


def test_lancedb_commits_through_the_namespace(hive: Lake, written: ManagedTable) -> None:
    database, name = written.id
    opened = lancedb.connect_namespace(hive.impl, dict(hive.properties)).open_table(
        name, namespace_path=[database]
    )
    opened.add([{"row": 3}])
    opened.delete("row = 1")
    assert (opened.version, written.version) == (4, 4)
    assert written.namespace.compare_table(written.parts).verdict == "consistent"
    assert written.rows() == written.rows_by_path() == [2, 3]
