"""Staging and publishing of rows with an id and a word."""

from typing import Any

from airflow_provider_lancens.spark import WriteResult
from airflow_provider_lancens.spark.publish import publish_version
from tests.support.maintained_tables import Maintained, rows
from tests.support.reads import read_table
from tests.support.results import number_of
from tests.support.writes import write_table


def stage(table: Maintained, first: int, end: int, **how: Any) -> WriteResult:
    return write_table(rows(table.spark, first, end), table.spec, table.id, stage=True, **how)


def publish(table: Maintained, staged: WriteResult) -> WriteResult:
    return publish_version(table.spec, table.id, number_of(staged))


def words(table: Maintained, version: int | None = None) -> dict[int, str]:
    found = read_table(table.spark, table.spec, table.id, version=version).collect()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: row["word"] for row in found}
