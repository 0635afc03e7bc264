"""Entries as other writers make them, through the server's own interface and none of our code."""

from collections.abc import Callable, Mapping
from typing import Any

import boto3
from pymetastore.hive_metastore import ThriftHiveMetastore, ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from tests.conformance.conftest import Backend


def make_foreign_table(
    backend: Backend, db: list[str], name: str, parameters: Mapping[str, str] | None = None
) -> str:
    """A MANAGED table with these parameters and no sign of ours; answers its location."""
    location = f"{backend.properties['root']}/foreign/{db[-1]}/{name}"
    _MAKERS[backend.kind](backend, db, name, location, dict(parameters or {}))
    return location


def _in_hive(backend: Backend, db: list[str], name: str, location: str, parameters: dict[str, str]) -> None:
    host, port = backend.properties["uri"].removeprefix("thrift://").split(":")
    transport = TBufferedTransport(TSocket(host, int(port)))
    transport.open()
    client = ThriftHiveMetastore.Client(TBinaryProtocol(transport))
    descriptor = ttypes.StorageDescriptor(
        cols=[ttypes.FieldSchema("x", "int", "")],
        location=f"file:{location}",
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        serdeInfo=ttypes.SerDeInfo(
            name=name, serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={}
        ),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )
    catalog = db[0] if len(db) > 1 else None
    table = ttypes.Table(
        tableName=name,
        dbName=db[-1],
        catName=catalog,
        tableType="MANAGED_TABLE",
        sd=descriptor,
        partitionKeys=[],
        parameters=parameters,
    )
    client.create_table(table)
    transport.close()


def _in_glue(backend: Backend, db: list[str], name: str, location: str, parameters: dict[str, str]) -> None:
    client = boto3.client(
        "glue",
        endpoint_url=backend.properties["endpoint"],
        region_name=backend.properties["region"],
        aws_access_key_id=backend.properties["access_key_id"],
        aws_secret_access_key=backend.properties["secret_access_key"],
    )
    descriptor = {"Columns": [{"Name": "x", "Type": "int"}], "Location": f"file:{location}"}
    entry = {"Name": name, "TableType": "MANAGED", "StorageDescriptor": descriptor, "Parameters": parameters}
    client.create_table(DatabaseName=db[-1], TableInput=entry)


_MAKERS: dict[str, Callable[..., Any]] = {
    "Hive2Namespace": _in_hive,
    "Hive3Namespace": _in_hive,
    "GlueNamespace": _in_glue,
}
