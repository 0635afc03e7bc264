"""Reads of many tables that decode only the fields that a poll needs.

A full reply has some fifteen objects a table. For thousands of tables in each poll, these would make Python's
garbage collector visit all objects of a triggerer again and again, which blocks all waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import make_dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

from thrift.protocol.TBase import TBase
from thrift.Thrift import TApplicationException, TMessageType, TType

_FIELDS: Mapping[str, Any] = {
    "success": {
        "tables": {
            "tableName": None,
            "createTime": None,
            "tableType": None,
            "parameters": None,
            "sd": {"location": None},
        }
    },
    "o1": None,
    "o2": None,
    "o3": None,
}
"""Fields of the reply that are decoded, by name: all of a field, or some fields of what it holds."""


@cache
def reduced_service(service: Any) -> Any:
    """Return a service whose client decodes only these fields of `get_table_objects_by_name_req`.

    Args:
        service: generated module of the service.
    """
    result_type = _reduced(service.get_table_objects_by_name_req_result, _FIELDS)

    class ReducedClient(service.Client):  # type: ignore[misc]
        def recv_get_table_objects_by_name_req(self) -> Any:
            _, kind, _ = self._iprot.readMessageBegin()
            result = TApplicationException() if kind == TMessageType.EXCEPTION else result_type()
            result.read(self._iprot)
            self._iprot.readMessageEnd()
            if kind == TMessageType.EXCEPTION:
                raise result
            for error in (result.o1, result.o2, result.o3):
                if error is not None:
                    raise error
            if result.success is None:
                raise TApplicationException(TApplicationException.MISSING_RESULT, "the reply has no result")
            return result.success

    return SimpleNamespace(Client=ReducedClient)


def _reduced(binding: Any, fields: Mapping[str, Any]) -> Any:
    """Return a variant of a generated type with some of its fields."""
    reduced: Any = make_dataclass(
        f"Reduced{binding.__name__}", [(name, Any, None) for name in fields], slots=True
    )
    reduced.thrift_spec = tuple(
        _reduced_field(field, fields[field[2]]) if field and field[2] in fields else None
        for field in binding.thrift_spec
    )
    reduced.read = TBase.read
    reduced.cols = None  # the columns of a storage descriptor aren't decoded
    return reduced


def _reduced_field(field: tuple[Any, ...], fields: Mapping[str, Any] | None) -> tuple[Any, ...]:
    if fields is None:
        return field
    number, kind, name, content, default = field
    element, (binding, _), immutable = content if kind == TType.LIST else (None, content, None)
    reduced = _reduced(binding, fields)
    of_struct = [reduced, reduced.thrift_spec]
    return number, kind, name, (element, of_struct, immutable) if kind == TType.LIST else of_struct, default
