"""The page of a table's versions: what it shows of each, and what it costs."""

from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import LanceNamespace

from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.ui import table_details
from airflow_provider_lancens.ui.version_history import list_versions
from tests.integration.airflow.tables import Table


@pytest.fixture
def hook(lake: str) -> LanceHook:
    return LanceHook.for_connection(lake)


def numbers(page: dict[str, Any]) -> list[int]:
    return [entry["version"] for entry in page["versions"]]


@pytest.mark.parametrize("managed_by", ["storage", "impl"])
def test_versions_are_listed_page_by_page_with_their_rows(
    hook: LanceHook, table: Table, managed_by: str
) -> None:
    table.declare(managed_by=managed_by)
    for _ in range(5):
        table.advance()

    first = list_versions(hook, str(table), None, 3)
    second = list_versions(hook, str(table), first["next"], 3)

    assert (numbers(first), first["next"]) == ([5, 4, 3], 3)
    assert (numbers(second), second["next"]) == ([2, 1], None)
    assert [entry["rows"] for entry in first["versions"]] == [5, 4, 3]
    assert {entry["operation"] for entry in first["versions"]} == {"Append"}
    assert all(entry["bytes"] > 0 and entry["created"].endswith("+00:00") for entry in first["versions"])


def test_the_first_version_is_a_creation_and_only_a_later_one_an_overwrite(
    hook: LanceHook, table: Table
) -> None:
    location = table.declare()
    for mode in ("create", "append", "overwrite"):
        lance.write_dataset(pa.table({"n": [1]}), location, mode=mode)

    shown = list_versions(hook, str(table), None, 3)["versions"]

    assert [entry["operation"] for entry in shown] == ["Overwrite", "Append", "Create"]


def test_maintenance_is_told_from_data_and_tags_are_shown(
    hook: LanceHook, table: Table, namespace: LanceNamespace
) -> None:
    table.declare()
    table.advance()
    table.advance()
    data = lance.dataset(namespace_client=namespace, table_id=table.id)
    data.optimize.compact_files()
    data.tags.create("release", 2)
    data.delete("n = 1")

    shown = {entry["version"]: entry for entry in list_versions(hook, str(table), None, 10)["versions"]}

    kinds = {version: (entry["operation"], entry["maintenance"]) for version, entry in shown.items()}
    assert kinds[2] == ("Append", False)
    assert kinds[max(kinds)] == ("Delete", False)
    assert ("Rewrite", True) in kinds.values()
    assert {version: entry["tags"] for version, entry in shown.items() if entry["tags"]} == {2: ["release"]}


def test_versions_before_a_clean_up_are_shown_as_far_as_they_are_kept(
    hook: LanceHook, table: Table, namespace: LanceNamespace
) -> None:
    table.declare()
    for _ in range(9):
        table.advance()
    data = lance.dataset(namespace_client=namespace, table_id=table.id)
    data.tags.create("kept", 3)
    data.cleanup_old_versions(retain_versions=2, error_if_tagged_old_versions=False)

    first = list_versions(hook, str(table), None, 2)
    rest = list_versions(hook, str(table), first["next"], 2)

    assert (numbers(first), numbers(rest), rest["next"]) == ([9, 8], [3], None)


def test_a_declared_table_has_no_versions_and_no_columns(hook: LanceHook, table: Table) -> None:
    table.declare()
    assert list_versions(hook, str(table), None, 10) == {"versions": [], "next": None, "expired": []}
    described = table_details.describe(hook, str(table))
    assert (described["version"], described["fields"]) == (0, [])


def test_what_a_direct_writer_left_of_a_managed_table_is_a_problem_with_its_repair(
    hook: LanceHook, table: Table
) -> None:
    location = table.declare(managed_by="impl")
    table.advance()
    lance.write_dataset(lance.dataset(location).to_table(), location, mode="append")

    findings = table_details.check(hook, str(table))["findings"]

    problems = [one for one in findings if one["level"] == "problem"]
    assert "LanceCheckTableOperator" in problems[0]["advice"]
    assert numbers(list_versions(hook, str(table), None, 10)) == [1]  # not the uncommitted one


def test_sample_rows_are_short_text_without_binary_columns(
    hook: LanceHook, table: Table, namespace: LanceNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__LANCENS__SHOW_SAMPLE_ROWS", "True")
    table.declare()
    row = {
        "name": ["x" * 1000],
        "vector": [[0.1] * 100],
        "none": pa.nulls(1),
        "image": [b"1"],
        "seen": [[b"1"]],
    }
    lance.write_dataset(pa.table(row), namespace_client=namespace, table_id=table.id, mode="append")

    shown = table_details.sample(hook, str(table))

    assert shown["columns"] == ["name", "vector", "none"]
    ((name, vector, none),) = shown["rows"]
    assert (len(name), none) == (121, None)
    assert vector == "[0.1, 0.1, 0.1, 0.1, 0.1, 0.1, …] (100 values)"
