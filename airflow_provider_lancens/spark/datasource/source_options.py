"""Options of the data source."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Self, cast

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import InvalidIdentifierError, TableId
from airflow_provider_lancens.spark.options import Mode, TableLayout, WriteIdentity, WriteRequest, change_of
from airflow_provider_lancens.spark.streaming.foreach_batch import check_query_id
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec
from airflow_provider_lancens.spark.table.version_lookup import WantedVersion

_NAMESPACE = "namespace."
_IMPL = "namespace.impl"
_LAYOUT = tuple(field.name for field in fields(TableLayout))
_KEY = ("key", "fingerprint", "on_existing_key", "execution_id")
_WRITE = ("table", *_KEY, "on", "schema_mode", "where", *_LAYOUT)
_EPOCH = ("table", "on", "schema_mode", "query_id", *_LAYOUT)
_OF_SPARK = ("checkpointlocation", "queryname")
"""Options of a stream that Spark itself uses, and passes on; `queryName` names a query in Spark's UI."""
_BATCH_READ = ("version", "blobs")
_STREAM_READ = ("after_version", "max_rows_per_batch", "skip_change_commits")
_READ = ("table", "columns", "filter")

Options = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ReadConfig:
    """The arguments of a read."""

    table: str
    wanted: WantedVersion
    columns: list[str] | None
    filter: str | None
    blobs: dict[str, Any] | None

    @classmethod
    def of(cls, options: Options) -> Self:
        """Parse the options of a read that isn't a stream.

        Raises:
            InvalidInputError: (13) an option is unknown or invalid.
        """
        _check_known(options, (*_READ, *_BATCH_READ))
        return cls(
            table=_table(options),
            wanted=WantedVersion.of(options.get("version")),
            columns=_columns(options),
            filter=options.get("filter"),
            blobs=_object(options, "blobs", '{"image": "all", "video": [0, 65536]}'),
        )


@dataclass(frozen=True, slots=True)
class StreamReadConfig:
    """How a table is read as a stream."""

    table: str
    columns: list[str] | None
    filter: str | None
    after_version: int | None
    """The version to start after; None starts with all rows of the newest one."""
    max_rows: int | None
    """Maximum number of rows of a micro-batch."""
    skip_change_commits: bool
    """Whether versions that did more than append rows, such as updates and deletions, are passed over."""

    @classmethod
    def of(cls, options: Options) -> Self:
        """Parse the options of a stream.

        Raises:
            InvalidInputError: (13) an option is unknown or invalid.
        """
        _check_known(options, (*_READ, *_STREAM_READ))
        return cls(
            table=_table(options),
            columns=_columns(options),
            filter=options.get("filter"),
            after_version=_whole(options, "after_version", lowest=0),
            max_rows=_whole(options, "max_rows_per_batch"),
            skip_change_commits=_flag(options, "skip_change_commits") or False,
        )


def is_stream(options: Options) -> bool:
    """Return whether a read has options that only a stream has."""
    return any(name in options for name in _STREAM_READ)


def epoch_request(options: Options, overwrite: bool) -> tuple[str, WriteRequest, str | None]:
    """Return the table to write a stream to, how to write an epoch, and the id in place of its query's.

    Args:
        options: Spark's.
        overwrite: whether Spark's output mode is ``complete``; otherwise it is ``append``.

    Raises:
        InvalidInputError: (13) an option is unknown or invalid.
    """
    options = {name: options[name] for name in options if name not in _OF_SPARK}
    if keys := [name for name in _KEY if name in options]:
        raise spec_errors.InvalidInputError(
            f"{keys[0]}: not allowed for a stream, whose epochs are identified by the query and their number"
        )
    _check_known(options, _EPOCH)
    if overwrite and "on" in options:
        raise spec_errors.InvalidInputError("on: a stream that overwrites replaces all rows with each epoch")
    if "query_id" in options:
        check_query_id(options["query_id"])
    return _table(options), _request(options, overwrite), options.get("query_id")


def write_request(options: Options, overwrite: bool) -> tuple[str, WriteRequest]:
    """Return the table to write to, and the requested write.

    Args:
        options: Spark's.
        overwrite: whether Spark's mode is ``overwrite``; otherwise it is ``append``.

    Raises:
        InvalidInputError: (13) an option is unknown or invalid.
    """
    _check_known(options, _WRITE)
    return _table(options), _request(options, overwrite)


