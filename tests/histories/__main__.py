"""Run histories: ``python -m tests.histories --seeds 0:1000 --kind hive``; prints each that fails."""

import argparse
import itertools
import logging
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from airflow_provider_lancens.embedded import EmbeddedMetastore
from airflow_provider_lancens.spark.session import spark_session
from tests.histories.history import MakeTable, draw, run, shortened
from tests.histories.table import Table
from tests.servers.spark import PRELOADED


def main() -> int:
    """Run the histories of some seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:100", help="first:end")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--kind", choices=("stored", "hive"), default="stored")
    parser.add_argument("--spark", action="store_true", help="with a real session")
    parser.add_argument("--stable", choices=("yes", "no"), help="stable row ids; else two thirds have them")
    parser.add_argument("--shorten", action="store_true", help="shorten histories that fail")
    parser.add_argument("--minutes", type=float, help="end after so many")
    parser.add_argument("--keep", help="positions of steps to run, such as 3,5,9")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    first, _, end = given.seeds.partition(":")
    stable = None if given.stable is None else given.stable == "yes"
    started, counts, failures, steps, done = time.monotonic(), Counter[str](), 0, 0, 0
    with ExitStack() as stack:
        make = _maker(stack, given.kind, _session(stack) if given.spark else None)
        for seed in range(int(first), int(end or int(first) + 1)):
            if given.minutes and time.monotonic() - started > 60 * given.minutes:
                break
            drawn = draw(seed, given.steps)
            if given.keep:
                drawn = [drawn[int(one)] for one in given.keep.split(",")]
            outcome = run(make, seed, drawn, stable=stable)
            counts += outcome.counts
            steps, done = steps + outcome.steps, done + 1
            if outcome.problem is not None:
                failures += 1
                if given.shorten:
                    outcome = shortened(make, seed, drawn, stable=stable)
                _say(outcome)
            if done % 50 == 0:
                _say(_summary(done, steps, failures, started))
    for name, count in sorted(counts.items()):
        _say(f"{count:8} {name}")
    _say(
        f"{_summary(done, steps, failures, started)}: seeds {given.seeds}, {given.kind}, spark={given.spark}"
    )
    return 1 if failures else 0


def _say(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def _summary(done: int, steps: int, failures: int, started: float) -> str:
    minutes = (time.monotonic() - started) / 60
    return f"{done} histories, {steps} steps, {failures} failures, {minutes:.1f} minutes"


def _maker(stack: ExitStack, kind: str, spark: Any) -> MakeTable:
    if kind == "stored":
        return lambda folder: Table.stored(folder, spark)
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="metastore-"))
    uri = stack.enter_context(EmbeddedMetastore(Path(folder))).uri
    names: Iterator[str] = (f"h{number}_{uuid.uuid4().hex[:6]}" for number in itertools.count())
    return lambda folder: Table.on_hive(folder, uri, next(names), spark)


def _session(stack: ExitStack) -> Any:
    conf = {
        "spark.master": "local[2]",
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        **PRELOADED,
    }
    session = stack.enter_context(spark_session("histories", conf))
    session.sparkContext.setLogLevel("OFF")
    return session


raise SystemExit(main())
