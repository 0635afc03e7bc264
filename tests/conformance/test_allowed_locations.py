"""A connection whose locations are confined uses its credentials nowhere else, whoever names a location."""

from collections.abc import Iterator
from typing import Any

import pytest
from lance_namespace.errors import ErrorCode

from airflow_provider_lancens.identifiers import TableId
from tests.conformance.codes import refused_with
from tests.conformance.foreign import make_foreign_table
from tests.support.backends import Backend

on_both = pytest.mark.parametrize("backend", ["hive2-on-2.3.10", "glue-double"], indirect=True)


@pytest.fixture
def confined(backend: Backend) -> Iterator[Any]:
    """A namespace that may use the root and one more folder."""
    with backend.connect(allowed_locations=f"{backend.properties['root']}/more") as connected:  # type: ignore[attr-defined]
        yield connected


@on_both
def test_a_location_of_a_caller_that_is_not_allowed_is_refused(
    confined: Any, backend: Backend, db: list[str], tmp_path: Any
) -> None:
    elsewhere = f"{tmp_path}/elsewhere/t.lance"
    for operation in (confined.declare_table, confined.register_table):
        with refused_with(ErrorCode.PERMISSION_DENIED, "'allowed_locations'", elsewhere):
            operation({"id": [*db, "t"], "location": elsewhere})
    database = {"id": backend.database(), "properties": {"database.location-uri": f"{tmp_path}/other"}}
    with refused_with(ErrorCode.PERMISSION_DENIED, "'allowed_locations'"):
        confined.create_namespace(database)
    confined.declare_table({"id": [*db, "t"], "location": f"{backend.properties['root']}/more/t.lance"})
    confined.declare_table({"id": [*db, "default_place"]})


@pytest.mark.parametrize("backend", ["glue-double"], indirect=True)
@pytest.mark.parametrize("location", ["file:///etc/t.lance", "s3://payroll/t.lance"])
def test_by_default_a_connection_with_a_bucket_uses_no_other_store(backend: Backend, location: str) -> None:
    database = backend.database()
    with backend.connect(root="s3://lake/root") as lake:  # type: ignore[attr-defined]
        lake.create_namespace({"id": database})
        make_foreign_table(backend, database, "t", {"table_type": "lance"}, location, "EXTERNAL_TABLE")
        for operation in (lake.describe_table, lake.list_table_versions, lake.drop_table):
            with refused_with(ErrorCode.PERMISSION_DENIED, "another store", "'allowed_locations'"):
                operation({"id": [*database, "t"]})
        with refused_with(ErrorCode.PERMISSION_DENIED, "another store"):
            lake.declare_table({"id": [*database, "own"], "location": location})
        found = lake.poll_tables([TableId.of([*database, "t"])])
        assert found[TableId.of([*database, "t"])].code == ErrorCode.PERMISSION_DENIED
        lake.drop_namespace({"id": database, "behavior": "cascade"})


@on_both
def test_a_table_that_another_client_put_elsewhere_is_not_read_or_dropped(
    confined: Any, backend: Backend, db: list[str], tmp_path: Any
) -> None:
    parameters = {"table_type": "lance", "EXTERNAL": "TRUE"}
    make_foreign_table(backend, db, "t", parameters, f"file:{tmp_path}/elsewhere/t.lance", "EXTERNAL_TABLE")
    confined.declare_table({"id": [*db, "own"]})
    table = [*db, "t"]
    for operation in (confined.describe_table, confined.list_table_versions, confined.drop_table):
        with refused_with(ErrorCode.PERMISSION_DENIED, "'allowed_locations'", "$".join(table)):
            operation({"id": table})
    found = confined.poll_tables([TableId.of(table), TableId.of([*db, "own"])])
    assert found[TableId.of(table)].code == ErrorCode.PERMISSION_DENIED
    assert found[TableId.of([*db, "own"])].location
    assert confined.list_tables({"id": db}).tables == ["own", "t"]
    confined.drop_table({"id": [*db, "own"]})
    confined.deregister_table({"id": table})
