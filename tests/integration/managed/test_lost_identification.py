"""Catalog tables that lost their Lance parameters by another client's ALTER, and their repair."""

from typing import Any

import pytest
from lance_namespace.errors import ErrorCode

from tests.conformance.codes import refused_with
from tests.integration.managed.managed_table import ManagedTable
from tests.integration.managed.other_client import OtherClient
from tests.support.lakes import Lake, rewrite


@pytest.fixture
def other(lake: Lake, table: ManagedTable) -> OtherClient:
    return OtherClient(lake, table)


def register(table: ManagedTable, location: str, **properties: str) -> Any:
    request = {"id": table.parts, "location": location, "mode": "overwrite", "properties": properties}
    return table.namespace.register_table(request)


def test_a_catalog_table_without_table_type_is_registered_again_and_stays_managed(
    table: ManagedTable, other: OtherClient
) -> None:
    table.append(2)
    location = table.location
    other.remove_parameters("table_type")
    with refused_with(ErrorCode.INVALID_INPUT, "another client removed it", "mode overwrite"):
        table.append(3)
    register(table, location)
    assert (table.version, table.rows(), table.append(3)) == (2, [1, 2], 3)
    assert table.namespace.compare_table(table.parts).verdict == "consistent"


def test_a_catalog_table_without_parameters_is_identified_by_its_data(
    table: ManagedTable, other: OtherClient
) -> None:
    table.append(2)
    location = table.location
    other.remove_parameters()
    with refused_with(ErrorCode.INVALID_INPUT, "is not a Lance table"):
        register(table, f"{location}-elsewhere")
    register(table, f"{location}/", managed_by="impl")
    assert (table.version, table.rows(), table.append(3)) == (2, [1, 2], 3)


@pytest.mark.parametrize("kind", ["iceberg", "HUDI"])
def test_a_foreign_catalog_table_is_not_replaced_at_any_location(table: ManagedTable, kind: str) -> None:
    location = table.location
    rewrite(table, table_type=kind)
    with refused_with(ErrorCode.INVALID_INPUT, "is not a Lance table", kind):
        register(table, location)
    rewrite(table, table_type="lance")
    assert (table.version, table.rows()) == (1, [1])
