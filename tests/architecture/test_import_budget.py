"""Parsing a DAG is light: what importing one of our modules adds to what Airflow loads anyway."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).parents[2] / "airflow_provider_lancens"
MOST_SECONDS = 0.020
MOST_MODULES = 20

MEASURE = """
import importlib, json, sys, time
from airflow.sdk import DAG, Asset, BaseHook, BaseOperator, BaseSensorOperator, Context, task

target, *base = sys.argv[1:]
for name in base:
    importlib.import_module(name)
before = set(sys.modules)
seconds = []
for _ in range(5):  # the least of several: a busy machine only ever adds
    started = time.process_time()
    importlib.import_module(target)
    seconds.append(time.process_time() - started)
    added = sorted(set(sys.modules) - before)
    for name in added:
        del sys.modules[name]
print(json.dumps({"seconds": min(seconds), "added": added}))
"""


def modules_of(room: str) -> list[str]:
    files = sorted((PACKAGE / room).rglob("*.py"))
    names = (".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts) for file in files)
    return [name.removesuffix(".__init__") for name in names]


LIGHT_MODULES = [
    pytest.param(name, ["airflow.triggers.base"] if room == "triggers" else [], id=name)
    for room in ("operators", "sensors", "triggers", "assets")
    for name in modules_of(room)
]


@pytest.mark.parametrize(("module", "base"), LIGHT_MODULES)
def test_importing_a_module_for_a_dag_stays_in_budget(
    module: str, base: list[str], ask_fresh_python: Callable[..., Any]
) -> None:
    cost = ask_fresh_python(MEASURE, module, *base)

    assert len(cost["added"]) <= MOST_MODULES, cost["added"]
    assert cost["seconds"] <= MOST_SECONDS, cost
