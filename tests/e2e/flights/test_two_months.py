"""Two months ingested by the quickstart, compared with results of pandas from the same files."""

from typing import Any

import pandas
import pytest

from tests.e2e.flights import expected
from tests.support.flights import Pipeline

pytestmark = pytest.mark.thorough

TWO_MONTHS = 2
"""The version of each table after the quickstart; another test may have added a month."""


def test_each_month_is_ingested_completely_and_once(pipeline: Pipeline) -> None:
    flights, weather = (pipeline.table(name, TWO_MONTHS) for name in ("flights", "weather"))

    assert flights.groupby("month").size().to_dict() == {1: 27004, 2: 24951}
    assert weather.groupby("month").size().to_dict() == {1: 2226, 2: 2010}


@pytest.mark.parametrize("table", ["flights", "weather"])
def test_ingested_rows_equal_the_source_rows(pipeline: Pipeline, table: str) -> None:
    raw = getattr(expected, table)()
    keys = ["time_hour", "origin", *(["carrier", "flight", "dest"] if table == "flights" else [])]

    ingested = pipeline.table(table, TWO_MONTHS).sort_values(keys, ignore_index=True)
    ingested = ingested.mask(ingested.isna())  # None in a table, NaN in a CSV

    months = raw[raw["month"] <= 2].sort_values(keys, ignore_index=True)
    pandas.testing.assert_frame_equal(ingested, months, check_dtype=False)


@pytest.mark.parametrize("month", [1, 2])
def test_delays_equal_those_computed_by_pandas(pipeline: Pipeline, month: int) -> None:
    delays = pipeline.table("delays", TWO_MONTHS)

    of_month = delays[delays["month"] == month].sort_values(expected.HOUR, ignore_index=True)

    right = expected.delays(month)
    pandas.testing.assert_frame_equal(of_month[right.columns], right, check_dtype=False, check_exact=True)


def test_the_quickstart_shows_rows_versions_and_next_steps(pipeline: Pipeline) -> None:
    for text in (
        "2013-01 ingest_delays: success",
        "51,955",
        "27,004 → 1",
        "2 of flights, 2 of weather",
        "continues with 2013-03 and 2013-04",
        str(pipeline.home.folder / "logs"),
    ):
        assert text in pipeline.said


def test_the_shown_python_snippet_opens_the_table(pipeline: Pipeline) -> None:
    lines = [line.strip() for line in pipeline.said.splitlines()]
    first = lines.index("import lance")

    names: dict[str, Any] = {}
    exec(lines[first], names)
    delays = eval(lines[first + 1], names)

    assert len(delays) == len(pipeline.table("delays", TWO_MONTHS))


@pytest.mark.long  # every change runs test_runs_that_share_a_key_leave_its_rows_once, on the operator alone
def test_a_month_that_is_ingested_again_replaces_its_rows(pipeline: Pipeline) -> None:
    before = pipeline.versions()
    rows = len(pipeline.table("delays", before["delays"]))

    tasks = pipeline.run("2013-01")

    assert {task["state"] for task in tasks.values()} == {"success"}
    assert [tasks[f"ingest_{name}"]["xcom"]["outcome"] == "done" for name in before] == [True, True, True]
    assert pipeline.versions() == {name: version + 1 for name, version in before.items()}
    assert len(pipeline.table("delays", pipeline.versions()["delays"])) == rows
