"""The cost of the metastore per commit: pylance's appends of one row, with and without it, in turn.

The calls that an append makes are counted in tests/integration/managed/test_call_counts.py. After a
conflict of several writers, Lance waits for a time that depends on the duration of its first attempt.
"""

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path

import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from tests.benchmarks.managed.appends import BARE, BY_PATH, MANAGED, Target, append_all
from tests.benchmarks.timing import Measure, interleaved, timed
from tests.support.lakes import hive_lake

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

APPENDS, ROUNDS = 5, 20
_SPAWN = multiprocessing.get_context("spawn")  # Lance doesn't survive a fork


@pytest.fixture(params=["metastore", "hms4"], ids=["2.3.10", "4.0.1"])
def server(request: pytest.FixtureRequest) -> MetastoreServer:
    found: MetastoreServer = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize(("writers", "tables"), [(1, 1), (8, 8), (8, 1)])
def test_a_managed_append_takes_little_longer_than_its_metastore_calls(
    server: MetastoreServer,
    database: str,
    tmp_path: Path,
    show: Callable[..., None],
    writers: int,
    tables: int,
) -> None:
    with ProcessPoolExecutor(writers, _SPAWN) as pool:

        def appends(how: str) -> Measure:
            targets = declared(server, database, tmp_path, how, tables) * (writers // tables)
            return timed(lambda: list(pool.map(append_all, targets, repeat(APPENDS))))

        times = interleaved(ROUNDS, {how: appends(how) for how in (MANAGED, BARE, BY_PATH)})
    commits = writers * APPENDS
    rates = ", ".join(f"{how} {commits / times.median(how):.1f}" for how in times.rounds)
    show(f"{writers} writers of {tables} tables, {APPENDS} commits each; commits a second: {rates}", times)
    assert times.ratio(MANAGED, BARE) <= (2 if tables == writers else 10)
    assert times.ratio(MANAGED, BY_PATH) <= 40


def declared(server: MetastoreServer, database: str, root: Path, how: str, tables: int) -> Sequence[Target]:
    """New tables at version 1, with the row 0."""
    managed_by = "impl" if how == MANAGED else "storage"
    with hive_lake(server, root).connect() as namespace:
        namespace.create_namespace({"id": [database], "mode": "exist_ok"})
        made = []
        for number in range(tables):
            table = (database, f"{how.replace(' ', '_')}_{number}")
            answer = namespace.declare_table({"id": list(table), "properties": {"managed_by": managed_by}})
            made.append(Target(server.uri, str(root), table, answer.location, how))
            # Each append without a dataset would create one, so it must exist before the writers start.
            made[-1].append(0)
    return made
