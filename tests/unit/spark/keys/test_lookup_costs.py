"""What it costs to look a key up: requests to the storage that don't grow with the table's age."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import obstore
import pytest

from airflow_provider_lancens.spark.keys.restored_versions import MAX_BEHIND
from airflow_provider_lancens.spark.table import history
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from tests.unit.spark.keys.keyed import commit, find, touch

OLD = 3 * MAX_BEHIND


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Our requests to the storage, and the transactions that Lance reads for us."""
    seen: Counter[str] = Counter()

    def counting(owner: object, name: str) -> object:
        real = getattr(owner, name)

        def call(*arguments: object, **options: object) -> object:
            seen[name] += 1
            return real(*arguments, **options)

        return patch.object(owner, name, call)

    names = ("head", "get", "put", "delete", "list", "list_with_delimiter")
    patches = [*(counting(obstore, name) for name in names), counting(history._History, "read")]
    for one in patches:
        one.start()  # type: ignore[attr-defined]
    try:
        yield seen
    finally:
        for one in patches:
            one.stop()  # type: ignore[attr-defined]


@pytest.mark.parametrize("versions", [2, OLD])
def test_a_new_key_takes_two_listings_at_any_age_of_the_table(target: ResolvedTable, versions: int) -> None:
    commit(target, "january")
    touch(target, versions)
    assert find(target, "february") is None  # which records the keys of versions from before, once

    with counted() as seen:
        assert find(target, "march") is None

    assert seen == {"list_with_delimiter": 2}


@pytest.mark.parametrize("versions", [2, OLD])
def test_an_old_key_takes_few_requests_at_any_age_of_the_table(target: ResolvedTable, versions: int) -> None:
    commit(target, "january")
    touch(target, versions)
    assert find(target, "january") == 1  # which reads the Restores since, once

    with counted() as seen:
        assert find(target, "january") == 1

    assert seen["list_with_delimiter"] == 2
    assert seen["head"] == 1
    assert seen["get"] <= 1
    assert seen["read"] <= 1 + min(versions, MAX_BEHIND)
    assert not seen["put"]
