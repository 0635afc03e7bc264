"""The versions of maintenance beside others' commits: a consumer of its events reads no rows twice."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from airflow_provider_lancens import connect
from airflow_provider_lancens.spark import Table
from airflow_provider_lancens.spark.maintenance import compact, index, maintain
from tests.histories.local_session import LocalSession

SPARK: Any = LocalSession()
NEVER: dict[str, Any] = {"min_small_fragments": 100}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table with two fragments, of versions 1 and 2."""
    table = connect("dir", {"root": str(tmp_path)}, spark=SPARK).declare_table("orders")
    append(table, 2)
    return table


def append(table: Table, times: int = 1) -> None:
    for _ in range(times):
        table.append(pa.table({"id": [1, 2]}))


def before(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, action: Callable[[], object]) -> None:
    """Call a function before each call of another one."""
    genuine = getattr(owner, name)

    def called(*arguments: object, **named: object) -> object:
        action()
        return genuine(*arguments, **named)

    monkeypatch.setattr(owner, name, called)


def test_rows_of_others_are_not_between_the_versions_of_a_compaction(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    before(monkeypatch, compact, "_commit", lambda: append(table, 2))

    result = table.compact()

    assert (result.previous_version, result.version) == (4, lance.dataset(table.location).version)


def test_rows_of_others_are_not_between_the_versions_of_an_index(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    before(monkeypatch, index, "run_in_parallel", lambda: append(table, 2))

    result = table.create_index("id", "BTREE")

    assert (result.previous_version, result.version) == (4, 5)


def test_maintenance_without_a_commit_has_no_versions_of_others(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    before(monkeypatch, maintain, "clean_up_versions", lambda: append(table))

    result = table.maintain(older_than=timedelta(0), thresholds=NEVER)

    assert result.steps["expire"].is_done
    assert (result.previous_version, result.version) == (3, 3)


def test_maintenance_begins_with_its_first_commit(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    before(monkeypatch, maintain, "compact_table", lambda: append(table))

    result = table.maintain(thresholds={"min_small_fragments": 2})

    assert (result.previous_version, result.version) == (3, result.steps["compact"].version)
