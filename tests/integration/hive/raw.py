"""The server as seen by other readers: through newer bindings, without our code."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from pymetastore.hive_metastore import ThriftHiveMetastore, ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

TIMEOUT_MILLISECONDS = 60_000


@contextmanager
def raw_client(uri: str) -> Iterator[Any]:
    address = urlsplit(uri)
    socket = TSocket(address.hostname, address.port)
    socket.setTimeout(TIMEOUT_MILLISECONDS)
    transport = TBufferedTransport(socket)
    transport.open()
    try:
        yield ThriftHiveMetastore.Client(TBinaryProtocol(transport))
    finally:
        transport.close()


def raw_table(uri: str, database: str, table: str, catalog: str | None = None) -> Any:
    """A catalog table with all its fields."""
    request = ttypes.GetTableRequest(dbName=database, tblName=table, catName=catalog)
    with raw_client(uri) as client:
        return client.get_table_req(request).table


def raw_database(uri: str, database: str) -> Any:
    with raw_client(uri) as client:
        return client.get_database(database)


def names_in(uri: str, database: str) -> list[str]:
    with raw_client(uri) as client:
        return sorted(client.get_all_tables(database))
