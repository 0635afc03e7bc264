"""Random conditions, each with what it means for a row by plain Python, and rows of all types."""

from __future__ import annotations

import datetime as dt
import math
import random
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

Row = dict[str, Any]
Meaning = Callable[[Row], bool | None]
UTC, PARIS = dt.UTC, ZoneInfo("Europe/Paris")
NEGATIVE_NAN = struct.unpack("d", struct.pack("Q", 0xFFF8000000000000))[0]
WHOLE = [
    "0",
    "1",
    "-1",
    "5",
    "1.5",
    "-2.5",
    "126.999",
    "127",
    "128",
    "-128",
    "255",
    "300",
    "65535",
    "2147483648",
    "16777217",
    "9007199254740993",
    "1e30",
    "-1e30",
    "1e-30",
]
WHOLE += [
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551615",
    "1e500",
]
FLOATS = [
    "0",
    "-0",
    "0.1",
    "-1.5",
    "1.5",
    "1e39",
    "-1e39",
    "1e308",
    "1e400",
    "-1e400",
    "16777217",
    "65504",
    "65520",
    "1e-50",
]
FLOATS += ["'NaN'", "'Infinity'", "'-Infinity'"]
FRACTIONS = ["0", "1.5", "1.50", "-2.25", "1.505", "-2.251", "99999999", "1e20", "0.001", "-1e60"]
FRACTIONS += [f"{'9' * 28}.{'9' * 10}", f"{'9' * 28}.{'9' * 9}8"]
TEXTS = ["", "a", "B", "b", "é%", "it's", "x\ny", "a\\b", "_", "$" + "{x}", "\U0001f600z"]
PATTERNS = ["%", "a%", "%y", "_", "__", r"%\%", r"\_", r"a\\b", "x_y", "%'%", "", "_z"]
BLOBS = ["", "61", "ff00", "00", "6161"]
DAYS = ["1969-12-31", "2026-01-01", "2026-01-02", "0001-01-01", "9999-12-31"]
CLOCKS = ["00:00", "01:00:00", "01:00:00.000001", "01:00:00.5", "23:59:59.999999999"]
MOMENTS = [*DAYS, "2026-01-02 01:00", "2026-01-02T01:00:00.5", "2026-01-02 01:00:00.000000001"]
OFFSETS = ["", "Z", "+01:00", " -0330", "+02"]


@dataclass(frozen=True)
class Kind:
    """Columns that are compared alike."""

    columns: Sequence[str]
    literals: Sequence[str]
    stored: Callable[[Any], Any]
    """A value of a column as Python compares it."""
    written: Callable[[str, pa.DataType], Any]
    """A literal as Python compares it."""
    ordered: bool = True


def _float(value: float) -> tuple[int, Any]:
    return (1, 0) if math.isnan(value) else (0, float(value) + 0.0)


def _written_float(text: str, arrow: pa.DataType) -> tuple[int, Any]:
    number = float(text.strip("'"))
    with np.errstate(over="ignore"):
        rounded = float(arrow.to_pandas_dtype()(number))
    return (0, Decimal(text)) if math.isinf(rounded) and "'" not in text else _float(rounded)


def _text(value: str) -> bytes:
    return value.encode()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _unquoted(text: str) -> str:
    return text[text.index("'") + 1 : -1].replace("''", "'")


def _seconds(text: str) -> tuple[int, Decimal]:
    """The days and seconds of a text, exactly."""
    day, _, clock = re.sub("[T]", " ", text).partition(" ")
    parts = (clock or "00:00").split(":")
    seconds = int(parts[0]) * 3600 + int(parts[1]) * 60 + Decimal(parts[2] if len(parts) > 2 else 0)
    return dt.date.fromisoformat(day).toordinal(), seconds


