"""Seconds of everyday steps, as JSON: opening a table, a commit, a poll of 100 tables, a request of the page.

A program of its own, so that it measures whichever tree is on the path: it uses only what former commits have
too. `test_everyday_steps` runs it for two trees in turn.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import lance
import pyarrow as pa
from lance.fragment import write_fragments
from lance_namespace import DeclareTableRequest

from airflow_provider_lancens.namespace.storage.object_store import latest_version
from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.commit.append_overwrite import KINDS
from airflow_provider_lancens.spark.commit.committer import Committer
from airflow_provider_lancens.spark.keys import Counts, KeyedWrite
from airflow_provider_lancens.spark.table.resolved_table import resolved_table
from airflow_provider_lancens.ui.table_details import describe
from tests.servers.s3_double import S3Double

ROWS = pa.table({"n": list(range(100))})
POLLED = 100
TIMES = 15


def created(root: str, storage: dict[str, str]) -> NamespaceSpec:
    """Create a table of ten versions."""
    spec = NamespaceSpec("dir", {"root": root, **{f"storage.{name}": storage[name] for name in storage}})
    spec.connect().declare_table(DeclareTableRequest(id=["t"]))
    for _ in range(10):
        lance.write_dataset(ROWS, f"{root}/t.lance", mode="append", storage_options=storage)
    return spec


def opened(spec: NamespaceSpec) -> None:
    with resolved_table(spec, "t") as target:
        assert target.open_latest() is not None


def committed(spec: NamespaceSpec, key: str) -> None:
    with resolved_table(spec, "t") as target:
        base = target.open_latest()
        assert base is not None
        options = dict(target.dataset.storage_options)
        fragments = write_fragments(ROWS, base, mode="append", storage_options=options)
        change = KINDS["append"](
            str(target.id), base.version, ROWS.schema, fragments, written_for=base.lance_schema
        )
        Committer(target, KeyedWrite(key), Counts(100, 1, 1000)).commit(change)


def polled(root: str) -> None:
    """List the newest versions of tables, as a poll does where the storage decides them."""
    for _ in range(POLLED):
        latest_version(f"{root}/t.lance", {})


def requested(spec: NamespaceSpec) -> None:
    hook: Any = SimpleNamespace(get_reader=lambda: spec, get_conn=lambda: spec)
    describe(hook, "t")


def seconds(step: Callable[[], object]) -> float:
    """Return the median of several calls, after one that loads what it needs."""
    step()
    taken = []
    for _ in range(TIMES):
        started = time.perf_counter()
        step()
        taken.append(time.perf_counter() - started)
    return median(taken)


def main() -> None:
    """Print the seconds of each step."""
    with tempfile.TemporaryDirectory() as folder, S3Double() as s3:
        root = str(Path(folder).resolve())
        local, remote = created(root, {}), created("s3://lake/root", s3.storage)
        keys = iter(range(10**6))
        steps: dict[str, Callable[[], object]] = {
            "open a local table": lambda: opened(local),
            "open a table on S3": lambda: opened(remote),
            "commit to a local table": lambda: committed(local, f"key-{next(keys)}"),
            "commit to a table on S3": lambda: committed(remote, f"key-{next(keys)}"),
            f"poll {POLLED} tables": lambda: polled(root),
            "request of the page": lambda: requested(local),
        }
        sys.stdout.write(json.dumps({name: seconds(step) for name, step in steps.items()}))


if __name__ == "__main__":
    main()
