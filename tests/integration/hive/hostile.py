"""Malformed replies, which the proxy sends instead of the real ones."""

import struct
from collections.abc import Callable, Sequence

from pymetastore.hive_metastore import ttypes
from pymetastore.hive_metastore.ThriftHiveMetastore import (
    get_table_objects_by_name_req_result,
    get_table_req_result,
)
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TMessageType, TType
from thrift.transport.TTransport import TMemoryBuffer

Change = Callable[[bytes, bytes], bytes]

_STRICT = 0x80010000
_TOO_LONG = 17_000_000
_TEXTS = struct.pack(">bhbi", TType.LIST, 0, TType.STRING, 1)
"""The beginning of a list of one text as a call's result."""


def _header(request: bytes) -> tuple[bytes, int]:
    (length,) = struct.unpack(">i", request[4:8])
    return request[8 : 8 + length], struct.unpack(">i", request[8 + length : 12 + length])[0]


def message(request: bytes, body: bytes, *, kind: int = TMessageType.REPLY, off: int = 0) -> bytes:
    """A reply to a request, with its sequence number shifted by `off`."""
    name, number = _header(request)
    return struct.pack(">Ii", _STRICT | kind, len(name)) + name + struct.pack(">i", number + off) + body


def _encoded(result: object) -> bytes:
    buffer = TMemoryBuffer()
    result.write(TBinaryProtocol(buffer))  # type: ignore[attr-defined]
    found: bytes = buffer.getvalue()
    return found


def _with_a_long_parameter(request: bytes, reply: bytes) -> bytes:
    table = ttypes.Table(tableName="t", parameters={"x": "x" * _TOO_LONG})
    if b"get_table_objects" in request:
        tables = ttypes.GetTablesResult(tables=[table])
        return message(request, _encoded(get_table_objects_by_name_req_result(success=tables)))
    return message(request, _encoded(get_table_req_result(success=ttypes.GetTableResult(table=table))))


def names_reply(names: Sequence[str]) -> Change:
    """A reply that lists these names."""
    items = b"".join(struct.pack(">i", len(name)) + name.encode() for name in names)
    body = struct.pack(">bhbi", TType.LIST, 0, TType.STRING, len(names)) + items + b"\0"
    return lambda request, reply: message(request, body)


def _ends_like(body: bytes) -> Change:
    return lambda request, reply: message(request, body)


UNREADABLE: dict[str, Change] = {
    "a parameter of 17 MB": _with_a_long_parameter,
    "a text of negative length": _ends_like(struct.pack(">bhi", TType.STRING, 7, -5)),
    "a list of negative length": _ends_like(struct.pack(">bhbi", TType.LIST, 7, TType.STRING, -1)),
    "a list of two billion": _ends_like(struct.pack(">bhbi", TType.LIST, 7, TType.STRING, 2**31 - 1)),
    "a type that there is not": _ends_like(struct.pack(">bh", 99, 7)),
    "an item of another type": _ends_like(struct.pack(">bhbhbi", TType.STRUCT, 0, TType.STRUCT, 1, 99, 0)),
    "structs without end": _ends_like(struct.pack(">bh", TType.STRUCT, 7) * 1000),
    "nothing": _ends_like(b"\0"),
    "a result without a table": _ends_like(struct.pack(">bh", TType.STRUCT, 0) + b"\0\0"),
}
"""Well framed, and nothing that can be decoded."""

OUT_OF_STEP: dict[str, Change] = {
    "another call's number": lambda request, reply: message(
        request, reply[12 + len(_header(request)[0]) :], off=1
    ),
    "another call's name": lambda request, reply: reply.replace(
        _header(request)[0], b"x" * len(_header(request)[0]), 1
    ),
    "a call": lambda request, reply: message(request, b"\0", kind=TMessageType.CALL),
    "what is no Thrift": lambda request, reply: b"HTTP/1.1 400 Bad Request\r\n\r\n",
}
"""No reply to the call that was sent."""