def _instant(text: str, arrow: pa.DataType) -> Decimal:
    match = re.fullmatch(r"(.*?) ?(Z|[+-]\d\d:?(?:\d\d)?)?", _unquoted(text))
    assert match is not None
    # The minus of a day isn't an offset.
    local, offset = (
        (match[1], match[2]) if match[2] and (":" in match[1] or match[2] == "Z") else (_unquoted(text), None)
    )
    days, seconds = _seconds(local)
    total = days * 86_400 + seconds
    if arrow.tz is None:
        return total
    if offset and offset != "Z":
        sign = -1 if offset[0] == "-" else 1
        hours, minutes = int(offset[1:3]), int(offset[3:].lstrip(":") or 0)
        return total - sign * (hours * 3600 + minutes * 60)
    if offset == "Z" or arrow.tz == "UTC":
        return total
    if arrow.tz == "+02:00":
        return total - 7200
    clock = dt.datetime.fromordinal(days) + dt.timedelta(seconds=int(seconds))
    shift = clock.replace(tzinfo=PARIS).utcoffset()
    assert shift is not None
    return total - round(shift.total_seconds())


def _stored_instant(value: Any) -> Decimal:
    """`value` is the number of nanoseconds since 1970, see `python_rows`."""
    return Decimal(value) / 10**9 + dt.date(1970, 1, 1).toordinal() * 86_400


KINDS = [
    Kind(
        ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "st.x", "st.inner.z"],
        WHOLE,
        Decimal,
        lambda text, _: Decimal(text),
    ),
    Kind(["price", "wide", "widest"], FRACTIONS, Decimal, lambda text, _: Decimal(text)),
    Kind(["f16", "f32", "f64", "st.f"], FLOATS, _float, _written_float),
    Kind(["s", "ls", "dictionary"], [*map(_quoted, TEXTS)], _text, lambda text, _: _text(_unquoted(text))),
    Kind(
        ["bin", "fixed"],
        [f"X'{one}'" for one in BLOBS],
        bytes,
        lambda text, _: bytes.fromhex(_unquoted(text)),
    ),
    Kind(["flag"], ["TRUE", "false"], bool, lambda text, _: text == "TRUE", ordered=False),
    Kind(
        ["d32", "d64"],
        [*(f"'{day}'" for day in DAYS), "DATE '2026-01-02'"],
        lambda value: value,
        lambda text, _: dt.date.fromisoformat(_unquoted(text)),
    ),
    Kind(
        ["t32", "t64"],
        [f"'{clock}'" for clock in CLOCKS],
        lambda value: Decimal(value) / 10**9,
        lambda text, _: _seconds(f"2000-01-01 {_unquoted(text)}")[1],
    ),
    Kind(["ts_s", "ts_ms", "ts_us", "ts_ns"], [f"'{one}'" for one in MOMENTS], _stored_instant, _instant),
    Kind(
        ["utc", "paris", "fixed_zone"],
        [f"'{one}{offset}'" for one in MOMENTS for offset in (OFFSETS if ":" in one else ["", "Z"])]
        + ["TIMESTAMP '2026-01-02 01:00:00Z'"],
        _stored_instant,
        _instant,
    ),
]
ONLY_NULL = ["list", "st", "st.inner"]
LANCE_ALONE = {"t32", "t64", "widest"}
"""Columns of types that Spark lacks."""


