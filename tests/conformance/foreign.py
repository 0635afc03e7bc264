"""Catalog tables of other writers, created through the server's interface without our code."""

from collections.abc import Callable, Mapping
from typing import Any

import boto3
from pymetastore.hive_metastore import ThriftHiveMetastore, ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from tests.support.backends import Backend


def make_foreign_table(
    backend: Backend,
    db: list[str],
    name: str,
    parameters: Mapping[str, str] | None = None,
    location: str | None = None,
    kind: str = "MANAGED_TABLE",
) -> str:
    """Create a MANAGED table with these parameters and none of ours; return its path.

    Hive accepts any location for the type VIRTUAL_VIEW.
    """
    path = f"{backend.properties['root']}/foreign/{db[-1]}/{name}"
    location = location or f"file:{path}"
    _MAKERS[backend.kind](backend, db, name, location, dict(parameters or {}), kind)
    return path


def _in_hive(
    backend: Backend, db: list[str], name: str, location: str, parameters: dict[str, str], kind: str
) -> None:
    host, port = backend.properties["uri"].removeprefix("thrift://").split(":")
    transport = TBufferedTransport(TSocket(host, int(port)))
    transport.open()
    client = ThriftHiveMetastore.Client(TBinaryProtocol(transport))
    descriptor = ttypes.StorageDescriptor(
        cols=[ttypes.FieldSchema("x", "int", "")],
        location=location,
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
        tableType=kind,
        sd=descriptor,
        partitionKeys=[],
        parameters=parameters,
    )
    client.create_table(table)
    transport.close()


def _in_glue(
    backend: Backend, db: list[str], name: str, location: str, parameters: dict[str, str], kind: str
) -> None:
    client = boto3.client(
        "glue",
        endpoint_url=backend.properties["endpoint"],
        region_name=backend.properties["region"],
        aws_access_key_id=backend.properties["access_key_id"],
        aws_secret_access_key=backend.properties["secret_access_key"],
    )
    descriptor = {"Columns": [{"Name": "x", "Type": "int"}], "Location": location}
    catalog_table = {
        "Name": name,
        "TableType": kind.removesuffix("_TABLE"),
        "StorageDescriptor": descriptor,
        "Parameters": parameters,
    }
    client.create_table(DatabaseName=db[-1], TableInput=catalog_table)


_MAKERS: dict[str, Callable[..., Any]] = {
    "Hive2Namespace": _in_hive,
    "Hive3Namespace": _in_hive,
    "GlueNamespace": _in_glue,
}
