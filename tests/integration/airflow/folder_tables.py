"""Tables in a folder, for tests that need no metastore."""

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa

from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.spark.lance_catalog import LanceCatalog
from tests.support.catalogs import catalog_connection

ORDERS, ITEMS = "sales$orders", "sales$items"


class Folder:
    """A connection to a folder, and its catalog with a database `sales`."""

    def __init__(self, connect: Callable[..., str], root: Path) -> None:
        with catalog_connection("dir", connect, root) as self.conn_id:
            self.catalog: LanceCatalog = LanceHook.for_connection(self.conn_id).catalog()
        self.catalog.create_namespace("sales")

    def create(self, table: str = ORDERS, versions: int = 0) -> None:
        """Declare a table, and write versions of it."""
        self.catalog.declare_table(table)
        self.advance(table, versions)

    def advance(self, table: str = ORDERS, versions: int = 1) -> None:
        """Append a row for each version."""
        location = self.catalog.table(table).location
        for number in range(versions):
            lance.write_dataset(pa.table({"n": [number]}), location, mode="append")

    def drop(self) -> None:
        """Drop the table of orders."""
        self.catalog.drop_table(ORDERS)