def rows() -> pa.Table:
    """Return rows of all types: each column has nulls and special values, in an order of its own."""
    moments = [
        0,
        -86_400,
        1_767_225_600,
        1_767_312_000,
        1_767_315_600,
        1_780_000_000,
        -62_135_596_800,
        253_402_214_400,
    ]
    near = [moment for moment in moments if 0 <= moment < 2**31]

    def times(arrow: pa.DataType, values: Sequence[int], more: Sequence[int] = ()) -> pa.Array:
        unit = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[arrow.unit]
        return pa.array([*(one * unit for one in values), *more], pa.int64()).cast(arrow)

    floats = [0.0, -0.0, math.nan, 0.1, 1.5, -1.5, math.inf, -math.inf, 65504.0]
    columns: dict[str, pa.Array] = {
        "i8": pa.array([0, 1, -1, 5, 127, -128], pa.int8()),
        "i16": pa.array([0, 1, -1, 300, 128, -32768], pa.int16()),
        "i32": pa.array([0, 1, -2, 16777217, 2**31 - 1, -(2**31)], pa.int32()),
        "i64": pa.array([0, 1, -3, 2**53 + 1, 2**63 - 1, -(2**63)], pa.int64()),
        "u8": pa.array([0, 1, 5, 127, 128, 255], pa.uint8()),
        "u16": pa.array([0, 1, 300, 65535], pa.uint16()),
        "u32": pa.array([0, 1, 2**31, 2**32 - 1], pa.uint32()),
        "u64": pa.array([0, 1, 2**63, 2**64 - 1, 2**53 + 1], pa.uint64()),
        "price": pa.array(
            [Decimal(one) for one in ("0.00", "1.50", "-2.25", "9999999.99")], pa.decimal128(9, 2)
        ),
        "wide": pa.array(
            [Decimal(one) for one in ("0", "1.505", "1.5", f"{'9' * 28}.{'9' * 10}")], pa.decimal128(38, 10)
        ),
        "widest": pa.array([Decimal(one) for one in ("0", "1.5", "1e40")], pa.decimal256(50, 3)),
        "f16": pa.array(np.array([*floats, 0.0999755859375], np.float16)),
        "f32": pa.array([*floats, 16777216.0, 3.4028234663852886e38], pa.float32()),
        "f64": pa.array([*floats, NEGATIVE_NAN, 1e308, 5e-324]),
        "s": pa.array(TEXTS),
        "ls": pa.array([*TEXTS[3:], "é"], pa.large_string()),
        "dictionary": pa.array(TEXTS[:4]).dictionary_encode(),
        "bin": pa.array([bytes.fromhex(one) for one in BLOBS]),
        "fixed": pa.array([b"aa", b"\xff\x00", b"\x00\x00"], pa.binary(2)),
        "flag": pa.array([True, False]),
        "d32": pa.array([dt.date.fromisoformat(day) for day in DAYS]),
        "d64": pa.array([dt.date.fromisoformat(day) for day in DAYS[:3]], pa.date64()),
        "t32": pa.array([0, 3600, 86_399], pa.int32()).cast(pa.time32("s")),
        "t64": times(pa.time64("us"), [0, 3600], [3_600_000_001, 3_600_500_000]),
        "ts_s": times(pa.timestamp("s"), moments),
        "ts_ms": times(pa.timestamp("ms"), moments, [1_767_315_600_500]),
        "ts_us": times(pa.timestamp("us"), moments, [1_767_315_600_500_000]),
        "ts_ns": times(pa.timestamp("ns"), near, [1_767_315_600_500_000_000, -1_000]),
        "utc": times(pa.timestamp("us", "UTC"), moments),
        "paris": times(pa.timestamp("us", "Europe/Paris"), moments, [1_767_315_600_500_000]),
        "fixed_zone": times(pa.timestamp("ms", "+02:00"), moments),
        "list": pa.array([[1], []], pa.list_(pa.int64())),
        "st": pa.array(
            [
                {"x": 1, "f": math.nan, "inner": {"z": 5}},
                {"x": None, "f": -0.0, "inner": None},
                {"x": 2**53 + 1, "f": None, "inner": {"z": None}},
                {"x": -1, "f": 1.5, "inner": {"z": 1}},
            ],
            pa.struct([("x", pa.int64()), ("f", pa.float64()), ("inner", pa.struct([("z", pa.int32())]))]),
        ),
    }
    count = 60
    chance = random.Random(7)
    spread = {}
    for name, values in columns.items():
        indices = [None if chance.random() < 0.15 else chance.randrange(len(values)) for _ in range(count)]
        spread[name] = values.take(pa.array(indices, pa.int32()))
    return pa.table({"row": pa.array(range(count), pa.int64()), **spread})


def python_rows(table: pa.Table) -> list[Row]:
    """Return the rows by column and by path; times as their number of nanoseconds."""
    plain = {}
    for name in table.column_names:
        arrow = table.schema.field(name).type
        if pa.types.is_time(arrow) or pa.types.is_timestamp(arrow):
            unit = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[arrow.unit]
            bits = pa.int32() if pa.types.is_time32(arrow) else pa.int64()
            values = table[name].cast(bits).to_pylist()
            plain[name] = [None if one is None else one * unit for one in values]
        else:
            plain[name] = table[name].to_pylist()
    inner = [one and one["inner"] for one in plain["st"]]
    plain |= {f"st.{name}": [one and one[name] for one in plain["st"]] for name in ("x", "f")}
    plain |= {"st.inner": inner, "st.inner.z": [one and one["z"] for one in inner]}
    return [{name: values[row] for name, values in plain.items()} for row in range(table.num_rows)]


