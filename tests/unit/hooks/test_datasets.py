"""What may be a tag's name, and how one is made of a task's ids."""

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_lancens.hooks.datasets import check_tag, tag_name


def test_a_tags_name_is_made_of_ids_that_no_tag_could_hold() -> None:
    name = tag_name("sales", "scheduled__2026-01-01T00:00:00+00:00", "wait..")
    assert name == "sales.scheduled__2026-01-01T00-00-00-00-00.wait"
    assert check_tag(name) == name


def test_a_tags_name_is_never_too_long_and_never_anothers() -> None:
    names = {check_tag(tag_name(dag * 250, "r" * 250, "wait")) for dag in ("a", "b")}
    assert len(names) == 2


@pytest.mark.parametrize("tag", ["", "None", "a:b", "a b", "a/b", "a..b", ".a", "x" * 201])
def test_what_lance_takes_for_no_tag_is_refused(tag: str) -> None:
    with pytest.raises(AirflowFailException, match="no name for a tag; allowed: up to 200"):
        check_tag(tag)
