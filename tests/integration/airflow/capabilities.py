"""What Airflow does with a catalog, step by step: each row of the table in `docs/connections.md`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from airflow_provider_lancens.hooks import LanceHook
from airflow_provider_lancens.operators import (
    LanceAdvanceVersionOperator,
    LanceAlterTableOperator,
    LanceCheckTableOperator,
    LanceCleanUpVersionsOperator,
    LanceConvertTableOperator,
    LanceCreateNamespaceOperator,
    LanceDeclareTableOperator,
    LanceDeregisterTableOperator,
    LanceDropNamespaceOperator,
    LanceDropTableOperator,
    LancePublishOperator,
    LanceRegisterTableOperator,
    LanceReleaseOperator,
    LanceRemoveOrphansOperator,
    LanceRestoreOperator,
    LanceTagOperator,
)
from airflow_provider_lancens.sensors import LanceTableVersionSensor
from tests.integration.airflow.lifecycle import PATIENCE, Attempt, run_to_its_end

ROWS = pa.table({"id": [1, 2, 3]})


@dataclass
class Lake:
    """A connection, and where its tables may be."""

    conn_id: str
    folder: Path
    """A folder that belongs to its root, and is no other test's."""
    attempt: Attempt = field(default_factory=Attempt)

    def run(self, operator: type[Any], **arguments: Any) -> Any:
        """Run an operator's task."""
        task = operator(task_id="task", lance_conn_id=self.conn_id, **arguments)
        return task.execute({"ti": self.attempt, "task": task, "run_id": "manual__1"})

    def table(self, name: str) -> Any:
        """The table object of `LanceHook`."""
        return LanceHook(self.conn_id).table(f"shop.{name}")

    def data(self, name: str) -> str:
        """Data that is in no catalog."""
        location = str(self.folder / f"{name}.lance")
        lance.write_dataset(ROWS, location)
        return location


def _namespaces(lake: Lake) -> None:
    for name in ("shop", "spare"):
        lake.run(LanceCreateNamespaceOperator, namespace=name, properties={"team": "sales"})
    lake.run(LanceDropNamespaceOperator, namespace="spare")


def _declares(lake: Lake) -> None:
    layout = {"stable_row_ids": True}
    lake.run(LanceDeclareTableOperator, table="shop.orders", schema={"id": "bigint"}, layout=layout)
    lake.run(LanceDropTableOperator, table="shop.orders")
    lake.run(LanceDeclareTableOperator, table="shop.orders", schema={"id": "bigint"})


def _deregisters(lake: Lake) -> None:
    lake.run(LanceDeclareTableOperator, table="shop.loose")
    lake.run(LanceDeregisterTableOperator, table="shop.loose")


def _writes(lake: Lake) -> None:
    orders = lake.table("orders")
    orders.append(ROWS)
    orders.upsert(ROWS, on=["id"])
    orders.delete("id = 3")
    orders.overwrite(ROWS)
    assert orders.to_arrow().num_rows == 3


def _waits(lake: Lake) -> None:
    sensor = LanceTableVersionSensor(
        task_id="wait", table="shop.orders", lance_conn_id=lake.conn_id, min_version=2, timeout=PATIENCE
    )
    assert run_to_its_end(sensor)["version"] >= 2


def _keeps(lake: Lake) -> None:
    lake.run(LanceTagOperator, table="shop.orders", version=2, tag="train")
    lake.table("orders").move_bookmark("reader", 2)
    lake.run(LanceRestoreOperator, table="shop.orders", version="train")


def _publishes(lake: Lake) -> None:
    staged = lake.table("orders").append(ROWS, stage=True)
    lake.run(LancePublishOperator, staged=staged.as_dict())


def _releases(lake: Lake) -> None:
    lake.run(LanceDeclareTableOperator, table="shop.releases")
    lake.run(LanceReleaseOperator, release_set="shop.releases", tables={"shop.orders": 2})


def _alters(lake: Lake) -> None:
    lake.run(LanceAlterTableOperator, table="shop.orders", add={"note": "string"})


def _cleans_up(lake: Lake) -> None:
    lake.run(LanceCleanUpVersionsOperator, table="shop.orders", older_than=timedelta(days=7))
    lake.run(LanceRemoveOrphansOperator, table="shop.orders", older_than=timedelta(days=7))


def _advances(lake: Lake) -> None:
    orders = lake.table("orders")
    version = orders.version
    lance.write_dataset(orders.to_arrow(), orders.location, mode="append")
    lake.run(
        LanceAdvanceVersionOperator,
        table="shop.orders",
        expected_version=version,
        version=version + 1,
    )


STEPS: Mapping[str, Callable[[Lake], object]] = {
    "create and drop databases": _namespaces,
    "declare tables, with columns and a layout; drop them with their data": _declares,
    "declare a table at a given `location`": lambda lake: lake.run(
        LanceDeclareTableOperator, table="shop.placed", location=str(lake.folder / "placed.lance")
    ),
    "register data below the `root`": lambda lake: lake.run(
        LanceRegisterTableOperator, table="shop.found", location=lake.data("found")
    ),
    "replace the entry of a table (`if_exists='replace'`)": lambda lake: lake.run(
        LanceRegisterTableOperator,
        table="shop.found",
        location=lake.data("found_again"),
        if_exists="replace",
    ),
    "deregister a table": _deregisters,
    "append, upsert, delete, overwrite, read": _writes,
    "wait for a version": _waits,
    "tags, bookmarks, restore": _keeps,
    "stage and publish": _publishes,
    "release sets": _releases,
    "change columns": _alters,
    "clean-ups of versions and of orphans": _cleans_up,
    "check a table's files": lambda lake: lake.run(LanceCheckTableOperator, table="shop.orders"),
    "`version_authority='catalog'` for a new table": lambda lake: lake.run(
        LanceDeclareTableOperator, table="shop.decided", version_authority="catalog"
    ),
    "convert a table to it": lambda lake: lake.run(
        LanceConvertTableOperator, table="shop.orders", version_authority="catalog"
    ),
    "advance the version in the catalog": _advances,
    "adopt versions of direct writers (`if_inconsistent='adopt'`)": lambda lake: lake.run(
        LanceCheckTableOperator, table="shop.orders", if_inconsistent="adopt"
    ),
    "rename a table (`rename_table` of the namespace)": lambda lake: (
        LanceHook(lake.conn_id)
        .get_conn()
        .rename_table({"id": ["shop", "decided"], "new_table_name": "renamed"})
    ),
    "plan a cascade (`dry_run=True`)": lambda lake: lake.run(
        LanceDropNamespaceOperator, namespace="shop", cascade=True, dry_run=True
    ),
    "drop a database with its tables (`cascade=True`)": lambda lake: lake.run(
        LanceDropNamespaceOperator, namespace="shop", cascade=True
    ),
}
