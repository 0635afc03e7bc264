"""Servers that don't check the condition of an alter are always refused."""

from pathlib import Path

import pytest
from lance_namespace.errors import ErrorCode

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace import Hive2Namespace
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable
from tests.conformance.codes import refused_with
from tests.integration.hive.raw import names_in, raw_table
from tests.integration.managed.managed_table import ManagedTable
from tests.servers.proxy import Proxy
from tests.support.lakes import Lake, hive_lake

pytestmark = pytest.mark.thorough
TIMES = 100


def copy_of(table: ManagedTable, server: MetastoreServer, root: Path) -> ManagedTable:
    """Create the same catalog table on another server, where our namespace would refuse it."""
    namespace = Hive2Namespace(uri=server.uri, root=str(root))
    namespace.create_namespace({"id": [table.id[0]]})
    identifier = TableId.of(table.parts)
    catalog_table = table.namespace._metastore.get_table(identifier)
    namespace._metastore.create_table(
        CatalogTable(identifier, catalog_table.location, dict(catalog_table.parameters))
    )
    return table.through(namespace)


@pytest.fixture
def unable(hive: Lake, database: str, hms3: MetastoreServer, tmp_path: Path) -> ManagedTable:
    """A managed table at version 1 on a server that ignores conditions."""
    table = hive.declare(database)
    table.append(1)
    return copy_of(table, hms3, tmp_path)


def test_commits_without_compare_and_set_are_refused_and_nothing_is_written(
    unable: ManagedTable, hms3: MetastoreServer
) -> None:
    request = unable.stage(2)
    unable.append_directly(20)
    files, catalog_table = unable.files(""), raw_table(hms3.uri, *unable.id)
    for _ in range(TIMES):
        with refused_with(ErrorCode.UNSUPPORTED, "HIVE-26882", "managed_by=storage"):
            unable.commit(request)
        with refused_with(ErrorCode.UNSUPPORTED, "HIVE-26882"):
            unable.namespace.advance_table_version(unable.parts, expected=1, new=2)
    assert unable.files("") == files
    assert raw_table(hms3.uri, *unable.id) == catalog_table
    assert names_in(hms3.uri, unable.id[0]) == ["t"]


def test_managed_tables_are_readable_without_compare_and_set(unable: ManagedTable) -> None:
    assert unable.namespace.describe_table({"id": unable.parts}).managed_versioning is True
    assert (unable.version, unable.rows()) == (1, [1])


def test_a_failover_server_is_probed_itself(hive: Lake, unable: ManagedTable, hms3: MetastoreServer) -> None:
    """The probed server has stopped; the one that replaces it would lose commits."""
    proven = Proxy(hive.properties["uri"])
    with hive_lake(hms3, Path(unable.location).parent).connect(uri=f"{proven.uri},{hms3.uri}") as namespace:
        table = unable.through(namespace)
        with proven:
            request = table.stage(2)
            namespace._metastore.require_compare_and_set(TableId.of(table.parts).namespace)
        namespace.close()
        catalog_table = raw_table(hms3.uri, *table.id)
        with refused_with(ErrorCode.UNSUPPORTED, "HIVE-26882", hms3.uri.removeprefix("thrift://")):
            table.commit(request)
        assert raw_table(hms3.uri, *table.id) == catalog_table
        assert table.recorded == []
