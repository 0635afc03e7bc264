"""Each metric that is listed is sent somewhere, nothing else is sent, and the page lists all of them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from airflow_provider_lancens.hooks.metrics import METRICS, OPERATIONS, WAITS, Metric

_MODULE = "airflow_provider_lancens/hooks/metrics.py"
_CLIENT = re.compile(r"\bStats\b|observability|\bstatsd\b(?!_)|opentelemetry")


def test_each_listed_metric_is_sent(root: Path) -> None:
    from airflow_provider_lancens.hooks import metrics

    tree = ast.parse((root / _MODULE).read_text())
    used = {
        node.id
        for function in tree.body
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Name)
    }
    found = [getattr(metrics, name, None) for name in used]
    sent = {one.name for one in found if isinstance(one, Metric)}
    sent |= {one.name for group in (OPERATIONS, WAITS) if group in found for one in group.values()}

    assert sent == METRICS.keys()


def test_each_function_that_sends_metrics_is_called(root: Path) -> None:
    package = [file for file in (root / "airflow_provider_lancens").rglob("*.py") if file != root / _MODULE]
    text = "\n".join(file.read_text() for file in package)

    called = set(re.findall(r"metrics\.(\w+)", text))
    assert called >= {"observer", "count_poll", "counted_listing", "count_wait"}


def test_no_other_module_uses_a_client_of_metrics(root: Path) -> None:
    package = (root / "airflow_provider_lancens").rglob("*.py")
    users = [str(file.relative_to(root)) for file in package if _CLIENT.search(file.read_text())]

    assert users == [_MODULE]


def test_names_and_tags_are_what_statsd_and_opentelemetry_take() -> None:
    assert [name for name in METRICS if not re.fullmatch(r"lance(\.[a-z_]+){2}", name)] == []
    assert {tag for metric in METRICS.values() for tag in metric.tags} == {
        "table",
        "operation",
        "lance_conn_id",
    }


def test_the_page_lists_every_metric_once(root: Path) -> None:
    page = (root / "docs/monitoring.md").read_text()
    prefixes = [prefix for line in re.findall(r"```\{metrics\} (.+)", page) for prefix in line.split()]

    listed = [name for prefix in prefixes for name in METRICS if name.startswith(prefix)]
    assert sorted(listed) == sorted(METRICS)
    named = set(re.findall(r"`(lance\.[a-z_.]+[a-z])`", page))
    assert named - METRICS.keys() == set()
