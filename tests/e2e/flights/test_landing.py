"""A month's raw data for Spark: complete, and with the same types in every month."""

from functools import cache
from pathlib import Path
from typing import Any

import pandas
import pyarrow.parquet as parquet
import pytest
from nycflights.landing import land
from nycflights.months import MONTHS

from tests.e2e.flights import expected

pytestmark = pytest.mark.long  # each change ingests two months


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    folder = tmp_path_factory.mktemp("landing")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pandas, "read_csv", parsed_once(pandas.read_csv))
        return {table: [land(table, month, folder) for month in MONTHS] for table in ("flights", "weather")}


def parsed_once(read_csv: Any) -> Any:
    """The function, with each file of the year parsed only once."""

    @cache
    def parsed(file: str, dtype: tuple[tuple[str, str], ...]) -> pandas.DataFrame:
        return read_csv(file, dtype=dict(dtype))

    return lambda file, dtype: parsed(file, tuple(dtype.items())).copy()


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


def test_only_complete_files_are_left(landed: dict[str, list[Path]]) -> None:
    for files in landed.values():
        assert sorted(files[0].parent.iterdir()) == files
