"""Valid tag names, and those made from a task's ids."""

from typing import Any

import pytest

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.table_checks import check_tag, tag_name, tag_starts


def test_a_tag_name_encodes_ids_with_characters_not_allowed_in_tags() -> None:
    name = tag_name("sales", "scheduled__2026-01-01T00:00:00+00:00", "wait..")
    assert name == "sales.scheduled__2026-01-01T00-00-00-00-00.wait"
    assert check_tag(name) == name


def test_the_tag_name_of_a_task_is_valid_whatever_its_id_ends_with() -> None:
    assert check_tag(tag_name("sales", "manual__1", "wait.lock")) == "sales.manual__1.wait-lock"


def test_tasks_whose_ids_have_other_letters_have_tags_of_their_own() -> None:
    ids = [("отчёт", "ждать"), ("заказы", "ждать"), ("отчёт", "жду")]
    assert len({check_tag(tag_name(dag, "manual__1", task)) for dag, task in ids}) == len(ids)
    assert tag_name("отчёт", "manual__1", "ждать").startswith(tag_starts("отчёт")[0])


def test_tag_names_are_limited_in_length_and_unique() -> None:
    names = {check_tag(tag_name(dag * 250, "r" * 250, "wait")) for dag in ("a", "b")}
    assert len(names) == 2


@pytest.mark.parametrize("tag", ["", "None", "a:b", "a b", "a/b", "a..b", ".a", "a.lock", "größe", "x" * 201])
def test_a_tag_name_that_lance_does_not_accept_is_refused(tag: str) -> None:
    with pytest.raises(AirflowFailException, match="is not a valid tag name; expected up to 200"):
        check_tag(tag)


def test_a_tag_of_digits_may_have_been_rendered_as_a_number() -> None:
    assert check_tag(20261101) == "20261101"


@pytest.mark.parametrize("tag", [None, True, 2026.1, ["a"], {"tag": "a"}])
def test_what_is_no_text_is_no_tag(tag: Any) -> None:
    with pytest.raises(AirflowFailException, match="is not a valid tag name"):
        check_tag(tag)
