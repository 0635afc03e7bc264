"""Late requests of a table that was dropped and declared again, on real metastores."""

import pytest
from lance_namespace.errors import ErrorCode

from airflow_provider_lancens.namespace.error_types import StaleTableError
from airflow_provider_lancens.namespace.hive.metastore import HiveMetastore
from airflow_provider_lancens.namespace.managed.publication import Publication
from tests.conformance.codes import refused_with
from tests.integration.managed.commit_points import Point
from tests.integration.managed.managed_table import ManagedTable
from tests.support.lakes import Lake

pytestmark = pytest.mark.thorough
RECORDED = Point(Publication, "record", after=True, committed=False)
READ = Point(HiveMetastore, "_raw_table", after=True, committed=True)


def declared_again(lake: Lake, table: ManagedTable, managed_by: str) -> None:
    with lake.connect() as other:
        other.drop_table({"id": table.parts})
        other.declare_table({"id": table.parts, "properties": {"managed_by": managed_by}})


def test_a_late_commit_is_refused_though_the_version_is_the_same(hive: Lake, database: str) -> None:
    # Glue can't tell the two tables apart where their VersionId is the same too: see docs/architecture.md.
    table = hive.declare(database)
    before, request = table.location, table.stage(1)
    with (
        RECORDED.interrupted_by(lambda: declared_again(hive, table, "impl")),
        refused_with(ErrorCode.CONCURRENT_MODIFICATION),
    ):
        table.commit(request)
    assert table.version == 0
    assert table.location != before
    assert table.append(2) == 1
    assert table.rows() == table.rows_by_path() == [2]


def test_a_late_description_of_columns_changes_no_other_table(hive: Lake, database: str) -> None:
    table = hive.declare(database, managed_by="storage")
    table.append_directly(1)
    schema, before = table.open_by_path().schema, table.location
    with (
        READ.interrupted_by(lambda: declared_again(hive, table, "storage")),
        refused_with(ErrorCode.CONCURRENT_MODIFICATION),
    ):
        table.namespace.update_catalog_columns(table.parts, schema, before)
    assert table.location != before
    with pytest.raises(StaleTableError, match="declared again"):
        table.namespace.update_catalog_columns(table.parts, schema, before)


def test_a_registration_again_keeps_the_name_and_what_was_committed(lake: Lake, table: ManagedTable) -> None:
    register = {"id": table.parts, "location": table.location, "mode": "overwrite"}
    table.namespace.register_table({**register, "properties": {"managed_by": "storage"}})
    assert table.append_directly(2) == 2
    table.namespace.register_table({**register, "properties": {"managed_by": "impl"}})
    assert table.version == 2
    assert table.append(3) == 3
    assert table.rows() == [1, 2, 3]
