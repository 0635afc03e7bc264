"""A declared table in a real metastore, and the data source bound to it."""

from typing import Any

import pytest
from pyspark.sql import DataFrame

from tests.support.data_sources import Save, load, managed_by, spec, table

__all__ = ["load", "managed_by", "spec", "table"]


@pytest.fixture
def save(table: str) -> Save:
    def save(df: DataFrame, mode: str = "append", **options: Any) -> None:
        df.write.format("lake").option("table", table).options(**options).mode(mode).save()

    return save
