"""Another client of the same metastore, without our code: it reads a catalog table and writes it back."""

from dataclasses import dataclass
from typing import Any

import boto3

from tests.integration.hive.raw import raw_client, raw_table
from tests.integration.managed.managed_table import ManagedTable
from tests.support.lakes import Lake

_OF_THE_INPUT = ("Name", "TableType", "StorageDescriptor", "PartitionKeys", "Parameters", "Owner")


@dataclass(frozen=True)
class OtherClient:
    """Reads and alters as Spark SQL, Hive or a crawler does: unconditionally."""

    lake: Lake
    table: ManagedTable

    def read(self) -> Any:
        """The catalog table with all its fields, as returned by this client's library."""
        database, name = self.table.id
        if self.lake.kind == "GlueNamespace":
            found = self._glue().get_table(DatabaseName=database, Name=name)["Table"]
            return {key: found[key] for key in _OF_THE_INPUT if key in found}
        return raw_table(self.lake.properties["uri"], database, name)

    def write(self, catalog_table: Any) -> None:
        """Replace the catalog table."""
        database, name = self.table.id
        if self.lake.kind == "GlueNamespace":
            self._glue().update_table(DatabaseName=database, TableInput=catalog_table)
            return
        with raw_client(self.lake.properties["uri"]) as client:
            client.alter_table(database, name, catalog_table)

    def remove_parameters(self, *keys: str) -> None:
        """Remove these parameters, by default all."""
        catalog_table = self.read()
        parameters = (
            catalog_table["Parameters"] if isinstance(catalog_table, dict) else catalog_table.parameters
        )
        for key in keys or list(parameters):
            # Without it, a 2.x server converts the table to MANAGED, and would delete its data.
            if keys or key != "EXTERNAL":
                del parameters[key]
        self.write(catalog_table)

    def _glue(self) -> Any:
        properties = self.lake.properties
        return boto3.client(
            "glue",
            endpoint_url=properties["endpoint"],
            region_name=properties["region"],
            aws_access_key_id=properties["access_key_id"],
            aws_secret_access_key=properties["secret_access_key"],
        )
