"""Parse the names of Arrow's types, such as ``int64``, and of Spark SQL's types, such as ``bigint``."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa

from airflow_provider_lancens import spec_errors

_SPARK_NAMES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "tinyint": pa.int8(),
    "short": pa.int16(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "bigint": pa.int64(),
    "real": pa.float32(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
"""Names of Spark SQL that Arrow lacks, as `types.arrow_type` stores them."""

_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")
_ZONED = re.compile(r"timestamp\[(s|ms|us|ns),([\w/+:-]+)\]")
_NESTED = re.compile(r"(list|array|map|struct)<(.+)>")
_VECTOR = re.compile(r"(.+)\[(\d+)\]")
_EXAMPLES = (
    "int64, bigint, float, double, bool, string, binary, date32, timestamp[us], timestamp[us, UTC], "
    "decimal(10, 2), list<string>, map<string, int64>, struct<x: double, y: double>, float[768] for a vector"
)


def parse_type(text: str, argument: str) -> pa.DataType:
    """Parse the name of a type.

    Args:
        text: the name, such as ``int64``, ``bigint`` or ``struct<x: double, tags: list<string>>``.
        argument: the argument's name, for the message.

    Raises:
        InvalidInputError: (13) there is no such type.
    """
    try:
        return _parse(text.strip())
    except (pa.ArrowException, ValueError) as error:
        raise spec_errors.InvalidInputError(
            f"{argument}: expected a type such as {_EXAMPLES}; got {text!r}"
        ) from error


def _parse(text: str) -> pa.DataType:
    if match := _NESTED.fullmatch(text):
        return _nested(match[1], list(_parts(match[2])))
    plain = re.sub(r"\s+", "", text)
    if plain in _SPARK_NAMES:
        return _SPARK_NAMES[plain]
    if match := _DECIMAL.fullmatch(plain):
        return pa.decimal128(int(match[1]), int(match[2]))
    if match := _ZONED.fullmatch(plain):
        return pa.timestamp(match[1], match[2])
    if match := _VECTOR.fullmatch(plain):
        return pa.list_(_parse(match[1]), int(match[2]))
    return pa.type_for_alias(plain)


def _nested(kind: str, parts: list[str]) -> pa.DataType:
    if kind == "struct":
        fields = [part.partition(":") for part in parts]
        return pa.struct([(_checked_name(name), _parse(text.strip())) for name, _, text in fields])
    if len(parts) != (2 if kind == "map" else 1):
        raise ValueError(f"{kind} of {len(parts)} types")
    types = [_parse(part) for part in parts]
    return pa.map_(*types) if kind == "map" else pa.list_(*types)


def _checked_name(text: str) -> str:
    if not (name := text.strip()):
        raise ValueError("a field without a name")
    return name


def _parts(text: str) -> Iterator[str]:
    """Yield the parts between the commas that are in no brackets."""
    depth, start = 0, 0
    for at, character in enumerate(text):
        depth += (character in "<([") - (character in ">)]")
        if character == "," and not depth:
            yield text[start:at].strip()
            start = at + 1
    yield text[start:].strip()
