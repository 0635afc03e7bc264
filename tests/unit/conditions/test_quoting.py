"""Values as they are written in conditions."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_lancens import connect, literal

ZONE = dt.timezone(dt.timedelta(hours=2))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("O'Neill", "'O''Neill'"),
        ("' OR TRUE -- ; \\ \" %_ é\n\0{{ ds }}", None),
        ("", "''"),
        (-3, "-3"),
        (2**63 - 1, None),
        (1.5e-300, "1.5e-300"),
        (-0.0, None),
        (float("nan"), "'nan'"),
        (float("-inf"), None),
        (Decimal("-12.50"), "-12.50"),
        (Decimal("1E+3"), "1000"),
        (b"\x00\xff", "X'00ff'"),
        (dt.date(2026, 11, 1), "DATE '2026-11-01'"),
        (dt.datetime(2026, 11, 1, 12, 0, 0, 123456), "TIMESTAMP '2026-11-01T12:00:00.123456'"),  # noqa: DTZ001
        (dt.datetime(2026, 11, 1, 12, tzinfo=ZONE), "TIMESTAMP '2026-11-01T12:00:00+02:00'"),
        (True, "TRUE"),
    ],
)
def test_a_condition_finds_the_value_and_no_other(value: Any, text: str | None, tmp_path: Path) -> None:
    table = connect("dir", {"root": str(tmp_path)}).declare_table("t")
    others = [not value] if isinstance(value, bool) else [type(value)(1)] if isinstance(value, int) else []
    table.append(pa.table({"x": [value, None, *others]}))

    assert table.to_arrow(filter=f"x = {literal(value)}").num_rows == 1
    assert text is None or literal(value) == text


@pytest.mark.parametrize("value", [None, ["a"], dt.timedelta(1), object()])
def test_anything_else_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="literal: expected text, a number"):
        literal(value)
