"""A month's raw data on its way to Spark: complete, and with the types that every month shares."""

from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from nycflights.landing import land
from nycflights.months import MONTHS

from tests.e2e.flights import expected

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    folder = tmp_path_factory.mktemp("landing")
    return {table: [land(table, month, folder) for month in MONTHS] for table in ("flights", "weather")}


@pytest.mark.parametrize("table", ["flights", "weather"])
def test_the_months_are_the_whole_year(table: str, landed: dict[str, list[Path]]) -> None:
    months = [parquet.read_metadata(file).num_rows for file in landed[table]]

    raw = getattr(expected, table)()
    assert months == raw.groupby("month").size().tolist()
    assert sum(months) == len(raw)


@pytest.mark.parametrize("table", ["flights", "weather"])
def test_every_month_has_the_same_columns(table: str, landed: dict[str, list[Path]]) -> None:
    schemas = [parquet.read_schema(file).remove_metadata() for file in landed[table]]

    assert all(schema == schemas[0] for schema in schemas)


def test_nothing_but_whole_files_is_left(landed: dict[str, list[Path]]) -> None:
    for files in landed.values():
        assert sorted(files[0].parent.iterdir()) == files
