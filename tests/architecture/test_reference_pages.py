"""Pages made from code: the picture of the graph, the tables of the reference, the policy for Glue."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from airflow_provider_lancens.provider_info import get_provider_info


@pytest.fixture
def docs(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the pages, whose modules can be imported."""
    monkeypatch.syspath_prepend(root / "docs")
    return root / "docs"


@pytest.fixture
def reference_tables(docs: Path) -> Iterator[ModuleType]:
    import reference_tables

    yield reference_tables
    del sys.modules["reference_tables"]


def test_the_picture_is_the_one_that_its_script_draws(docs: Path, tmp_path: Path) -> None:
    import graph_picture

    graph_picture.draw(tmp_path)

    drawn = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert drawn == {name: (docs / "images" / name).read_text() for name in drawn}
    assert len(drawn) == 2


@pytest.mark.parametrize("conn_type", ["lance_hive2", "lance_hive3", "lance_glue", "lance"])
def test_each_field_of_a_connection_is_in_the_reference(conn_type: str, reference_tables: ModuleType) -> None:
    shown = reference_tables.connection_fields(conn_type)

    [described] = (
        one for one in get_provider_info()["connection-types"] if one["connection-type"] == conn_type
    )
    assert [name for name in described["conn-fields"] if f"| `{name}` |" not in shown] == []


def test_each_operator_has_its_xcom_in_the_reference(reference_tables: ModuleType) -> None:
    from airflow_provider_lancens import operators, sensors

    shown = "\n".join(reference_tables.xcom_sections())

    public = [*operators.__all__, *sensors.__all__]
    returning = [name for name in public if name.endswith(("Operator", "Sensor")) and name != "LanceOperator"]
    assert re.findall(r"^## (\w+)$", shown, re.MULTILINE) == returning


def test_the_keys_of_nested_dictionaries_are_not_keys_of_the_xcom(reference_tables: ModuleType) -> None:
    fields = reference_tables.xcom_fields('"a": str, "b": {"c": int} |\n None, "d": list[dict]')

    assert fields == [("a", "str"), ("b", '{"c": int} | None'), ("d", "list[dict]")]


def test_a_page_that_a_docstring_names_is_linked(reference_tables: ModuleType, root: Path) -> None:
    lines = ["where: a condition, see docs/conditions.md. Templated."]
    reference_tables.linked_pages(None, "class", "LanceDeleteOperator", None, None, lines)
    assert lines == ["where: a condition, see :doc:`conditions`. Templated."]

    code = "".join(file.read_text() for file in (root / "airflow_provider_lancens").rglob("*.py"))
    named = set(re.findall(r"docs/[a-z-]+\.md", code))
    assert named
    assert [page for page in named if not (root / page).exists()] == []


def test_the_page_on_permissions_has_the_actions_that_are_called_on_glue(root: Path) -> None:
    page = (root / "docs/permissions.md").read_text()

    documented = set(re.findall(r"`glue:(\w+)`", page))
    assert documented == {"".join(map(str.title, call.split("_"))) for call in glue_calls(root)}


def test_each_policy_allows_only_actions_that_are_called(root: Path) -> None:
    page = (root / "docs/permissions.md").read_text()
    policies = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL)]
    allowed = [
        {action for statement in policy["Statement"] for action in as_list(statement["Action"])}
        for policy in policies
    ]

    assert len(policies) == 4
    documented = set(re.findall(r"`((?:glue|s3):\w+)`", page))
    assert [actions - documented for actions in allowed] == [set()] * 4


def as_list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def glue_calls(root: Path) -> set[str]:
    """The names of the SDK's operations in the package's calls."""
    files = (root / "airflow_provider_lancens/namespace/glue").glob("*.py")
    calls = [
        node.args[0]
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "GlueCall"
    ]
    return {str(argument.value) for argument in calls if isinstance(argument, ast.Constant)}
