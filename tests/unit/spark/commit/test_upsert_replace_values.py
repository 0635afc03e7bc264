"""An overwrite by columns replaces the rows whose values in them occur in the new rows, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    InvalidTableStateError,
)

from airflow_provider_lancens import LanceCatalog, Table, WriteIdentity, connect
from airflow_provider_lancens.spark.commit.committer import Committer

COLUMNS = {"id": "bigint", "day": "string", "hour": "int", "share": "double"}


@pytest.fixture
def lake(tmp_path: Path) -> LanceCatalog:
    return connect("dir", {"root": str(tmp_path)})


@pytest.fixture
def orders(lake: LanceCatalog) -> Table:
    """A table with rows of two days, in two files, of which one is in both."""
    table = lake.declare_table("orders", schema=COLUMNS)
    table.append(of((1, "mon", 1), (2, "tue", 1)))
    table.append(of((3, "mon", 2), (4, None, 2)))
    return table


def of(*rows: tuple[int, Any, Any], shares: Any = None) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    types = (pa.int64(), pa.string(), pa.int32())
    arrays = [pa.array(values, kind) for values, kind in zip(columns, types, strict=True)]
    arrays.append(pa.array(shares or [None] * len(rows), pa.float64()))
    return pa.table(arrays, names=list(COLUMNS))


def ids(table: Table) -> list[int]:
    return sorted(table.to_arrow(columns=["id"])["id"].to_pylist())


def test_the_rows_of_the_days_that_occur_are_replaced(orders: Table) -> None:
    made = orders.overwrite(of((5, "mon", 1), (6, "mon", 9), (7, "wed", 1)), on=["day"])

    assert (made.inserted, made.updated, made.deleted, made.version, made.is_done) == (3, 0, 2, 4, True)
    assert ids(orders) == [2, 4, 5, 6, 7]


def test_the_values_of_several_columns_are_compared_together(orders: Table) -> None:
    orders.overwrite(of((5, "mon", 1), (6, "tue", 2)), on=["day", "hour"])

    assert ids(orders) == [2, 3, 4, 5, 6]


def test_numbers_that_are_equal_replace_each_other(lake: LanceCatalog) -> None:
    table = lake.declare_table("shares", schema=COLUMNS)
    table.append(of((1, "a", 1), (2, "a", 1), (3, "a", 1), shares=[0.0, -0.0, float("nan")]))

    table.overwrite(of((4, "a", 1), (5, "a", 1), shares=[-0.0, float("nan")]), on=["share"])

    assert ids(table) == [4, 5]


def test_no_rows_replace_nothing(orders: Table) -> None:
    assert not orders.overwrite(of(), on=["day"]).is_done
    assert ids(orders) == [1, 2, 3, 4]


def test_the_first_write_may_be_one(lake: LanceCatalog) -> None:
    table = lake.declare_table("new")

    assert table.overwrite(of((1, "mon", 1)), on=["day"]).version == 1


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"on": "day"}, "on: expected a list of names, got 'day'"),
        ({"on": []}, "on: expected a list of columns"),
        ({"on": ["week"]}, "column 'week' does not exist"),
        ({"on": ["day"], "where": "id = 1"}, "on: not allowed with where"),
        ({"on": ["day"], "schema_mode": "overwrite"}, "strict or merge with where or on"),
    ],
)
def test_invalid_columns_are_refused(orders: Table, how: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        orders.overwrite(of((5, "mon", 1)), **how)
    assert ids(orders) == [1, 2, 3, 4]


def test_rows_without_a_value_are_refused(orders: Table) -> None:
    with pytest.raises(InvalidInputError, match="on: day is null in 1 rows of the source"):
        orders.overwrite(of((5, None, 1)), on=["day"])
    assert ids(orders) == [1, 2, 3, 4]


def test_a_repetition_replaces_the_rows_of_its_days_and_a_retry_finds_them(orders: Table) -> None:
    first = [WriteIdentity("load", execution_id=text) for text in ("1", "1", "2")]
    made = [orders.overwrite(of((5, "mon", 1), (6, "tue", 1)), on=["day"], key=one) for one in first]
    assert [(one.version, one.is_done) for one in made] == [(4, True), (4, False), (5, True)]

    # Late rows of another day: of a day that doesn't occur any more the rows stay.
    orders.overwrite(of((7, "mon", 1), (8, "wed", 1)), on=["day"], key="load")
    assert ids(orders) == [4, 6, 7, 8]
    with pytest.raises(
        InvalidInputError, match="replaced the rows with the same values; an append can't replace"
    ):
        orders.append(of((9, "mon", 1)), key="load")


def test_a_staged_one_is_published_over_other_rows_and_refused_over_its_own(orders: Table) -> None:
    staged, conflicting = (orders.overwrite(of((5, "mon", 1)), on=["day"], stage=True) for _ in range(2))
    orders.append(of((6, "tue", 1)))
    assert ids(orders) == [1, 2, 3, 4, 6]

    orders.publish(staged)
    assert ids(orders) == [2, 4, 5, 6]
    with pytest.raises(InvalidTableStateError, match="other writers wrote rows with the same day"):
        orders.publish(conflicting)


@pytest.mark.parametrize(
    ("others", "left"),
    [
        (lambda table: table.append(of((6, "tue", 1))), [2, 4, 5, 6]),
        (lambda table: table.delete("id = 1"), [2, 4, 5]),
        (lambda table: lance.dataset(table.location).optimize.compact_files(), [2, 4, 5]),
        (lambda table: table.append(of((6, "mon", 7))), None),
        (lambda table: table.restore(2), [2, 5]),
    ],
    ids=["rows of another day", "a deletion", "a compaction", "rows of the day", "a restore that adds none"],
)
def test_rows_that_others_write_meanwhile_with_these_values_conflict(
    orders: Table, monkeypatch: pytest.MonkeyPatch, others: Any, left: list[int] | None
) -> None:
    real, done = Committer.commit, []

    def interrupted(self: Committer, *args: Any, **kwargs: Any) -> Any:
        if not done:
            done.append(True)
            others(orders)
        return real(self, *args, **kwargs)

    monkeypatch.setattr(Committer, "commit", interrupted)
    if left is None:
        with pytest.raises(ConcurrentModificationError):
            orders.overwrite(of((5, "mon", 1)), on=["day"])
    else:
        orders.overwrite(of((5, "mon", 1)), on=["day"])
        assert ids(orders) == left


values = st.lists(st.tuples(st.sampled_from(["a", "b", "c", "A", ""]), st.integers(0, 2)), max_size=6)


@given(before=values, after=values, on=st.sampled_from([["day"], ["hour"], ["day", "hour"], ["hour", "day"]]))
def test_it_agrees_with_a_plain_model(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[tuple[str, int]],
    after: list[tuple[str, int]],
    on: list[str],
) -> None:
    lake = connect("dir", {"root": str(tmp_path_factory.mktemp("lake"))})
    table = lake.declare_table("orders", schema=COLUMNS)
    old = [{"id": number, "day": day, "hour": hour} for number, (day, hour) in enumerate(before)]
    new = [{"id": 100 + number, "day": day, "hour": hour} for number, (day, hour) in enumerate(after)]
    for rows in (old[::2], old[1::2]):
        table.append(of(*((row["id"], row["day"], row["hour"]) for row in rows)))

    table.overwrite(of(*((row["id"], row["day"], row["hour"]) for row in new)), on=on)

    replaced = {tuple(row[name] for name in on) for row in new}
    kept = [row["id"] for row in old if tuple(row[name] for name in on) not in replaced]
    assert ids(table) == sorted([*kept, *(row["id"] for row in new)])
