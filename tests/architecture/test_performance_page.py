"""docs/performance.md shows the figures that are kept, by plots that were drawn from them."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from tests.benchmarks.tables import comparisons, digest_of, part_of, summary

NAMES = [file.stem for file in sorted((Path(__file__).parents[2] / "docs/performance").glob("*.json"))]


@pytest.fixture(scope="module")
def folder(root: Path) -> Path:
    return root / "docs" / "performance"


def test_the_page_shows_every_figure(root: Path) -> None:
    shown = re.findall(r"{include} performance/(\S+)\.md", (root / "docs" / "performance.md").read_text())

    assert sorted(shown) == sorted([*NAMES, "ratios"])


@pytest.mark.parametrize("name", NAMES)
def test_plots_and_tables_are_made_from_the_kept_figures(folder: Path, name: str) -> None:
    figures = (folder / f"{name}.json").read_bytes()

    assert hashlib.sha256(figures).hexdigest() in (folder / f"{name}.svg").read_text()
    assert (folder / f"{name}.md").read_text() == part_of(name, json.loads(figures))


def test_the_summary_is_made_from_the_kept_figures(folder: Path) -> None:
    figures = {name: json.loads((folder / f"{name}.json").read_text()) for name in NAMES}

    assert (folder / "ratios.md").read_text() == summary(figures)
    assert digest_of(comparisons(figures)) in (folder / "summary.svg").read_text()
