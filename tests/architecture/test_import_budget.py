"""Import budget: what importing one of our modules adds to the modules that Airflow loads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).parents[2] / "airflow_provider_lancens"
MOST_MODULES = 20
MOST_CALLS = 20_000
"""Calls of functions, Python's own included: about 1 µs each, and as many on any machine."""

MEASURE = """
import importlib, sys
from airflow.sdk import DAG, Asset, BaseHook, BaseOperator, BaseSensorOperator, Context, task

def count_calls(target):
    calls = []
    sys.setprofile(lambda frame, event, function: calls.append(event) if event.endswith("call") else None)
    try:
        importlib.import_module(target)
    finally:
        sys.setprofile(None)
    return len(calls)

def answer(target, *base):
    for name in base:
        importlib.import_module(name)
    before = set(sys.modules)
    importlib.import_module(target)  # compiles it
    added = sorted(set(sys.modules) - before)
    for name in added:
        del sys.modules[name]
    return {"calls": count_calls(target), "added": added}
"""


def modules_of(room: str) -> list[str]:
    files = sorted((PACKAGE / room).rglob("*.py"))
    names = (".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts) for file in files)
    return [name.removesuffix(".__init__") for name in names]


LIGHT_MODULES = {
    name: ["airflow.triggers.base"] if room == "triggers" else []
    for room in ("operators", "sensors", "triggers", "assets")
    for name in modules_of(room)
} | {"airflow_provider_lancens.ui.plugin": ["airflow.configuration", "airflow.plugins_manager"]}


@pytest.fixture(scope="module")
def costs(ask_forks: Callable[..., list[Any]]) -> dict[str, Any]:
    """The modules that each module loads, and how many calls that makes."""
    answers = ask_forks(MEASURE, [[name, *base] for name, base in LIGHT_MODULES.items()])
    return dict(zip(LIGHT_MODULES, answers, strict=True))


@pytest.mark.parametrize("module", LIGHT_MODULES)
def test_importing_a_module_for_a_dag_stays_in_budget(module: str, costs: dict[str, Any]) -> None:
    cost = costs[module]

    assert len(cost["added"]) <= MOST_MODULES, cost["added"]
    assert cost["calls"] <= MOST_CALLS, cost


ON_EXECUTORS = [
    f"airflow_provider_lancens.spark.{name}"
    for name in (
        "write.write_task",
        "write.files.file_writer",
        "write.upsert_rows",
        "read",
        "changes.read_changes",
        "compute.compute_column",
        "maintenance.maintain",
        "datasource.data_source",
        "streaming.foreach_batch",
        "streaming.appended_stream",
    )
]
"""Modules whose functions and classes Spark's Python processes load."""


@pytest.mark.parametrize("module", ON_EXECUTORS)
def test_a_process_of_an_executor_does_not_load_the_requests_of_namespaces(module: str) -> None:
    program = f"import sys, {module}; print({{'lance_namespace', 'pydantic'}} & set(sys.modules))"

    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
