"""Rows that are deleted for good, as `docs/delete-rows.md` says: no file has their values any more."""
# ruff: noqa: T201  (the page prints)

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_lancens import connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PERSON = "somebody-who-asked@example.com"


def test_no_file_has_the_values_of_rows_that_were_erased(spark: SparkSession, tmp_path: Path) -> None:
    lake = connect("dir", {"root": str(tmp_path)}, spark=spark)
    table = lake.declare_table("customers")
    rows = spark.range(100).selectExpr("id", f"if(id % 50 = 7, '{PERSON}', concat('p', id)) AS email")
    table.append(rows)
    table.create_index("email", "BTREE")
    assert files_with(PERSON, table.location)
    # [START erase]
    from datetime import timedelta

    table.delete("id IN (7, 57)")  # by a key: conditions are stored with the version
    table.compact(compaction_options={"materialize_deletions_threshold": 0})
    table.create_index("email", "BTREE", if_exists="replace")  # each index on a column with personal data
    print(table.tags())  # a tag, a bookmark and a staged version hold older versions: delete or move them
    table.expire_versions(older_than=timedelta(0))  # versions before this one can't be read any more
    # [END erase]
    assert table.count_rows() == 98
    assert files_with(PERSON, table.location) == []


def files_with(text: str, folder: str) -> list[str]:
    files = [file for file in Path(folder).rglob("*") if file.is_file()]
    return [str(file.relative_to(folder)) for file in files if text.encode() in file.read_bytes()]
