"""Another client that writes back an older catalog table, which resets the version."""

import logging
from typing import Any

import pytest
from lance_namespace.errors import ErrorCode

from tests.conformance.codes import refused_with
from tests.integration.managed.managed_table import ManagedTable
from tests.integration.managed.other_client import OtherClient
from tests.support.lakes import Lake


@pytest.fixture
def other(lake: Lake, table: ManagedTable) -> OtherClient:
    return OtherClient(lake, table)


def compared(table: ManagedTable) -> Any:
    return table.namespace.compare_table(table.parts)


def test_a_version_rollback_is_distinguished_from_a_bypass_and_adopted(
    table: ManagedTable, other: OtherClient, caplog: pytest.LogCaptureFixture
) -> None:
    stale = other.read()
    for row in (2, 3):
        table.append(row)
    other.write(stale)
    assert (table.version, table.rows()) == (1, [1])
    found = compared(table)
    assert (found.verdict, found.metastore_version, found.committed_version) == ("metastore_reverted", 1, 3)
    assert "another client" in found.explanation
    assert "direct writer" not in found.explanation
    with pytest.raises(OSError, match="unknown"):
        table.append(4)
    [said] = [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]
    assert "was set back" in said
    assert "version 3 was committed" in said
    assert table.namespace.adopt_table(table.parts).verdict == "metastore_reverted"
    assert (table.rows(), table.append(4)) == ([1, 2, 3], 4)
    assert compared(table).verdict == "consistent"


def test_a_direct_commit_after_a_rollback_is_reported_too(table: ManagedTable, other: OtherClient) -> None:
    stale = other.read()
    table.append(2)
    other.write(stale)
    table.append_directly(30)
    found = compared(table)
    assert (found.verdict, found.committed_version, found.storage_version) == ("metastore_reverted", 2, 3)
    assert "above 2 are a direct writer's" in found.explanation


def test_a_rollback_to_version_0_is_not_shown_as_an_empty_table(lake: Lake, database: str) -> None:
    table = lake.declare(database)
    stale = OtherClient(lake, table).read()
    table.append(1)
    OtherClient(lake, table).write(stale)
    with pytest.raises(ValueError, match="was set back"):
        table.open()
    table.namespace.adopt_table(table.parts)
    assert table.rows() == [1]


def test_a_rollback_of_an_adopted_version_is_detected(table: ManagedTable, other: OtherClient) -> None:
    stale = other.read()
    table.append_directly(20)
    assert table.namespace.adopt_table(table.parts).verdict == "storage_ahead"
    other.write(stale)
    assert (compared(table).verdict, compared(table).committed_version) == ("metastore_reverted", 2)


def test_a_direct_commit_that_reuses_a_discarded_version_is_reported_as_such(
    table: ManagedTable, other: OtherClient
) -> None:
    stale = other.read()
    table.append(2)
    other.write(stale)
    table.remove(table.final(2))
    assert table.append_directly(20) == 2
    assert compared(table).verdict == "storage_ahead"
    with refused_with(ErrorCode.INVALID_TABLE_STATE, "was bypassed"):
        table.namespace.create_table_version({**table_request(table), "version": 2})


def table_request(table: ManagedTable) -> dict[str, Any]:
    return {"id": table.parts, "manifest_path": "t.lance/_versions/x.manifest-x", "naming_scheme": "V2"}


def test_one_high_water_mark_is_kept_beside_the_data(table: ManagedTable) -> None:
    for row in (2, 3):
        table.append(row)
    assert [path for path in table.files("_lancens") if path not in table.recorded] == [
        "_lancens/committed-3"
    ]
