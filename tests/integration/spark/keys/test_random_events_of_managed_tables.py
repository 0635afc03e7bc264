"""Random events of a managed table that is written under keys: what is lost is adopted."""

import itertools
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from lance_namespace import LanceNamespace, connect

from airflow_provider_lancens.spark.keys import key_index
from tests.servers.glue_double import GlueDouble
from tests.unit.spark.keys.key_state_machine import TABLE, KeyedTableMachine


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


def check_in_any_order(
    glue: GlueDouble, database: str, folder: Path, examples: int, steps: int, number: int = 0
) -> None:
    numbers = itertools.count()
    with connect(
        "airflow_provider_lancens.namespace.GlueNamespace", {**glue.properties, "root": str(folder)}
    ) as namespace:
        namespace.create_namespace({"id": [database]})

    def machine() -> ManagedKeyedTableMachine:
        own = folder / str(next(numbers))
        own.mkdir()
        return ManagedKeyedTableMachine(own)

    ManagedKeyedTableMachine.glue, ManagedKeyedTableMachine.database = glue, database
    run_state_machine_as_test(
        seed(number)(machine),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
        ),
    )


@pytest.fixture(autouse=True)
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_index, "LONG", 4)


@pytest.mark.slow
def test_each_key_of_a_managed_table_writes_its_row_once(
    glue: GlueDouble, database: str, tmp_path: Path
) -> None:
    check_in_any_order(glue, database, tmp_path, examples=4, steps=12)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_each_key_of_a_managed_table_writes_its_row_once_after_many_events(
    glue: GlueDouble, database: str, tmp_path: Path
) -> None:
    check_in_any_order(glue, database, tmp_path, examples=200, steps=30)
