"""Writes what the suite saw as a table for the documents: operations, backends, codes.

A pytest plugin: ``./scripts/conformance-table`` runs the suite with it.
"""

import functools
import inspect
from collections import defaultdict
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from lance_namespace import LanceNamespace
from lance_namespace.errors import ErrorCode, LanceNamespaceError

from airflow_provider_lancens.namespace.base import MetastoreNamespace
from tests.conformance.conftest import BACKENDS, cannot

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"
DONE = "done"
NOT_OPERATIONS = {"namespace_id"}
INTRODUCTION = """# Conformance

Made by `./scripts/conformance-table` out of one run of `tests/conformance`, in which every case passed.
Each cell says what the suite saw of an operation on a backend: that it is done (✓), and the codes it is
refused with.
"""


class Sightings:
    """How each operation ended on each backend."""

    def __init__(self) -> None:
        self.backend: str | None = None
        self.seen: dict[tuple[str, str], set[str | int]] = defaultdict(set)
        self.cases: dict[str, int] = defaultdict(int)
        self.failed = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        callspec = getattr(item, "callspec", None)
        self.backend = callspec.params.get("backend") if callspec else None
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed
        if report.when == "call" and report.passed and self.backend:
            self.cases[self.backend] += 1

    def pytest_sessionfinish(self) -> None:
        if not self.failed and self.seen:
            PAGE.write_text(self.page(), encoding="utf-8")

    def watch(self, operation: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """The operation, whose endings are noted."""

        @functools.wraps(original)
        def watched(*arguments: Any, **more: Any) -> Any:
            ending: str | int = DONE
            try:
                return original(*arguments, **more)
            except LanceNamespaceError as error:
                ending = int(error.code)
                raise
            finally:
                if self.backend:
                    self.seen[operation, self.backend].add(ending)

        return watched

    def page(self) -> str:
        operations = sorted({operation for operation, _ in self.seen})
        rows = [["Operation", *BACKENDS], ["---"] * (len(BACKENDS) + 1)]
        rows += [
            [f"`{operation}`", *(self._cell(operation, b) for b in BACKENDS)] for operation in operations
        ]
        rows += [["cases passed", *(str(self.cases[backend]) for backend in BACKENDS)]]
        return "\n".join([INTRODUCTION, *map(_row, rows), "", *_codes(self.seen), "", *_limits(), ""])

    def _cell(self, operation: str, backend: str) -> str:
        endings = self.seen[operation, backend]
        codes = sorted(ending for ending in endings if isinstance(ending, int))
        return " ".join(["✓"] * (DONE in endings) + [str(code) for code in codes])


def pytest_configure(config: pytest.Config) -> None:
    sightings = Sightings()
    for name, method in inspect.getmembers(MetastoreNamespace, inspect.isfunction):
        if hasattr(LanceNamespace, name) and not name.startswith("_") and name not in NOT_OPERATIONS:
            setattr(MetastoreNamespace, name, sightings.watch(name, method))
    config.pluginmanager.register(sightings)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _codes(seen: dict[tuple[str, str], set[str | int]]) -> list[str]:
    codes = sorted({ending for endings in seen.values() for ending in endings if isinstance(ending, int)})
    names = (f"{code} {ErrorCode(code).name.lower().replace('_', ' ')}" for code in codes)
    return ["## Codes", "", ", ".join(names) + "."]


def _limits() -> list[str]:
    found: dict[str, list[str]] = defaultdict(list)
    for backend in BACKENDS:
        for what, why in cannot(backend).items():
            found[f"can't {what}: {why}."].append(f"`{backend}`")
    lines = [f"- {', '.join(backends)} {limit}" for limit, backends in found.items()]
    return ["## What a server can't do", "", "The suite then shows how it is refused.", "", *lines]
