"""Pages are sorted, and their token is valid after changes between them."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.namespace.paging import all_names, page_of

NAMES = st.sets(st.text(min_size=1, max_size=8), max_size=30)


def test_names_are_sorted_and_unique() -> None:
    page = page_of(["b", "a", "b"], None, None)
    assert page.names == ["a", "b"]
    assert page.token is None


def test_the_last_page_has_no_token() -> None:
    assert page_of(["a", "b"], None, 2).token is None


def test_an_empty_token_means_the_first_page() -> None:
    assert page_of(["a", "b"], "", 1).names == ["a"]


@given(NAMES, st.integers(min_value=1, max_value=7))
def test_all_pages_together_are_complete(names: set[str], limit: int) -> None:
    seen, token = [], None
    while True:
        page = page_of(names, token, limit)
        assert len(page.names) <= limit
        seen += page.names
        token = page.token
        if token is None:
            break
    assert seen == sorted(names)


@given(NAMES, NAMES, st.integers(min_value=1, max_value=7))
def test_unchanged_names_are_neither_skipped_nor_repeated(
    before: set[str], after: set[str], limit: int
) -> None:
    first = page_of(before, None, limit)
    second = page_of(after, first.token, None) if first.token else page_of((), None, None)
    seen = first.names + second.names
    assert len(seen) == len(set(seen))
    if first.token:
        assert before & after <= set(seen)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(limit: int) -> None:
    with pytest.raises(InvalidInputError, match="limit"):
        page_of(["a"], None, limit)


@pytest.mark.parametrize("token", ["17", "a", "é", base64.urlsafe_b64encode(b"17").decode(), "/w=="])
def test_a_foreign_page_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidInputError, match="page_token"):
        page_of(["a"], token, 1)


def test_all_names_end_where_a_catalog_repeats_its_token() -> None:
    pages = {None: (["a", "b"], "1"), "1": (["c"], "1")}

    assert list(all_names(lambda token: pages[token])) == ["a", "b", "c"]


def test_the_next_page_is_read_once_it_is_needed() -> None:
    tokens: list[str | None] = []

    def page(token: str | None) -> tuple[list[str], str | None]:
        tokens.append(token)
        return ["a"], "1"

    assert next(all_names(page)) == "a"
    assert tokens == [None]
