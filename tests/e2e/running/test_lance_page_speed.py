"""How fast the Lance page is answered in a catalog of 1,000 tables and for a table of 10,000 versions.

The measured times are printed; run with ``-s`` to see them.
"""

import shutil
import statistics
import sys
import time
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from tests.e2e.servers import RunningAirflow
from tests.integration.airflow.tables import Table
from tests.old_table import local_table
from tests.support.running_lake import Lake

TABLES = 1_000
VERSIONS = 10_000
ROUNDS = 40
MOST_SECONDS = 1.0

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def old(lake: Lake) -> Table:
    """A table of 10,000 versions."""
    table = lake.table("old")
    local_table(Path(table.declare()), VERSIONS)
    return table


@pytest.fixture(scope="module")
def crowd(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database of 1,000 tables with data."""
    written = tmp_path_factory.mktemp("data") / "table.lance"
    lance.write_dataset(pa.table({"n": [1]}), written)
    tables = [Table(lake.namespace, f"{lake.database}_crowd", f"t{number:04}") for number in range(TABLES)]
    for table in tables:
        shutil.copytree(written, table.declare(), dirs_exist_ok=True)
    return tables[0].database


@pytest.mark.parametrize("route", ["tables", "table", "versions", "waits", "check"])
def test_ninety_five_of_a_hundred_answers_take_at_most_a_second(
    airflow: RunningAirflow, old: Table, crowd: str, route: str
) -> None:
    airflow.until(lambda: airflow.ask("/api/v2/version"))
    asked = f"namespace={crowd}" if route == "tables" else f"table={old}"

    def seconds() -> float:
        started = time.monotonic()
        assert "detail" not in airflow.get(f"/lance/api/{route}?conn=lake&{asked}")
        return time.monotonic() - started

    first, times = seconds(), [seconds() for _ in range(ROUNDS)]
    slowest = statistics.quantiles(times, n=20)[-1]
    sys.stdout.write(
        f"\n{route}: first {first:.2f} s, median {statistics.median(times):.3f} s, p95 {slowest:.3f} s\n"
    )
    assert slowest <= MOST_SECONDS
