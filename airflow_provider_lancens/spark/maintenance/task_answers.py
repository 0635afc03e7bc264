"""What tasks answer the driver, as JSON: reading an answer runs no code of whoever sent it.

Pickled answers would let an executor, or a Spark Connect server, run code on the worker, with all of
Airflow's connections. Only plain values are read, and the classes listed here.
"""

from __future__ import annotations

import base64
import dataclasses
import importlib
import json
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import pyarrow as pa

Class = TypeVar("Class", bound=type[Any])

_KIND, _VALUE = "kind", "value"
_OF_LANCE = {"DataFile": "lance.fragment", "Index": "lance.dataset", "IndexFile": "lance.dataset"}
_own_classes: dict[str, type[Any]] = {}


def answer_class(added: Class) -> Class:
    """Allow a dataclass in answers."""
    _own_classes[added.__name__] = added
    return added


def encoded(answer: Any) -> bytes:
    """Return an answer as JSON.

    Raises:
        TypeError: it contains an object of a class that isn't allowed in answers.
    """
    return json.dumps(_plain(answer)).encode()


def decoded(answer: bytes) -> Any:
    """Return an answer that `encoded` made.

    Raises:
        RuntimeError: it is anything else.
    """
    try:
        return _object(json.loads(answer))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, pa.ArrowInvalid) as error:
        raise RuntimeError(f"Spark returned {len(answer)} bytes that are no answer of a task") from error


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [_plain(one) for one in value]
    name, parts = type(value).__name__, None
    if name in _EXACT:
        parts = _EXACT[name][0](value)
    elif isinstance(value, pa.DataType):
        name, parts = "DataType", _text(pa.schema([pa.field("", value)]).serialize().to_pybytes())
    elif dataclasses.is_dataclass(value) and _is_allowed(type(value)):
        # A class of Lance has a private name for a path, but its argument hasn't.
        fields = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        parts = {field.lstrip("_"): _plain(one) for field, one in fields}
    if parts is None:
        raise TypeError(f"a task's answer may not contain an object of the class {name}")
    return {_KIND: name, _VALUE: parts}


def _object(plain: Any) -> Any:
    if isinstance(plain, list):
        return [_object(one) for one in plain]
    if not isinstance(plain, dict):
        return plain
    name, parts = plain[_KIND], plain[_VALUE]
    if name in _EXACT:
        return _EXACT[name][1](parts)
    if name == "DataType":
        return pa.ipc.read_schema(pa.py_buffer(_bytes(parts))).field(0).type
    return _class(name)(**{field: _object(one) for field, one in parts.items()})


def _class(name: str) -> Any:
    if name in _OF_LANCE:
        return getattr(importlib.import_module(_OF_LANCE[name]), name)
    return _own_classes[name]


def _is_allowed(found: type[Any]) -> bool:
    name = found.__name__
    return (name in _OF_LANCE or name in _own_classes) and _class(name) is found


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _bitmap(positions: list[int]) -> Any:
    from lance.bitmap import Bitmap

    return Bitmap(positions)


def _rewritten(text: str) -> Any:
    from lance import optimize

    results: Any = optimize.RewriteResult  # its stub lacks the method
    return results.from_json(text)


_EXACT: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "bytes": (_text, _bytes),
    "datetime": (datetime.isoformat, datetime.fromisoformat),
    "tuple": (lambda value: _plain(list(value)), lambda parts: tuple(_object(parts))),
    "set": (lambda value: _plain(list(value)), lambda parts: set(_object(parts))),
    "frozenset": (lambda value: _plain(list(value)), lambda parts: frozenset(_object(parts))),
    "dict": (
        lambda value: _plain([list(item) for item in value.items()]),
        lambda parts: dict(_object(parts)),
    ),
    "Bitmap": (list, _bitmap),
    "RewriteResult": (lambda value: value.json(), _rewritten),
}
"""By the name of a class: how its objects become plain values, and how they are made of these."""
