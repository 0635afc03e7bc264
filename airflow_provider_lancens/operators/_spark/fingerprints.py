"""Fingerprints of writes: text that differs if what a task is given differs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from airflow_provider_lancens.hooks.mapped_tasks import is_lazy, items_of

_LIBRARIES_OF_DATA = ("numpy", "pandas", "polars", "pyarrow")


def fingerprint_of(*parts: Mapping[str, Any]) -> str:
    """Return text that differs if any value differs; values without a repr are named by their type."""
    try:
        return json.dumps(parts, sort_keys=True, default=_plain_value)
    except TypeError:  # keys of a mapping aren't text, such as days, or can't be sorted
        return json.dumps(_with_text_keys(parts), sort_keys=True, default=_plain_value)


def conditions(texts: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the parts of a fingerprint that conditions add, each by its argument."""
    return [{name: text} for name, text in texts.items()]


def _with_text_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {_text_key(key): _with_text_keys(element) for key, element in value.items()}
    return [_with_text_keys(element) for element in value] if isinstance(value, list | tuple) else value


def _text_key(key: Any) -> str:
    return key if isinstance(key, str) else f"{type(key).__qualname__} {_plain_value(key)}"


def _plain_value(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    library = type(value).__module__.partition(".")[0]
    if is_lazy(value):
        return _with_text_keys(items_of(value))  # the repr of lazy XComs doesn't contain their values
    if library in _LIBRARIES_OF_DATA and hasattr(type(value), "__len__"):
        content = _content(value, library)
        if content is not None:
            text = json.dumps(_with_text_keys(content), default=_plain_value)
            return {type(value).__qualname__: hashlib.sha256(text.encode()).hexdigest()}
    if callable(value) or getattr(type(value), "__repr__", None) is object.__repr__:
        # The repr would contain an address, which differs between processes.
        return getattr(value, "__qualname__", type(value).__qualname__)
    return str(value)


def _content(data: Any, library: str) -> Any:
    """Return the values of a frame or an array, whose text leaves out what is in the middle of long ones.

    None if it has none, such as a schema.
    """
    if hasattr(data, "column_names"):  # an Arrow table, in which several columns may have one name
        return [data.column_names, [column.to_pylist() for column in data.columns]]
    if hasattr(data, "to_frame"):  # a series or an index
        data = data.to_frame()
    if library == "pandas" and hasattr(data, "to_dict"):
        return data.to_dict("split")
    if library == "polars" and hasattr(data, "to_dict"):
        return data.to_dict(as_series=False)
    readers = (getattr(data, name, None) for name in ("to_pylist", "tolist", "as_py", "to_pybytes"))
    read = next(filter(callable, readers), None)
    return None if read is None else read()
