"""Writes beside drops, conversions, registrations and adoptions, each stopped before each of its requests.

While one is stopped, the other runs from its beginning to its end, and then others write: as if the first
one had died. Then the first one resumes. Whatever the order, each row whose write was acknowledged is read by
name, exactly once; a write that was refused succeeds when it is run again; and nobody is stuck.
"""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import pytest
from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidTableStateError,
    TableAlreadyExistsError,
    TableNotFoundError,
    TableVersionNotFoundError,
)

from tests.servers.s3_double import S3Double
from tests.servers.stops import run_stopped, stops_of
from tests.unit.spark.commit.memory_lake import PARTS, Lake, presume_dead, wait_for_nobody

AGAIN, OLD, WRITTEN, OTHERS = 0, 1, 2, 3
"""The rows: of the table declared again, of the table before, of the write, and of others."""
SECONDS = 60


def write(lake: Lake) -> None:
    lake.write(WRITTEN)


def to_metastore(lake: Lake) -> None:
    lake.namespace.convert_table(PARTS, managed_by="impl")


def to_storage(lake: Lake) -> None:
    lake.namespace.convert_table(PARTS, managed_by="storage")


def register(lake: Lake, managed_by: str) -> None:
    location = lake.namespace.describe_table({"id": PARTS}).location
    properties = {"managed_by": managed_by}
    lake.namespace.register_table(
        {"id": PARTS, "location": location, "mode": "overwrite", "properties": properties}
    )


def register_managed(lake: Lake) -> None:
    register(lake, "impl")


def register_unmanaged(lake: Lake) -> None:
    register(lake, "storage")


def replace(lake: Lake) -> None:
    """Drop the table and declare it again, as far as an earlier try hasn't."""
    with contextlib.suppress(TableNotFoundError):
        if lake.namespace.describe_table({"id": PARTS}).properties.get("new") is None:
            lake.namespace.drop_table({"id": PARTS})
    with contextlib.suppress(TableAlreadyExistsError):
        lake.declare(lake.managed_by, new="yes")
    lake.write(AGAIN)


def adopt(lake: Lake) -> None:
    lake.namespace.adopt_table(PARTS)


@dataclass(frozen=True)
class Pair:
    """A table of a kind, and what is done to it beside a write."""

    managed_by: str
    other: Callable[[Lake], None]


PAIRS = {
    "drop-storage": Pair("storage", replace),
    "drop-metastore": Pair("impl", replace),
    "to-metastore": Pair("storage", to_metastore),
    "to-storage": Pair("impl", to_storage),
    "register-managed": Pair("storage", register_managed),
    "register-unmanaged": Pair("impl", register_unmanaged),
    "register-again": Pair("impl", register_managed),
    "adopt": Pair("impl", adopt),
}


@pytest.fixture(params=["alive", "presumed-dead"])
def lease(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether the one that is stopped is presumed dead."""
    wait_for_nobody(monkeypatch)
    if request.param == "presumed-dead":
        presume_dead(monkeypatch)
    return str(request.param)


def is_done(run: Callable[[Lake], None], lake: Lake) -> bool:
    """Whether a run succeeds; it may be refused in words, so that it is retried or that the data is gone."""
    try:
        run(lake)
    except (ConcurrentModificationError, TableNotFoundError, TableVersionNotFoundError):
        return False
    except InvalidTableStateError as error:
        if "a drop of the table is running or was interrupted" not in str(error):
            raise
        return False
    return True


def again(run: Callable[[Lake], None], lake: Lake) -> None:
    """Run what was refused until it is done: nobody is stuck."""
    assert any(is_done(run, lake) for _ in range(3)), run


def new_lake(s3: S3Double, pair: Pair) -> Lake:
    lake = Lake(s3, pair.managed_by)
    lake.declare(pair.managed_by)
    lake.write(OLD)
    return lake


def requests_of(run: Callable[[Lake], None], pair: Pair) -> int:
    with S3Double("lake") as s3:
        lake = new_lake(s3, pair)
        return stops_of(lake.gate, lambda: run(lake))


def play(
    lake: Lake,
    pair: Pair,
    at: int,
    *,
    write_is_stopped: bool,
    resumes: bool,
    presume_dead: Callable[[], None],
) -> None:
    """Stop one before a request, run the other, let others write, and resume the first unless it has died."""
    stopped, runs = (write, pair.other) if write_is_stopped else (pair.other, write)
    done: dict[Callable[[Lake], None], bool] = {}

    def others() -> None:
        done[runs] = is_done(runs, lake)
        check_acknowledged(lake, pair, done)
        if not resumes:
            presume_dead()
            check_nobody_is_stuck(lake, pair, done)

    done[stopped] = run_stopped(lake.gate, at, lambda: is_done(stopped, lake), others, SECONDS)
    if resumes:
        check_acknowledged(lake, pair, done)
        presume_dead()
    check_nobody_is_stuck(lake, pair, done)


def check_acknowledged(lake: Lake, pair: Pair, done: Mapping[Callable[[Lake], None], bool]) -> None:
    """Check that the newest version reads by name, with each row that was acknowledged, once."""
    if pair.other is replace and not done.get(replace):
        return  # a drop has begun: it removes the data before the table
    rows = lake.rows()
    assert len(rows) == len(set(rows))
    if pair.other is replace:
        assert AGAIN in rows
        assert OLD not in rows
    else:
        assert OLD in rows
        assert WRITTEN in rows or not done.get(write)


def check_nobody_is_stuck(lake: Lake, pair: Pair, done: dict[Callable[[Lake], None], bool]) -> None:
    """Check that what was refused, or died, succeeds when it is run again, and that others can write."""
    if not done.get(pair.other):
        again(pair.other, lake)
        done[pair.other] = True
    again(write, lake)
    again(lambda lake: lake.write(OTHERS), lake)
    rows = lake.rows()
    assert rows == [AGAIN, WRITTEN, OTHERS] or pair.other is not replace
    assert rows == [OLD, WRITTEN, OTHERS] or pair.other is replace


FEW, SOME, ALL = 41, 19, 1
"""Each change stops at every 41st request, in CI also at every 19th, and in the long tests at each."""
STEPS = [
    pytest.param(FEW, marks=pytest.mark.slow),
    pytest.param(SOME, marks=pytest.mark.thorough),
    pytest.param(ALL, marks=[pytest.mark.long, pytest.mark.timeout(3600)]),
]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("resumes", [True, False], ids=["resumes", "dies"])
@pytest.mark.parametrize("name", PAIRS)
def test_a_write_that_is_stopped_anywhere_is_neither_lost_nor_doubled(
    name: str, resumes: bool, step: int, lease: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = PAIRS[name]
    for at in range(0, requests_of(write, pair), step):
        with S3Double("lake") as s3, monkeypatch.context() as context:
            dead = partial(presume_dead, context)
            play(new_lake(s3, pair), pair, at, write_is_stopped=True, resumes=resumes, presume_dead=dead)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("resumes", [True, False], ids=["resumes", "dies"])
@pytest.mark.parametrize("name", PAIRS)
def test_what_changes_a_table_may_be_stopped_anywhere_beside_a_write(
    name: str, resumes: bool, step: int, lease: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = PAIRS[name]
    for at in range(0, requests_of(pair.other, pair), step):
        with S3Double("lake") as s3, monkeypatch.context() as context:
            dead = partial(presume_dead, context)
            play(new_lake(s3, pair), pair, at, write_is_stopped=False, resumes=resumes, presume_dead=dead)
