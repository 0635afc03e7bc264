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
import json, os, runpy, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))  # as Airflow does
runpy.run_path(sys.argv[1])
print(json.dumps(sorted(sys.modules)))
"""


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_parsing_an_example_loads_no_heavy_module(
    example: Path, ask_fresh_python: Callable[..., Any]
) -> None:
    loaded = ask_fresh_python(PARSE, str(example))

    text = example.read_text()
    makes_assets = "lance_table(" in text or "watched_table(" in text
    assert (HEAVY - AIRFLOWS_OWN if makes_assets else HEAVY).isdisjoint(loaded)
