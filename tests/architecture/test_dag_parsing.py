"""Parsing the example DAGs loads nothing that only a running task needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "example_dags").glob("*.py"))
HEAVY = {"boto3", "lance", "lance_namespace", "obstore", "pandas", "pyarrow", "pyspark", "thrift"}
AIRFLOWS_OWN = {"boto3"}
"""Loaded with the first asset of any URI: Airflow asks each provider for its schemes, Amazon's too."""

PARSE = """
import os, runpy, sys
from airflow.sdk import DAG

def answer(example):
    sys.path.insert(0, os.path.dirname(example))  # as Airflow does
    runpy.run_path(example)
    return sorted(sys.modules)
"""


@pytest.fixture(scope="module")
def loaded(ask_forks: Callable[..., list[Any]]) -> dict[Path, list[str]]:
    """The modules that parsing an example loads."""
    answers = ask_forks(PARSE, [[str(example)] for example in EXAMPLES])
    return dict(zip(EXAMPLES, answers, strict=True))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_parsing_an_example_loads_no_heavy_module(example: Path, loaded: dict[Path, list[str]]) -> None:
    text = example.read_text()
    makes_assets = "lance_table(" in text or "watched_table(" in text
    assert (HEAVY - AIRFLOWS_OWN if makes_assets else HEAVY).isdisjoint(loaded[example])
