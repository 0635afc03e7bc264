"""Direct calls to a metastore without the code under test, always with a timeout."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from hmsclient import HMSClient
from hmsclient.genthrift.hive_metastore.ttypes import (
    Database,
    EnvironmentContext,
    GetTableRequest,
    MetaException,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

TIMEOUT_MILLISECONDS = 30_000


@contextmanager
def connected(uri: str) -> Iterator[HMSClient]:
    address = urlsplit(uri)
    socket = TSocket(address.hostname, address.port)
    socket.setTimeout(TIMEOUT_MILLISECONDS)
    with HMSClient(iprot=TBinaryProtocol(TBufferedTransport(socket))) as client:
        yield client


def list_databases(uri: str) -> list[str]:
    with connected(uri) as client:
        return list(client.get_all_databases())


def create_database(uri: str, name: str, location: Path | None = None) -> None:
    with connected(uri) as client:
        client.create_database(Database(name=name, locationUri=location and f"file:{location}"))


def create_table(uri: str, database: str, table: str, location: Path, **parameters: str) -> None:
    storage = StorageDescriptor(
        cols=[], location=f"file:{location}", serdeInfo=SerDeInfo(parameters={}), parameters={}
    )
    catalog_table = Table(
        dbName=database,
        tableName=table,
        tableType="EXTERNAL_TABLE",
        sd=storage,
        partitionKeys=[],
        parameters={"EXTERNAL": "TRUE", **parameters},
    )
    with connected(uri) as client:
        client.create_table(catalog_table)


def compare_and_set(uri: str, database: str, table: str, key: str, expected: str, value: str) -> bool:
    """Set a parameter if it has the expected value; return False if the server refuses."""
    condition = {"expected_parameter_key": key, "expected_parameter_value": expected}
    with connected(uri) as client:
        catalog_table = client.get_table_req(GetTableRequest(dbName=database, tblName=table)).table
        catalog_table.parameters[key] = value
        try:
            client.alter_table_with_environment_context(
                database, table, catalog_table, EnvironmentContext(properties=condition)
            )
        except MetaException as refusal:
            if not refusal.message.startswith("The table has been modified"):
                raise
            return False
    return True
