"""A folder of tables that SQL reads, without a server."""

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from airflow_provider_lancens import connect
from airflow_provider_lancens.spark.lance_catalog import LanceCatalog

ORDERS = {"id": "bigint", "amount": "decimal(9, 2)", "day": "date", "customer": "string"}
DAY = date(2026, 1, 5)


def folder_of_tables(root: Path, *databases: str) -> LanceCatalog:
    """A catalog over an empty folder."""
    lake = connect("dir", {"root": str(root)})
    for database in databases:
        lake.create_namespace(database)
    return lake


def orders(*amounts: float | None, first: int = 0, day: date = DAY) -> pa.Table:
    """Orders with these amounts, whose customers are ``c0`` and ``c1``."""
    values = [None if amount is None else Decimal(str(amount)) for amount in amounts]
    columns: dict[str, Any] = {
        "id": pa.array(range(first, first + len(amounts)), pa.int64()),
        "amount": pa.array(values, pa.decimal128(9, 2)),
        "day": [day] * len(amounts),
        "customer": [f"c{number % 2}" for number in range(len(amounts))],
    }
    return pa.table(columns)
