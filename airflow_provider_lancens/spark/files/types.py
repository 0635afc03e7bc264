"""Arrow's types as words, as casts and schemas of file sources give them."""

from __future__ import annotations

import re

import pyarrow as pa
from lance_namespace.errors import InvalidInputError

_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")
_ZONED = re.compile(r"timestamp\[(s|ms|us|ns),([\w/+:-]+)\]")
_LIST = re.compile(r"list<(.+)>")
_VECTOR = re.compile(r"(.+)\[(\d+)\]")
_EXAMPLES = (
    "int64, float, double, bool, string, binary, date32, timestamp[us], timestamp[us, UTC], "
    "decimal(10, 2), list<string>, float[768] for a vector"
)


def parse_type(words: str, argument: str) -> pa.DataType:
    """An Arrow type.

    Args:
        words: such as ``int64`` or ``decimal(10, 2)``.
        argument: what to call them in a message.

    Raises:
        InvalidInputError: (13) there is no such type.
    """
    try:
        return _parse(re.sub(r"\s+", "", words))
    except (pa.ArrowException, ValueError) as error:
        raise InvalidInputError(f"{argument}: expected a type such as {_EXAMPLES}; got {words!r}") from error


def _parse(words: str) -> pa.DataType:
    if match := _DECIMAL.fullmatch(words):
        return pa.decimal128(int(match[1]), int(match[2]))
    if match := _ZONED.fullmatch(words):
        return pa.timestamp(match[1], match[2])
    if match := _LIST.fullmatch(words):
        return pa.list_(_parse(match[1]))
    if match := _VECTOR.fullmatch(words):
        return pa.list_(_parse(match[1]), int(match[2]))
    return pa.type_for_alias(words)