def _request(options: Options, overwrite: bool) -> WriteRequest:
    on = _names("on", options["on"]) if "on" in options else None
    mode: Mode = "overwrite" if overwrite else "upsert" if on else "append"
    schema_mode = options.get("schema_mode", "strict")
    change = change_of(mode, on=on, where=options.get("where"), schema_mode=schema_mode)
    identity = WriteIdentity(
        options.get("key"),
        options.get("fingerprint"),
        cast("Any", options.get("on_existing_key", "redo")),
        options.get("execution_id"),
    )
    return WriteRequest(change, identity, _layout(options))


def namespace_of(options: Options, bound: NamespaceSpec | None) -> NamespaceSpec:
    """Return the namespace of the table.

    Args:
        options: Spark's.
        bound: the namespace that the data source was created for.

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
            raise spec_errors.InvalidInputError(
                "namespace.*: this data source belongs to one namespace; leave these options out"
            )
        return bound
    if _IMPL not in options:
        raise spec_errors.InvalidInputError(
            f"{_IMPL}: expected 'dir', 'rest' or a dotted path to a class, with its properties as "
            "'namespace.<property>'; or register lance_data_source(namespace)"
        )
    return NamespaceSpec(options[_IMPL], properties)


def _layout(options: Options) -> TableLayout:
    given: dict[str, Any] = {
        "max_rows_per_file": _whole(options, "max_rows_per_file"),
        "data_storage_version": options.get("data_storage_version"),
        "stable_row_ids": _flag(options, "stable_row_ids"),
        "vector_columns": _object(options, "vector_columns", '{"embedding": 768}'),
        "blob_columns": _names("blob_columns", options["blob_columns"])
        if "blob_columns" in options
        else None,
    }
    try:
        return TableLayout(**{name: value for name, value in given.items() if value is not None})
    except ValueError as error:
        raise spec_errors.InvalidInputError(str(error)) from error


def _check_known(options: Options, known: Iterable[str]) -> None:
    unknown = sorted(key for key in options if key not in known and not key.startswith(_NAMESPACE))
    if unknown:
        # The values of unknown options aren't shown: they may be secret.
        raise spec_errors.InvalidInputError(
            f"options: expected {', '.join(known)} and namespace.*, got {', '.join(unknown)}"
        )


def _table(options: Options) -> str:
    if "table" not in options:
        raise spec_errors.InvalidInputError(
            "table: expected an identifier such as 'db$table'; the option is missing"
        )
    try:
        return str(TableId.written(options["table"]))
    except InvalidIdentifierError as error:
        raise spec_errors.InvalidInputError(
            f"table: expected an identifier such as 'db$table'; {error}"
        ) from error


def _columns(options: Options) -> list[str] | None:
    text = options.get("columns")
    return None if text is None else _names("columns", text)


def _whole(options: Options, name: str, lowest: int = 1) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and int(text) >= lowest):
        raise spec_errors.InvalidInputError(
            f"{name}: expected a whole number of at least {lowest}, got {text!r}"
        )
    return int(text)


def _flag(options: Options, name: str) -> bool | None:
    text = options.get(name)
    if text is not None and text.lower() not in ("true", "false"):
        raise spec_errors.InvalidInputError(f"{name}: expected true or false, got {text!r}")
    return None if text is None else text.lower() == "true"


def _names(name: str, text: str) -> list[str]:
    """Parse names separated by commas, or, if a name has a comma, a JSON list."""
    names = _json(name, text) if text.lstrip().startswith("[") else [part.strip() for part in text.split(",")]
    if not all(isinstance(element, str) and element for element in names):
        raise spec_errors.InvalidInputError(
            f"{name}: expected names such as 'id, price', or a JSON array, got {text!r}"
        )
    return cast("list[str]", names)


def _object(options: Options, name: str, example: str) -> dict[str, Any] | None:
    text = options.get(name)
    found = None if text is None else _json(name, text)
    if found is not None and not isinstance(found, dict):
        raise spec_errors.InvalidInputError(f"{name}: expected a JSON object such as {example}, got {text!r}")
    return found


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise spec_errors.InvalidInputError(f"{name}: expected JSON, got {text!r} ({error})") from error
