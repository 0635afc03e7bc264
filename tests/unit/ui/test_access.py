"""Names of DAGs that a user may not read are hidden in keys and tags."""

from typing import Any

import pytest

from airflow_provider_lancens.hooks.table_checks import check_tag, tag_name, tag_starts
from airflow_provider_lancens.ui.access import Access

HIDDEN, SHOWN = "payroll of the board", "sales"


@pytest.fixture
def access(monkeypatch: pytest.MonkeyPatch) -> Access:
    starts = (f"{HIDDEN}/", *tag_starts(HIDDEN))
    monkeypatch.setattr(Access, "_hidden_starts", property(lambda _: starts))
    user: Any = None
    return Access(user)


@pytest.mark.parametrize("run_id", ["manual", "manual__" + "x" * 230], ids=["short", "long"])
def test_a_tag_of_a_hidden_dag_is_not_shown(access: Access, run_id: str) -> None:
    assert not access.may_see_name(check_tag(tag_name(HIDDEN, run_id, "wait")))
    assert access.may_see_name(check_tag(tag_name(SHOWN, run_id, "wait")))


def test_a_key_of_a_hidden_dag_is_not_shown(access: Access) -> None:
    assert not access.may_see_name(f"{HIDDEN}/load/manual")
    assert access.may_see_name(f"{SHOWN}/load/manual")
