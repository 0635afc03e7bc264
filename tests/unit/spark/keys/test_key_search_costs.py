"""The cost of looking up a key: requests to the storage, whose number doesn't grow with the table's age."""

import pytest

from airflow_provider_lancens.spark.keys.commit_lineage import LONG
from airflow_provider_lancens.spark.table import history
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from tests.counted_requests import counted_requests
from tests.unit.spark.keys.keyed import commit, find, touch

OLD = 3 * LONG
READ = (history._History, "read")
"""Called once for each transaction that is read."""


@pytest.mark.parametrize("versions", [2, OLD])
def test_a_new_key_takes_two_listings_at_any_age_of_the_table(target: ResolvedTable, versions: int) -> None:
    commit(target, "january")
    touch(target, versions)
    assert find(target, "february") is None  # records the keys of earlier versions, once

    with counted_requests(READ) as seen:
        assert find(target, "march") is None

    assert seen == {"list_with_delimiter": 2}


@pytest.mark.parametrize("versions", [2, OLD])
def test_an_old_key_takes_few_requests_at_any_age_of_the_table(target: ResolvedTable, versions: int) -> None:
    commit(target, "january")
    touch(target, versions)
    assert find(target, "january") == 1  # reads the Restores since, once

    with counted_requests(READ) as seen:
        assert find(target, "january") == 1

    assert seen["list_with_delimiter"] == 2
    assert seen["head"] <= 1
    assert seen["get"] <= 2
    assert seen["read"] <= 1 + min(versions, LONG)
    assert not seen["put"]
