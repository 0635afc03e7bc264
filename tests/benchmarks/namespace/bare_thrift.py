"""A bare Thrift client for comparison: accelerated, one open connection, no namespace."""

from typing import Any
from urllib.parse import urlsplit

from hmsclient.genthrift.hive_metastore import ThriftHiveMetastore, ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

TIMEOUT_MILLISECONDS = 600_000
LANCE_FILTER = 'hive_filter_field_params__table_type = "lance"'


def bare_client(uri: str) -> Any:
    address = urlsplit(uri)
    socket = TSocket(address.hostname, address.port)
    socket.setTimeout(TIMEOUT_MILLISECONDS)
    transport = TBufferedTransport(socket)
    transport.open()
    return ThriftHiveMetastore.Client(TBinaryProtocolAccelerated(transport))


def describe(client: Any, db: str, table: str) -> Any:
    return client.get_table_req(ttypes.GetTableRequest(dbName=db, tblName=table)).table


def new_table(db: str, table: str, location: str, **parameters: str) -> Any:
    """A catalog table with the same fields as ours."""
    return ttypes.Table(
        dbName=db,
        tableName=table,
        tableType="EXTERNAL_TABLE",
        sd=ttypes.StorageDescriptor(
            cols=[],
            location=location,
            inputFormat="org.lance.mapred.LanceInputFormat",
            outputFormat="org.lance.mapred.LanceOutputFormat",
            serdeInfo=ttypes.SerDeInfo(name=table, parameters={}),
            bucketCols=[],
            sortCols=[],
            parameters={},
        ),
        partitionKeys=[],
        parameters={"EXTERNAL": "TRUE", **parameters},
    )


def declare(client: Any, db: str, table: str, location: str) -> None:
    context = ttypes.EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"})
    parameters = {"table_type": "lance", "managed_by": "storage"}
    client.create_table_with_environment_context(new_table(db, table, location, **parameters), context)
