"""What an old table costs beside a young one: keys, writes and clean-ups, in seconds, requests and memory.

``LANCENS_BENCHMARK_VERSIONS`` names the ages, such as ``100,1000``. A write is what its driver does: Spark's
own part doesn't depend on the table's age. On S3 each request takes `LATENCY` more than the double needs.
"""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import lance
import pytest

from airflow_provider_lancens.namespace.property_keys import STORAGE_PREFIX
from airflow_provider_lancens.spark.keys import look_up
from airflow_provider_lancens.spark.options import WriteIdentity
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from tests.benchmarks.figures import Figure
from tests.benchmarks.spark import old_table_steps
from tests.old_table import ROW, commit, key_of, local_table, s3_table
from tests.servers.s3_double import S3Double

pytestmark = [pytest.mark.long, pytest.mark.timeout(7200)]

AGES = [int(text) for text in os.environ.get("LANCENS_BENCHMARK_VERSIONS", "100,1000,10000").split(",")]
ROUNDS = 5
LATENCY = 0.02
GROWTH = 1.2
"""How many times as long anything but a clean-up may take at the greatest age as at the lowest."""
MOST = 10
"""Requests of a look-up."""
APPEND = "append by pylance"
LISTINGS = {"look up a new key": 1, "look up an old key": 1, "write a new key": 3}
"""How often each step asks Lance for the newest version. On local files Lance lists all versions for that, as
its own append does once; on S3 it asks for the first name of the list."""


@dataclass
class Figures:
    """What was measured of one step at one age."""

    seconds: list[float] = field(default_factory=list)
    requests: Counter[str] = field(default_factory=Counter)
    """Of the last round."""
    megabytes: float = 0.0

    @property
    def median(self) -> float:
        return median(self.seconds)

    @property
    def seconds_a_request(self) -> float:
        """On S3, where an old table may need one request more; on local files, all of the time."""
        return self.median / max(self.requests.total(), 1)

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.requests.most_common())
        memory = f"{self.megabytes:5.0f} MB" if self.megabytes else ""
        return f"{self.median:9.3f} s {self.requests.total():8} requests ({kinds}) {memory}"


@dataclass
class Place:
    """Where tables are stored."""

    name: str
    root: str
    storage: dict[str, str]
    grow: Callable[[str, int], ResolvedTable]
    s3: S3Double | None = None

    def properties(self, folder: str) -> dict[str, str]:
        storage = {STORAGE_PREFIX + name: value for name, value in self.storage.items()}
        return {"root": f"{self.root}/{folder}", **storage}

    @contextmanager
    def measured(self, figures: Figures) -> Iterator[None]:
        with ExitStack() as counting:
            if self.s3:
                self.s3.latency = LATENCY
                figures.requests = counting.enter_context(self.s3.counted())
            started = time.perf_counter()
            yield
            figures.seconds.append(time.perf_counter() - started)
        if self.s3:
            self.s3.latency = 0


@pytest.fixture(params=["local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "local":
        yield Place("local", str(tmp_path), {}, lambda name, age: local_table(tmp_path / name, age))
        return
    with S3Double() as s3:
        yield Place("S3", f"s3://{s3.bucket_name}", s3.storage, lambda name, age: s3_table(s3, name, age), s3)


def test_ages(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """An old table costs what a young one does."""
    found: dict[int, dict[str, Figures]] = {}
    kept = Figure(f"versions-{place.name.lower()}", axis="versions")
    for age in AGES:
        found[age] = {**steps_of(place, age), **clean_ups_of(place, age)}
        with capsys.disabled():
            print(f"\n{place.name}, {age:,} versions")  # noqa: T201
            for name, figures in found[age].items():
                print(f"  {name:24} {figures}")  # noqa: T201
        record(kept, age, found[age])
    kept.save()
    young, old = found[AGES[0]], found[AGES[-1]]
    for name, listings in LISTINGS.items():
        assert young[name].requests.total() == pytest.approx(old[name].requests.total(), abs=1)
        listed = 0 if place.s3 else listings * (old[APPEND].median - young[APPEND].median)
        assert old[name].seconds_a_request <= GROWTH * (young[name].seconds_a_request + listed)
    assert old["look up a new key"].requests.total() <= MOST


def record(kept: Figure, age: int, found: Mapping[str, Figures]) -> None:
    for name, figures in found.items():
        kept.add("seconds", name, age, figures.seconds)
        if figures.requests:
            kept.add("requests", name, age, [figures.requests.total()])


def steps_of(place: Place, age: int) -> dict[str, Figures]:
    target = place.grow(f"{age}/orders.lance", age)
    names = ("look up a new key", "look up an old key", "write a new key", APPEND)
    figures = {name: Figures() for name in names}
    for newest in range(age, age + ROUNDS):
        with place.measured(figures["look up a new key"]):
            look_up(target, WriteIdentity("new"))
        with place.measured(figures["look up an old key"]):
            assert look_up(target, WriteIdentity(key_of(age // 2), on_existing_key="skip")).earlier
        with place.measured(figures["write a new key"]):
            look_up(target, WriteIdentity(key_of(newest + 1)))
            commit(target, newest + 1)
    for _ in range(ROUNDS):
        with place.measured(figures[APPEND]):
            options = dict(target.dataset.storage_options)
            lance.write_dataset(ROW, target.dataset.location, mode="append", storage_options=options)
    return figures


def clean_ups_of(place: Place, age: int) -> dict[str, Figures]:
    figures = {"clean up": Figures(), "clean up by pylance": Figures()}
    for name, by in (("clean up", "package"), ("clean up by pylance", "lance")):
        if by == "lance":
            place.grow(f"{age}-lance/orders.lance", age)
        folder = str(age) if by == "package" else f"{age}-lance"
        command = [sys.executable, "-m", old_table_steps.__name__, by, json.dumps(place.properties(folder))]
        with place.measured(figures[name]):
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        figures[name].seconds[-1], figures[name].megabytes = json.loads(done.stdout)
    return figures
