"""Random events of a managed table that is written under keys: what is lost is adopted."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace import LanceNamespace, connect

from tests.servers.glue_double import GlueDouble
from tests.unit.spark.keys.key_state_machine import TABLE, KeyedTableMachine
from tests.unit.spark.keys.random_events import check_in_any_order, short_segments

__all__ = ["short_segments"]  # a fixture
pytestmark = pytest.mark.usefixtures("short_segments")


class ManagedKeyedTableMachine(KeyedTableMachine):
    """The same of a table whose versions the metastore decides."""

    glue: GlueDouble
    database: str

    def connect(self) -> LanceNamespace:
        self.parts = [self.database, f"{TABLE}_{self.folder.name}"]
        self.table = "$".join(self.parts)
        properties = {**self.glue.properties, "root": str(self.folder)}
        made = connect("airflow_provider_lancens.namespace.GlueNamespace", properties)
        made.declare_table({"id": self.parts, "properties": {"managed_by": "impl"}})
        return made

    def locate(self) -> Path:
        described = self.namespace.describe_table({"id": self.parts})
        return Path(str(described.location).removeprefix("file://"))

    def dataset(self) -> lance.LanceDataset:
        return lance.dataset(namespace_client=self.namespace, table_id=self.parts)

    def append_elsewhere(self, rows: pa.Table) -> None:
        lance.write_dataset(rows, namespace_client=self.namespace, table_id=self.parts, mode="append")

    def after_a_loss(self) -> None:
        self.namespace.adopt_table(self.parts)

    def teardown(self) -> None:
        self.namespace.close()

    # The metastore would still have the version.
    remove_by_hand = None  # type: ignore[assignment]


@pytest.fixture
def machine(glue: GlueDouble, database: str, tmp_path: Path) -> type[ManagedKeyedTableMachine]:
    properties = {**glue.properties, "root": str(tmp_path)}
    with connect("airflow_provider_lancens.namespace.GlueNamespace", properties) as namespace:
        namespace.create_namespace({"id": [database]})
    ManagedKeyedTableMachine.glue, ManagedKeyedTableMachine.database = glue, database
    return ManagedKeyedTableMachine


@pytest.mark.thorough
def test_each_key_of_a_managed_table_writes_its_row_once(
    machine: type[ManagedKeyedTableMachine], tmp_path: Path
) -> None:
    check_in_any_order(machine, tmp_path, examples=4, steps=12)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_each_key_of_a_managed_table_writes_its_row_once_after_many_events(
    machine: type[ManagedKeyedTableMachine], tmp_path: Path
) -> None:
    check_in_any_order(machine, tmp_path, examples=200, steps=30)
