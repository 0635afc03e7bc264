"""Replies with many tables, of which polls decode only what they need."""

import gc
from typing import Any

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol, TBinaryProtocolAccelerated
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport.TTransport import TMemoryBuffer

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.hive import converters
from airflow_provider_lancens.namespace.hive.converters import Hive2Dialect, Hive3Dialect
from airflow_provider_lancens.namespace.hive.reduced_reads import reduced_service
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable

CALL = "get_table_objects_by_name_req"
dialects = pytest.mark.parametrize("dialect", [Hive2Dialect(), Hive3Dialect()], ids=["hive2", "hive3"])
protocols = pytest.mark.parametrize("protocol", [TBinaryProtocolAccelerated, TBinaryProtocol])


def reply_of(dialect: Any, kind: int = TMessageType.REPLY, content: Any = None, **fields: Any) -> bytes:
    buffer = TMemoryBuffer()
    protocol = TBinaryProtocolAccelerated(buffer)
    protocol.writeMessageBegin(CALL, kind, 0)
    (content or getattr(dialect.service, f"{CALL}_result")(**fields)).write(protocol)
    protocol.writeMessageEnd()
    written: bytes = buffer.getvalue()
    return written


def catalog_table(name: str) -> CatalogTable:
    parameters = {"table_type": "LANCE", "managed_by": "impl", "version": "7"}
    return CatalogTable(TableId.of(["db", name]), f"file:/lake/{name}.lance", parameters)


def reply_with_tables(dialect: Any, count: int) -> bytes:
    tables = [converters.new_table(dialect, catalog_table(f"t_{number}")) for number in range(count)]
    for table in tables:
        table.sd.cols = [dialect.types.FieldSchema(f"c_{number}", "bigint", None) for number in range(20)]
    return reply_of(dialect, success=dialect.types.GetTablesResult(tables))


def client_of(service: Any, reply: bytes, protocol: Any = TBinaryProtocolAccelerated) -> Any:
    return service.Client(protocol(TMemoryBuffer(reply)))


def read(service: Any, reply: bytes, protocol: Any = TBinaryProtocolAccelerated) -> Any:
    return client_of(service, reply, protocol).recv_get_table_objects_by_name_req()


@protocols
@dialects
def test_all_of_a_table_but_its_columns_is_read(dialect: Any, protocol: Any) -> None:
    [raw] = read(reduced_service(dialect.service), reply_with_tables(dialect, 1), protocol).tables
    [full] = read(dialect.service, reply_with_tables(dialect, 1)).tables

    reduced, expected = (converters.to_table(TableId.of(["db", "t_0"]), one) for one in (raw, full))

    assert (reduced.location, reduced.parameters) == (expected.location, expected.parameters)
    assert (reduced.external, reduced.created) == (expected.external, expected.created)
    assert len(expected.columns) == 20
    assert reduced.columns == ()


@dialects
def test_a_table_is_three_objects_for_the_garbage_collector(dialect: Any) -> None:
    reply = reply_with_tables(dialect, 200)
    service = reduced_service(dialect.service)
    read(service, reply)
    gc.collect()
    before = len(gc.get_objects())

    tables = read(service, reply).tables

    assert len(tables) == 200
    assert len(gc.get_objects()) - before <= 3 * 200 + 100


@dialects
def test_the_errors_of_the_server_are_raised(dialect: Any) -> None:
    service = reduced_service(dialect.service)
    with pytest.raises(dialect.types.UnknownDBException, match="no such database"):
        read(service, reply_of(dialect, o3=dialect.types.UnknownDBException("no such database")))
    with pytest.raises(TApplicationException, match="the reply has no result"):
        read(service, reply_of(dialect))
    unknown = TApplicationException(TApplicationException.UNKNOWN_METHOD, "no such call")
    with pytest.raises(TApplicationException, match="no such call"):
        read(service, reply_of(dialect, TMessageType.EXCEPTION, unknown))
