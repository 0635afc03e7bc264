"""The namespace's default of `managed_by`, for writers that can't set the version authority."""

from typing import Any

import lance
import lancedb
import pyarrow as pa
import pytest
from lance_namespace.errors import ErrorCode

from tests.conformance.codes import refused_with
from tests.integration.managed.managed_table import ManagedTable
from tests.support.lakes import Lake

ROWS = pa.table({"row": [1, 2]})


@pytest.fixture
def namespace(lake: Lake, database: str) -> Any:
    """A namespace with managed tables by default, and a database."""
    made = lake.connect(managed_by="IMPL")
    made.create_namespace({"id": [database]})
    return made


def managed(lake: Lake, namespace: Any, database: str, name: str) -> ManagedTable:
    table = ManagedTable(namespace, (database, name), lake.storage_options)
    assert namespace.describe_table({"id": table.parts}).managed_versioning is True
    return table


def test_lancedb_creates_a_managed_table_directly(lake: Lake, namespace: Any, database: str) -> None:
    connection = lancedb.connect_namespace(lake.impl, {**lake.properties, "managed_by": "impl"})
    created = connection.create_table("t", ROWS, namespace_path=[database])
    created.add([{"row": 3}])
    table = managed(lake, namespace, database, "t")
    assert (created.version, table.version) == (2, 2)
    assert table.rows() == table.rows_by_path() == [1, 2, 3]
    connection.create_table("t", ROWS, mode="overwrite", namespace_path=[database])
    assert (table.version, table.rows()) == (3, [1, 2])
    assert namespace.compare_table(table.parts).verdict == "consistent"
    with pytest.raises(RuntimeError, match="already exists"):
        connection.create_table("t", ROWS, namespace_path=[database])


def test_pylance_creates_a_managed_table_directly(lake: Lake, namespace: Any, database: str) -> None:
    lance.write_dataset(ROWS, namespace_client=namespace, table_id=[database, "t"], mode="create")
    table = managed(lake, namespace, database, "t")
    assert (table.version, table.rows(), table.append(3)) == (1, [1, 2], 2)


def test_an_explicit_authority_wins_and_a_registration_takes_the_default(
    lake: Lake, namespace: Any, database: str
) -> None:
    declared = namespace.declare_table({"id": [database, "t"], "properties": {"managed_by": "storage"}})
    assert declared.managed_versioning is False
    lance.write_dataset(ROWS, declared.location, storage_options=dict(lake.storage_options))
    namespace.register_table({"id": [database, "again"], "location": declared.location})
    assert managed(lake, namespace, database, "again").version == 1


def test_another_default_is_refused(lake: Lake) -> None:
    with pytest.raises(ValueError, match=r"'managed_by' is invalid: expected one of impl, storage"):
        lake.connect(managed_by="hms")


@pytest.mark.slow
def test_an_unsupported_default_is_refused_when_a_table_is_created(
    request: pytest.FixtureRequest, database: str, tmp_path: Any
) -> None:
    server = request.getfixturevalue("hms3")
    namespace = Lake("Hive2Namespace", {"uri": server.uri, "root": str(tmp_path)}).connect(managed_by="impl")
    namespace.create_namespace({"id": [database]})
    with refused_with(ErrorCode.UNSUPPORTED, "HIVE-26882", "or managed_by=storage"):
        lance.write_dataset(ROWS, namespace_client=namespace, table_id=[database, "t"], mode="create")
    assert namespace.list_tables({"id": [database]}).tables == []
