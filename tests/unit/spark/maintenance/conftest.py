"""A table of several commits, and unreferenced files."""

from collections.abc import Iterator
from pathlib import Path

import lance
import pytest
from lance.fragment import write_fragments
from lance_namespace import LanceNamespace

from airflow_provider_lancens.spark.commit.committer import Committer
from airflow_provider_lancens.spark.keys import Counts, KeyedWrite
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable, resolved_table
from tests.support.leftovers import Leave
from tests.support.prepared_tables import ROWS, prepare


@pytest.fixture
def target(namespace: LanceNamespace) -> Iterator[ResolvedTable]:
    with resolved_table(namespace, "orders") as found:
        yield found


@pytest.fixture
def folder(target: ResolvedTable) -> Path:
    return Path(target.dataset.location)


@pytest.fixture
def table(target: ResolvedTable) -> lance.LanceDataset:
    """A table with three commits, one of which was partially deleted, and one is only in older versions."""
    for key in ("january", "february"):
        Committer(target, KeyedWrite(key), Counts()).commit(prepare(target, "append"))
    lance.dataset(target.dataset.location).delete("n = 2")
    Committer(target, KeyedWrite("march"), Counts()).commit(prepare(target, "overwrite"))
    return lance.dataset(target.dataset.location)


@pytest.fixture
def leave(target: ResolvedTable) -> Leave:
    """Write an unreferenced file, as a failed task does, and return its path."""

    def leave() -> str:
        [fragment] = write_fragments(ROWS, target.dataset.location, mode="append")
        return f"data/{fragment.files[0].path}"

    return leave