def type_of(schema: pa.Schema, path: str) -> pa.DataType:
    """Return the type of a column or of a nested field."""
    first, *rest = path.split(".")
    arrow = schema.field(first).type
    for name in rest:
        arrow = arrow.field(name).type
    return arrow


class Conditions:
    """Makes conditions; the same seed makes the same."""

    def __init__(self, schema: pa.Schema, seed: int) -> None:
        self._schema = schema
        self._chance = random.Random(seed)
        self.used: set[str] = set()

    def condition(self, depth: int = 3) -> tuple[str, Meaning]:
        """Return a condition, and its meaning."""
        draw = self._chance.random()
        if depth == 0 or draw < 0.35:
            return self._test()
        if draw < 0.5:
            text, meaning = self.condition(depth - 1)
            return f"{self._case('not')} ({text})", lambda row: _not(meaning(row))
        word = self._chance.choice(["AND", "OR"])
        parts = [self.condition(depth - 1) for _ in range(self._chance.choice([2, 2, 3]))]
        join = _and if word == "AND" else _or
        texts = f" {self._case(word)} ".join(f"({text})" for text, _ in parts)
        return texts, lambda row: join([meaning(row) for _, meaning in parts])

    def _test(self) -> tuple[str, Meaning]:
        kind = self._chance.choice(KINDS)
        column = self._chance.choice(kind.columns)
        makers = [self._compare] * 4 + [self._in, self._null]
        if kind.ordered:
            makers += [self._between]
        if kind.columns[0] in ("s", "i8", "f16", "utc", "d32", "price"):
            makers += [self._columns]
        if kind.columns[0] == "s":
            makers += [self._like, self._text_function, self._length]
        if kind.columns[0] in ("d32", "ts_s"):
            makers += [self._part]
        if kind.columns[0] == "flag":
            makers += [self._flag] * 3
        return self._chance.choice(makers)(kind, column)

    def _compare(self, kind: Kind, column: str) -> tuple[str, Meaning]:
        sign = self._sign(kind)
        literal, value = self._literal(kind, column)
        if self._chance.random() < 0.2:
            return f"{literal} {sign} {self._name(column)}", _compared(column, MIRROR[sign], kind, value)
        return f"{self._name(column)} {sign} {literal}", _compared(column, sign, kind, value)

    def _in(self, kind: Kind, column: str) -> tuple[str, Meaning]:
        literals = [self._literal(kind, column) for _ in range(self._chance.randrange(1, 5))]
        negation = self._chance.choice(["", "NOT "])
        tests = [_compared(column, "=", kind, value) for _, value in literals]
        text = f"{self._name(column)} {negation}IN ({', '.join(text for text, _ in literals)})"
        return text, _negated(lambda row: _or([test(row) for test in tests]), bool(negation))

    def _between(self, kind: Kind, column: str) -> tuple[str, Meaning]:
        (low, lowest), (high, highest) = self._literal(kind, column), self._literal(kind, column)
        negation = self._chance.choice(["", "NOT "])
        tests = [_compared(column, ">=", kind, lowest), _compared(column, "<=", kind, highest)]
        text = f"{self._name(column)} {negation}BETWEEN {low} AND {high}"
        return text, _negated(lambda row: _and([test(row) for test in tests]), bool(negation))

    def _null(self, kind: Kind, column: str) -> tuple[str, Meaning]:
        if self._chance.random() < 0.3:
            column = self._chance.choice(ONLY_NULL)
        negation = self._chance.choice(["", "NOT "])
        return f"{self._name(column)} IS {negation}NULL", _negated(
            lambda row: row[column] is None, bool(negation)
        )

    def _columns(self, kind: Kind, column: str) -> tuple[str, Meaning]:
        alike = [
            name
            for name in kind.columns
            if {name, column} & {"widest"} == set()
            and getattr(type_of(self._schema, name), "unit", "")
            == getattr(type_of(self._schema, column), "unit", "")
            and (kind.columns[0] != "d32" or name == column)
        ]
        if not alike:
            return self._null(kind, column)
        other, sign = self._chance.choice(alike), self._sign(kind)

        def meaning(row: Row) -> bool | None:
            left, right = row[column], row[other]
            return None if None in (left, right) else SIGNS[sign](kind.stored(left), kind.stored(right))

        return f"{self._name(column)} {sign} {self._name(other)}", meaning

    def _like(self, kind: Kind, column: str) -> tuple[str, Meaning]:
        pattern = self._chance.choice(PATTERNS)
        negation = self._chance.choice(["", "NOT "])
        parts = re.findall(r"\\.|[%_]|.", pattern, re.DOTALL)
        regex = "".join({"%": ".*", "_": "."}.get(part, re.escape(part[-1])) for part in parts)

        def meaning(row: Row) -> bool | None:
            return None if row[column] is None else bool(re.fullmatch(regex, row[column], re.DOTALL))

        text = f"{self._name(column)} {negation}LIKE {_quoted(pattern)}"
        return text, _negated(meaning, bool(negation))

    def _text_function(self, kind: Kind, column: str) -> tuple[str, Meaning]:
        name = self._chance.choice(["starts_with", "ends_with", "contains"])
        part = self._chance.choice([*TEXTS, "t'", "y", "%"])
        tests: dict[str, Callable[[str], bool]] = {
            "starts_with": lambda text: text.startswith(part),
            "ends_with": lambda text: text.endswith(part),
            "contains": lambda text: part in text,
        }
        return (
            f"{name}({self._name(column)}, {_quoted(part)})",
            lambda row: None if row[column] is None else tests[name](row[column]),
        )

    def _length(self, kind: Kind, column: str) -> tuple[str, Meaning]:
        name, number, sign = (
            self._chance.choice(["length", "octet_length"]),
            self._chance.choice(["0", "1", "2.5", "3", "5"]),
            self._sign(kind),
        )

        def meaning(row: Row) -> bool | None:
            text = row[column]
            if text is None:
                return None
            return SIGNS[sign](len(text if name == "length" else text.encode()), Decimal(number))

        return f"{name}({self._name(column)}) {sign} {number}", meaning

    def _part(self, kind: Kind, column: str) -> tuple[str, Meaning]:
        part, sign = self._chance.choice(["year", "month", "day"]), self._sign(kind)
        number = self._chance.choice(["1", "12", "31", "2026", "1969.5"])

        def meaning(row: Row) -> bool | None:
            value = row[column]
            if value is None:
                return None
            if not isinstance(value, dt.date):
                value = dt.date(1970, 1, 1) + dt.timedelta(days=value // (86_400 * 10**9))
            return SIGNS[sign](getattr(value, part), Decimal(number))

        return f"{part}({self._name(column)}) {sign} {number}", meaning

    def _flag(self, kind: Kind, column: str) -> tuple[str, Meaning]:
        shown = self._name(column)
        return self._chance.choice(
            [
                (shown, lambda row: row[column]),
                (f"NOT {shown}", lambda row: _not(row[column])),
                (f"{shown} IS TRUE", lambda row: row[column] is True),
                (f"{shown} IS NOT FALSE", lambda row: row[column] is not False),
                ("TRUE", lambda row: True),
                ("FALSE", lambda row: False),
            ]
        )

    def _literal(self, kind: Kind, column: str) -> tuple[str, Any]:
        text = self._chance.choice(kind.literals)
        return text, kind.written(text, type_of(self._schema, column))

    def _sign(self, kind: Kind) -> str:
        return self._chance.choice(list(SIGNS) if kind.ordered else ["=", "!=", "<>", "=="])

    def _name(self, column: str) -> str:
        self.used.add(column)
        quote = self._chance.choice(["", "", "`", '"'])
        parts = [self._case(part) for part in column.split(".")]
        return ".".join(f"{quote}{part}{quote}" for part in parts)

    def _case(self, text: str) -> str:
        return self._chance.choice([text, text, text.upper()])


SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda left, right: left == right,
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<>": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
MIRROR = {"=": "=", "==": "==", "!=": "!=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _compared(column: str, sign: str, kind: Kind, value: Any) -> Meaning:
    return lambda row: None if row[column] is None else SIGNS[sign](kind.stored(row[column]), value)


def _negated(meaning: Meaning, negated: bool) -> Meaning:
    return (lambda row: _not(meaning(row))) if negated else meaning


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _and(values: list[bool | None]) -> bool | None:
    return False if False in values else None if None in values else True


def _or(values: list[bool | None]) -> bool | None:
    return True if True in values else None if None in values else False
