"""How often a cascade reads the namespace that it drops."""

from pathlib import Path
from typing import Any

import pytest
from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
)

from airflow_provider_lancens import LanceCatalog
from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace.config import Properties, StorageConfig
from airflow_provider_lancens.namespace.metastore_protocol import Namespace
from airflow_provider_lancens.namespace.operations.cascade import CascadePlan
from airflow_provider_lancens.namespace.storage import write_leases
from airflow_provider_lancens.spark.commit.write_lease import acquire_lease
from airflow_provider_lancens.spark.table.resolved_table import resolved_table
from tests.unit.spark.commit.memory_lake import MemoryMetastore, MemoryNamespace


class CountingMetastore(MemoryMetastore):
    """Counts how often a namespace is read."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root
        self.reads = 0

    def deletable_folders(self, database: NamespaceId) -> list[str]:
        return [f"{self.root}/{database.name}.db"]

    def get_namespace(self, namespace: NamespaceId) -> Namespace:
        self.reads += 1
        return super().get_namespace(namespace)


@pytest.fixture
def metastore(tmp_path: Path) -> CountingMetastore:
    """A metastore with a database, which has two declared tables."""
    made, location = CountingMetastore(tmp_path), str(tmp_path / "db.db")
    made.create_namespace(Namespace(NamespaceId.of(["db"]), location, properties={"team": "sales"}))
    for name in ("orders", "customers"):
        connected(made).declare_table({"id": ["db", name]})
    made.reads = 0
    return made


def connected(metastore: CountingMetastore) -> Any:
    properties = {"root": str(metastore.root)}
    config = StorageConfig.parse(Properties(properties, ["root"]))
    return MemoryNamespace(metastore, config, properties)  # type: ignore[arg-type]


def test_a_cascade_of_a_catalog_reads_the_namespace_once(metastore: CountingMetastore) -> None:
    dropped = LanceCatalog(lambda: connected(metastore)).drop_namespace("db", cascade=True)

    assert dropped.plan is not None
    assert dropped.plan["lance_table_count"] == 2
    assert (metastore.reads, metastore.namespaces, metastore.tables) == (1, {}, {})


def test_a_cascade_by_request_reads_it_once_and_returns_its_properties(metastore: CountingMetastore) -> None:
    dropped = connected(metastore).drop_namespace({"id": ["db"], "behavior": "Cascade"})

    assert dropped.properties["team"] == "sales"
    assert (metastore.reads, metastore.namespaces) == (1, {})


def test_a_cascade_of_a_namespace_that_is_missing_is_refused(metastore: CountingMetastore) -> None:
    with pytest.raises(NamespaceNotFoundError):
        LanceCatalog(lambda: connected(metastore)).drop_namespace("other", cascade=True)


def test_a_dry_run_lists_the_tables_and_drops_nothing(metastore: CountingMetastore) -> None:
    planned = LanceCatalog(lambda: connected(metastore)).drop_namespace("db", cascade=True, dry_run=True)

    assert planned.outcome == "planned"
    assert planned.plan is not None
    assert planned.plan["lance_tables"] == ["db$customers", "db$orders"]
    assert len(metastore.tables) == 2


def test_a_dry_run_without_a_cascade_is_refused_if_the_namespace_is_not_empty(
    metastore: CountingMetastore,
) -> None:
    plans: list[CascadePlan] = []
    lake = LanceCatalog(lambda: connected(metastore))

    with pytest.raises(NamespaceNotEmptyError, match=r"is not empty: it contains db\$customers, db\$orders"):
        lake.drop_namespace("db", dry_run=True, on_plan=plans.append)
    assert len(plans) == 1
    metastore.tables.clear()
    assert lake.drop_namespace("db", dry_run=True).outcome == "planned"


def test_a_dry_run_is_refused_if_a_table_is_being_written_to(
    metastore: CountingMetastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_leases, "_WAIT", 0.0)
    lake = LanceCatalog(lambda: connected(metastore))

    with (
        resolved_table(lake.namespace, "db$orders") as target,
        acquire_lease(target.dataset).kept_alive(end=True),
        pytest.raises(ConcurrentModificationError, match=r"table db\$orders can't be dropped"),
    ):
        lake.drop_namespace("db", cascade=True, dry_run=True)


def test_a_dry_run_of_a_namespace_that_the_server_never_drops_is_refused(
    metastore: CountingMetastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(namespace: NamespaceId) -> None:
        raise InvalidInputError(f"namespace {namespace} cannot be dropped")

    monkeypatch.setattr(metastore, "check_droppable", refuse)
    lake = LanceCatalog(lambda: connected(metastore))

    for cascade in (False, True):
        with pytest.raises(InvalidInputError, match="cannot be dropped"):
            lake.drop_namespace("db", cascade=cascade, dry_run=True)
