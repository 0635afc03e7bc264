"""Default locations of tables: outside of the folders that a client deletes with their database."""

import pytest

from airflow_provider_lancens.namespace.default_layout import folder_around, table_location


@pytest.mark.parametrize(
    ("database", "deletable", "expected"),
    [
        ("sales.db", ["s3://b/lake/sales.db"], "s3://b/lake/sales.db-lance/t.lance"),
        ("sales.db", ["s3://b/lake/sales.db/"], "s3://b/lake/sales.db-lance/t.lance"),
        ("sales.db", ["/lake/sales"], "/lake/sales-lance/t.lance"),
        ("default.db", ["/user/hive/warehouse"], "/user/hive/warehouse-lance/default.db/t.lance"),
        ("default.db", ["s3://b/warehouse"], "s3://b/warehouse-lance/default.db/t.lance"),
        ("a.db", ["/shared"], "/shared-lance/a.db/t.lance"),
        ("b.db", ["/shared"], "/shared-lance/b.db/t.lance"),
        ("cat/sales.db", ["/lake/cat/sales.db", "/lake/cat"], "/lake/cat-lance/sales.db/t.lance"),
        ("cat/default.db", ["/lake/cat", "/lake/cat"], "/lake/cat-lance/default.db/t.lance"),
        ("cat/sales.db", ["/away/sales.db", "/lake/cat"], "/away/sales.db-lance/cat/sales.db/t.lance"),
        ("dog/sales.db", ["/away/sales.db", "/lake/dog"], "/away/sales.db-lance/dog/sales.db/t.lance"),
        ("sales.db", ["/lake/sales.db", "/lake"], "/lake-lance/sales.db/t.lance"),
    ],
)
def test_a_default_location_is_outside_of_its_databases_folders(
    database: str, deletable: list[str], expected: str
) -> None:
    location = table_location("t", database, deletable)
    assert location == expected
    assert folder_around(location, deletable) is None


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        ("s3://bucket", "s3://bucket/sales.db-lance/t.lance"),
        ("s3://bucket/", "s3://bucket/sales.db-lance/t.lance"),
        ("hdfs://nn:8020/", "hdfs://nn:8020/sales.db-lance/t.lance"),
        ("/", "/sales.db-lance/t.lance"),
    ],
)
def test_the_root_of_a_store_has_no_default_location(root: str, expected: str) -> None:
    location = table_location("t", "sales.db", [root])
    assert location == expected
    assert folder_around(location, [root]) == root
