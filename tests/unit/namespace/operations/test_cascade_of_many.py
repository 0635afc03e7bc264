"""What planning a drop holds and reads, in databases of different sizes."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from lance_namespace.errors import NamespaceNotEmptyError

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace.operations.cascade import Cascade, CascadePlan
from tests.unit.namespace.operations.large_catalog import BATCH, ROOT, LargeCatalog

DB = NamespaceId.of(["db"])
SMALL, LARGE = 300, 3000
PARAMETER = 10_000
BYTES_OF_A_TABLE = 2000
"""Of a plan, with what the check of it needs; a table as it is read has five times as much in these tests."""


def peak_bytes(work: Callable[[], Any]) -> tuple[int, Any]:
    tracemalloc.start()
    try:
        result = work()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_plan_and_its_check_each_read_every_table_once_and_keep_one_batch(size: int) -> None:
    catalog = LargeCatalog({"db": size}, PARAMETER)
    cascade = Cascade(catalog)  # type: ignore[arg-type]

    def plan_and_check() -> CascadePlan:
        plan = cascade.plan(DB)
        cascade._check_unchanged(plan)
        return plan

    peak, plan = peak_bytes(plan_and_check)
    assert len(plan.tables) == size
    assert [table.id.name for table in plan.tables] == sorted(catalog.tables["db"])
    assert catalog.calls == {"get_namespace": 1, "list": 2, "read": 2 * size // BATCH}
    assert peak <= 2 * BATCH * PARAMETER + size * BYTES_OF_A_TABLE


def test_a_plan_of_many_databases_is_ordered_by_database() -> None:
    catalog = LargeCatalog({f"db_{number:03}": 2 for number in range(200)})
    plan = Cascade(catalog).plan(ROOT)  # type: ignore[arg-type]
    assert list(plan.tables) == sorted(plan.tables, key=lambda table: table.id.parts)
    assert len(plan.tables) == 400


def test_the_check_names_some_of_many_changes() -> None:
    catalog = LargeCatalog({"db": SMALL})
    cascade = Cascade(catalog)  # type: ignore[arg-type]
    plan = cascade.plan(DB)
    catalog.tables["db"] |= {f"u_{number:03}" for number in range(50)}
    with pytest.raises(NamespaceNotEmptyError, match=r"db\$u_000 \(new\).* and 40 more; run it again"):
        cascade._check_unchanged(plan)


def test_a_plan_is_logged_in_lines_of_a_hundred_names() -> None:
    plan = Cascade(LargeCatalog({"db": 250})).plan(DB)  # type: ignore[arg-type]
    lines = plan.lines()
    assert lines[0] == "Namespaces to drop: db"
    assert [line.partition(": ")[0].partition(" (")[2] for line in lines[1:4]] == [
        "1 to 100 of 250)",
        "101 to 200 of 250)",
        "201 to 250 of 250)",
    ]
    assert lines[4:] == ("Tables that aren't Lance: none",)
    assert all(line.count("db$") <= 100 for line in lines)
