"""What the options of a read or a write say: Spark hands over texts, their names in lower case."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Self, cast

from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.spark.naming import WriteName
from airflow_provider_lancens.spark.options import OnChanged, WriteOptions
from airflow_provider_lancens.spark.phases import WriteOrder
from airflow_provider_lancens.spark.target import NamespaceSpec

_NAMESPACE = "namespace."
_IMPL = "namespace.impl"
_LAYOUT = tuple(field.name for field in fields(WriteOptions))
_WRITE = ("table", "idempotency_key", "fingerprint", "on_changed", "on", *_LAYOUT)
_READ = ("table", "version", "columns", "filter")

Options = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ReadWords:
    """What is to be read, as `read_table` takes it."""

    table: str
    version: int | None
    columns: list[str] | None
    filter: str | None

    @classmethod
    def of(cls, options: Options) -> Self:
        """Understand the options.

        Raises:
            InvalidInputError: (13) one isn't known, or not what it has to be.
        """
        _check_known(options, _READ)
        columns = options.get("columns")
        return cls(
            table=_table(options),
            version=_whole(options, "version"),
            columns=None if columns is None else _names("columns", columns),
            filter=options.get("filter"),
        )


def write_order(options: Options, overwrite: bool) -> tuple[str, WriteOrder]:
    """The table to write to, and what to do to it.

    Args:
        options: Spark's.
        overwrite: whether Spark's mode is ``overwrite``; else it is ``append``.

    Raises:
        InvalidInputError: (13) an option isn't known, or not what it has to be.
    """
    _check_known(options, _WRITE)
    on = tuple(_names("on", options["on"])) if "on" in options else ()
    if on and overwrite:
        raise InvalidInputError("on: an upsert is mode('append'), and an overwrite takes no key columns")
    on_changed = cast("OnChanged", options.get("on_changed", "fail"))
    name = WriteName.of(options.get("idempotency_key"), options.get("fingerprint"), on_changed)
    mode = "overwrite" if overwrite else "upsert" if on else "append"
    return _table(options), WriteOrder(mode, name, _layout(options), on)


def namespace_of(options: Options, bound: NamespaceSpec | None) -> NamespaceSpec:
    """The namespace that knows the table.

    Args:
        options: Spark's.
        bound: the one that the data source was made for.

    Raises:
        InvalidInputError: (13) there is none, or there are two.
    """
    properties = {
        key.removeprefix(_NAMESPACE): value
        for key, value in options.items()
        if key.startswith(_NAMESPACE) and key != _IMPL
    }
    if bound is not None:
        if properties or _IMPL in options:
            raise InvalidInputError(
                "namespace.*: this data source was made for one namespace; leave them out"
            )
        return bound
    if _IMPL not in options:
        raise InvalidInputError(
            f"{_IMPL}: expected 'dir', 'rest' or a dotted path to a class, with its properties as "
            "'namespace.<property>'; or register lance_data_source(namespace)"
        )
    return NamespaceSpec(options[_IMPL], properties)


def _layout(options: Options) -> WriteOptions:
    given: dict[str, Any] = {
        "max_rows_per_file": _whole(options, "max_rows_per_file"),
        "data_storage_version": options.get("data_storage_version"),
        "enable_stable_row_ids": _flag(options, "enable_stable_row_ids"),
        "vector_columns": _dimensions(options, "vector_columns"),
    }
    try:
        return WriteOptions(**{name: value for name, value in given.items() if value is not None})
    except ValueError as error:
        raise InvalidInputError(str(error)) from error


def _check_known(options: Options, known: Iterable[str]) -> None:
    unknown = sorted(key for key in options if key not in known and not key.startswith(_NAMESPACE))
    if unknown:
        # Their values stay unsaid: nobody knows what they are.
        raise InvalidInputError(
            f"options: {', '.join(unknown)} not known here; there are {', '.join(known)} and namespace.*"
        )


def _table(options: Options) -> str:
    if "table" not in options:
        raise InvalidInputError("table: expected an identifier such as 'db$table'; the option is missing")
    return options["table"]


def _whole(options: Options, name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise InvalidInputError(f"{name}: expected a whole number of at least 1, got {text!r}")
    return int(text)


def _flag(options: Options, name: str) -> bool | None:
    text = options.get(name)
    if text is not None and text.lower() not in ("true", "false"):
        raise InvalidInputError(f"{name}: expected true or false, got {text!r}")
    return None if text is None else text.lower() == "true"


def _names(name: str, text: str) -> list[str]:
    """Names with commas in between, or, where a name has one, as JSON."""
    names = _json(name, text) if text.lstrip().startswith("[") else [part.strip() for part in text.split(",")]
    if not all(isinstance(one, str) and one for one in names):
        raise InvalidInputError(f"{name}: expected names such as 'id, price', or a JSON array, got {text!r}")
    return cast("list[str]", names)


def _dimensions(options: Options, name: str) -> dict[str, int] | None:
    text = options.get(name)
    found = None if text is None else _json(name, text)
    if found is not None and not isinstance(found, dict):
        raise InvalidInputError(f'{name}: expected a JSON object such as {{"embedding": 768}}, got {text!r}')
    return found


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInputError(f"{name}: expected JSON, got {text!r} ({error})") from error
