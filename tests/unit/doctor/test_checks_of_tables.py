"""Which tables are checked by the name that a person has typed."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_lancens.doctor import checks
from airflow_provider_lancens.hooks.lance_hook import LanceHook


@pytest.mark.parametrize("name", ["ordres", "sales.ordres"])
def test_a_table_that_does_not_exist_is_a_finding(
    connect: Callable[..., str], tmp_path: Path, name: str
) -> None:
    hook = LanceHook.for_connection(connect(conn_type="lance", extra={"root": str(tmp_path)}))
    hook.catalog().declare_table("orders", schema={"id": "bigint"})

    [finding] = checks.check_tables(hook, name)

    assert (finding.level, finding.subject) == ("warning", name)
    assert "there is no such table" in finding.text


def test_all_pages_of_a_namespace_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {None: (["b"], "next"), "next": (["a"], None)}

    def listed(request: Any) -> Any:
        tables, token = pages[request.page_token]
        return SimpleNamespace(tables=tables, page_token=token)

    hook: Any = SimpleNamespace(get_reader=lambda: SimpleNamespace(list_tables=listed))
    checked = []
    monkeypatch.setattr(checks, "check_table", lambda _hook, table: checked.append(str(table)) or [])

    assert not list(checks.check_tables(hook, "sales"))
    assert checked == ["sales$a", "sales$b"]
