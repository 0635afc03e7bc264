"""Conversion of a table to managed and back, during concurrent writes."""

import contextlib

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import ConcurrentModificationError, ErrorCode

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.hive.metastore import HiveMetastore
from airflow_provider_lancens.namespace.managed.publication import Publication
from airflow_provider_lancens.namespace.metastore_protocol import ParameterChange
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from tests.conformance.codes import refused_with
from tests.integration.managed.commit_points import POINTS, Point, SimulatedDeath, simulate_death
from tests.integration.managed.managed_table import ManagedTable
from tests.support.lakes import Lake

RECORDED = Point(Publication, "record", after=True, committed=False)
TO_BE_LISTED = Point(Manifests, "newest", after=False, committed=False)
LISTED = Point(Manifests, "newest", after=True, committed=True)


def managed_by(table: ManagedTable) -> str:
    return str(table.namespace.describe_table({"id": table.parts}).properties["managed_by"])


@pytest.fixture
def storage_managed(lake: Lake, database: str) -> ManagedTable:
    """A storage-managed table at version 2."""
    table = lake.declare(database, managed_by="storage")
    table.append(1)
    table.append(2)
    return table


def test_a_direct_commit_during_conversion_is_kept(
    storage_managed: ManagedTable,
) -> None:
    table = storage_managed
    with LISTED.interrupted_by(lambda: table.append_directly(3)):
        assert table.namespace.convert_table(table.parts, managed_by="impl") is True
    assert (table.version, table.rows()) == (3, [1, 2, 3])
    assert table.append(4) == 4


def test_concurrent_conversions_succeed(lake: Lake, storage_managed: ManagedTable) -> None:
    table = storage_managed
    with lake.connect() as namespace:
        other = table.through(namespace)

        def take_over_and_commit() -> None:
            namespace.convert_table(table.parts, managed_by="impl")
            with POINTS["after-the-commit"].ended_by(simulate_death), pytest.raises(SimulatedDeath):
                other.commit(other.stage(3))

        with LISTED.interrupted_by(take_over_and_commit), contextlib.suppress(ConcurrentModificationError):
            # Glue reads again and finds the change made; Hive refuses it.
            assert table.namespace.convert_table(table.parts, managed_by="impl") is False
    assert (table.version, table.rows()) == (3, [1, 2, 3])


def test_a_commit_during_conversion_back_to_storage_is_refused(lake: Lake, table: ManagedTable) -> None:
    request = table.stage(2)
    with lake.connect() as namespace:
        hand_back = lambda: namespace.convert_table(table.parts, managed_by="storage")  # noqa: E731
        with RECORDED.interrupted_by(hand_back), pytest.raises(Exception, match=r"has been modified|version"):
            table.commit(request)
    assert managed_by(table) == "storage"
    assert table.append_directly(3) == 2
    assert table.rows() == [1, 3]
    assert table.namespace.convert_table(table.parts, managed_by="impl") is True
    assert table.append(4) == 3


def test_a_conversion_that_another_has_made_is_made_once(lake: Lake, table: ManagedTable) -> None:
    with lake.connect() as namespace:

        def convert_and_append() -> None:
            namespace.convert_table(table.parts, managed_by="storage")
            table.append_directly(2)

        with (
            TO_BE_LISTED.interrupted_by(convert_and_append),
            refused_with(ErrorCode.CONCURRENT_MODIFICATION, "it changed during the comparison"),
        ):
            table.namespace.convert_table(table.parts, managed_by="storage")
    assert table.namespace.convert_table(table.parts, managed_by="storage") is False
    assert table.rows() == [1, 2]


def test_an_unfinished_commit_is_published_before_conversion_back_to_storage(table: ManagedTable) -> None:
    request = table.stage(2)
    with POINTS["after-the-commit"].ended_by(simulate_death), pytest.raises(SimulatedDeath):
        table.commit(request)
    assert table.namespace.convert_table(table.parts, managed_by="storage") is True
    assert table.rows() == table.rows_by_path() == [1, 2]
    assert table.staged == table.recorded == []


def test_a_table_with_older_manifest_names_keeps_them(lake: Lake, database: str) -> None:
    table = lake.declare(database, managed_by="storage")
    options = {"storage_options": dict(table.storage_options), "enable_v2_manifest_paths": False}
    lance.write_dataset(pa.table({"row": [1]}), table.location, **options)
    table.namespace.convert_table(table.parts, managed_by="impl")
    request = table.stage(2)
    assert request["naming_scheme"] == "V1"
    with POINTS["after-the-commit"].ended_by(simulate_death), pytest.raises(SimulatedDeath):
        table.commit(request)
    assert table.rows() == [1, 2]
    assert table.append(3) == 3
    assert table.rows() == table.rows_by_path() == [1, 2, 3]
    assert [path for path in table.files("_versions") if path.endswith(".manifest")] == [
        f"_versions/{version}.manifest" for version in (1, 2, 3)
    ]
    table.append_directly(20)
    with refused_with(ErrorCode.INVALID_TABLE_STATE, "a direct writer"):
        table.commit({**request, "version": 4})


def test_no_table_change_reverts_a_concurrent_commit(hive: Lake, database: str) -> None:
    table = hive.declare(database)
    table.append(1)

    def change(_: object) -> ParameterChange:
        table.append(2)
        return ParameterChange({"team": "search"})

    with refused_with(ErrorCode.CONCURRENT_MODIFICATION):
        table.namespace._metastore.update_table(TableId.of(table.parts), change)
    assert table.version == 2


def test_a_rename_does_not_revert_a_concurrent_commit(hive: Lake, database: str) -> None:
    table = hive.declare(database)
    table.append(1)
    rename = {"id": table.parts, "new_table_name": "u"}
    looking_for_the_new_name = Point(HiveMetastore, "_find_table", after=False, committed=True)
    with (
        looking_for_the_new_name.interrupted_by(lambda: table.append(2)),
        refused_with(ErrorCode.CONCURRENT_MODIFICATION),
    ):
        table.namespace.rename_table(rename)
    assert table.version == 2
    table.namespace.rename_table(rename)
    renamed = ManagedTable(table.namespace, (database, "u"))
    assert renamed.append(3) == 3
    assert renamed.rows() == [1, 2, 3]
