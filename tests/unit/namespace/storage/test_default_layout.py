"""Default locations of tables: outside of the folders that a client deletes with their database."""

import re

import pytest

from airflow_provider_lancens.namespace.storage.default_layout import (
    folder_around,
    is_own_place,
    table_location,
)


@pytest.mark.parametrize(
    ("database", "deletable", "expected"),
    [
        ("sales.db", ["s3://b/lake/sales.db"], "s3://b/lake/sales.db-lance"),
        ("sales.db", ["s3://b/lake/sales.db/"], "s3://b/lake/sales.db-lance"),
        ("sales.db", ["/lake/sales"], "/lake/sales-lance"),
        ("default.db", ["/user/hive/warehouse"], "/user/hive/warehouse-lance/default.db"),
        ("default.db", ["s3://b/warehouse"], "s3://b/warehouse-lance/default.db"),
        ("a.db", ["/shared"], "/shared-lance/a.db"),
        ("b.db", ["/shared"], "/shared-lance/b.db"),
        ("cat/sales.db", ["/lake/cat/sales.db", "/lake/cat"], "/lake/cat-lance/sales.db"),
        ("cat/default.db", ["/lake/cat", "/lake/cat"], "/lake/cat-lance/default.db"),
        ("cat/sales.db", ["/away/sales.db", "/lake/cat"], "/away/sales.db-lance/cat/sales.db"),
        ("dog/sales.db", ["/away/sales.db", "/lake/dog"], "/away/sales.db-lance/dog/sales.db"),
        ("sales.db", ["/lake/sales.db", "/lake"], "/lake-lance/sales.db"),
    ],
)
def test_a_default_location_is_outside_of_its_databases_folders(
    database: str, deletable: list[str], expected: str
) -> None:
    location = table_location("t", database, deletable)
    assert re.fullmatch(rf"{re.escape(expected)}/t-[0-9a-f]{{12}}/t\.lance", location)
    assert folder_around(location, deletable) is None


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        ("s3://bucket", "s3://bucket/sales.db-lance"),
        ("s3://bucket/", "s3://bucket/sales.db-lance"),
        ("hdfs://nn:8020/", "hdfs://nn:8020/sales.db-lance"),
        ("/", "/sales.db-lance"),
    ],
)
def test_the_root_of_a_store_has_no_default_location(root: str, expected: str) -> None:
    location = table_location("t", "sales.db", [root])
    assert re.fullmatch(rf"{re.escape(expected)}/t-[0-9a-f]{{12}}/t\.lance", location)
    assert folder_around(location, [root]) == root


def test_each_declaration_has_a_place_of_its_own() -> None:
    first, second = (table_location("t", "sales.db", ["s3://b/lake/sales.db"]) for _ in range(2))
    assert first != second
    assert is_own_place(first)
    assert is_own_place(second)


@pytest.mark.parametrize(
    "location",
    ["s3://b/sales.db-lance/t.lance", "/lake/u-0123456789ab/t.lance", "/lake/t-0123/t.lance", "t.lance"],
)
def test_a_location_that_others_chose_is_not_taken_for_such_a_place(location: str) -> None:
    assert not is_own_place(location)
