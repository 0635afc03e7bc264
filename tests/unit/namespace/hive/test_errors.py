"""Hive's exceptions as the specification's errors, where their type doesn't tell whose fault it is."""

import pytest
from hmsclient.genthrift.hive_metastore.ttypes import MetaException
from lance_namespace.errors import ErrorCode

from airflow_provider_lancens.namespace.hive.errors import TABLE_ERRORS, hive_errors
from tests.conformance.codes import refused_with


@pytest.mark.parametrize(
    "text",
    [
        "An external table's location should not be located within managed warehouse root directory, table:t",
        "An external table's location should not be located outside the location specified on its database",
    ],
)
def test_a_location_that_a_server_keeps_for_its_own_tables_is_the_callers_input(text: str) -> None:
    with (
        refused_with(ErrorCode.INVALID_INPUT, "cannot create table db$t", "property 'root'"),
        hive_errors(TABLE_ERRORS, "create table db$t"),
    ):
        raise MetaException(text)


def test_another_failure_of_a_server_is_internal() -> None:
    with refused_with(ErrorCode.INTERNAL, "disk"), hive_errors(TABLE_ERRORS, "create table db$t"):
        raise MetaException("disk")
