"""The calls to the metastore and requests to the storage of a commit without conflicts."""

from tests.counted_requests import counted_requests
from tests.integration.managed.managed_table import ManagedTable
from tests.servers.glue_double import GlueDouble
from tests.servers.proxy import Proxy
from tests.support.lakes import Lake, bucket_of, glue_lake

READ, ALTER = "get_table_req", "alter_table_with_environment_context"
PER_APPEND = [READ, READ, READ, ALTER]
"""DescribeTable, ListTableVersions, and the two of CreateTableVersion."""


def test_an_append_makes_four_calls_to_hives_metastore(hive: Lake, database: str) -> None:
    with Proxy(hive.properties["uri"]) as proxy:
        table = Lake(hive.kind, {**hive.properties, "uri": proxy.uri}).declare(database)
        table.append(1)
        for row in (2, 3):
            before = len(proxy.calls)
            table.append(row)
            assert proxy.calls[before:] == PER_APPEND
        assert proxy.connections == 1
        before = len(proxy.calls)
        assert table.open().version == 3
        assert proxy.calls[before:] == [READ, READ]
        table.namespace.close()


def test_an_append_makes_four_calls_to_glue(glue: GlueDouble, database: str) -> None:
    table = glue_lake(glue, bucket_of(glue, database)).declare(database)
    table.append(1)
    before = len(glue.requests)
    table.append(2)
    made = [request.operation for request in glue.requests[before:]]
    assert made == ["GetTable", "GetTable", "GetTable", "UpdateTable"]


def test_a_drop_reads_the_tables_of_glue_once(glue: GlueDouble, database: str) -> None:
    lake = glue_lake(glue, bucket_of(glue, database))
    table = lake.declare(database)
    table.append(1)
    table.namespace.declare_table({"id": [database, "other"]})
    before = len(glue.requests)
    table.namespace.drop_table({"id": table.parts})
    read = [one.body["DatabaseName"] for one in glue.requests[before:] if one.operation == "GetTables"]
    assert read.count(database) == 1


def test_a_drop_reads_the_tables_of_hives_metastore_once(hive: Lake, database: str) -> None:
    with Proxy(hive.properties["uri"]) as proxy:
        table = Lake(hive.kind, {**hive.properties, "uri": proxy.uri}).declare(database)
        table.append(1)
        table.namespace.declare_table({"id": [database, "other"]})
        before = len(proxy.calls)
        table.namespace.drop_table({"id": table.parts})
        listings = [one for one in proxy.calls[before:] if one.startswith("get_table_names")]
        table.namespace.close()
    assert listings == []


def test_a_commit_makes_seven_requests_to_the_storage(glue: GlueDouble, database: str) -> None:
    """Two lookups of versions, then read staged, record, publish, raise the high-water mark, remove."""
    table = glue_lake(glue, bucket_of(glue, database)).declare(database)
    table.append(1)
    request = table.stage(2)
    with counted_requests() as seen:
        table.commit(request)
    assert seen == {"head": 2, "get": 1, "put": 3, "delete": 1}


def test_reading_the_newest_version_makes_two_requests_to_the_storage(hive: Lake, database: str) -> None:
    table = hive.declare(database)
    table.append(1)
    with counted_requests() as seen:
        newest(table)
    assert seen == {"head": 2}


def test_a_description_makes_no_request_to_the_storage(hive: Lake, database: str) -> None:
    table = hive.declare(database)
    table.append(1)
    with counted_requests() as seen:
        assert table.version == 1
    assert not seen


def newest(table: ManagedTable) -> None:
    table.namespace.list_table_versions({"id": table.parts, "descending": True, "limit": 1})
