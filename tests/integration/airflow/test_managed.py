"""Operators on tables whose versions the metastore decides, and on tags; a second run changes nothing."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import lance
import pyarrow as pa
import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_lancens.hooks.errors import LanceRetryableError
from airflow_provider_lancens.operators.managed import LanceCompareTableOperator, LanceConvertTableOperator
from airflow_provider_lancens.operators.versions import (
    LanceAdvanceTableVersionOperator,
    LanceReleaseVersionOperator,
    LanceTagVersionOperator,
)
from tests.integration.airflow.tables import Table

Run = Callable[..., Any]


@pytest.fixture
def managed(run: Run, table: Table) -> str:
    """The location of a table at version 1 that is managed by the metastore."""
    location = table.declare()
    table.advance()
    run(LanceConvertTableOperator, table=str(table), managed_by="impl")
    return location


def by_path(location: str) -> None:
    """Commit a row past the metastore."""
    lance.write_dataset(pa.table({"n": [1]}), location, mode="append")


def test_a_table_is_handed_to_the_metastore_and_back_once(run: Run, table: Table) -> None:
    table.declare()
    for managed_by in ("impl", "storage"):
        converted = {"table": str(table), "managed_by": managed_by}
        arguments = {"operator": LanceConvertTableOperator, **converted}
        assert run(**arguments) == {**converted, "converted": True}
        assert run(**arguments) == {**converted, "converted": False}


def test_another_kind_of_managing_is_refused(run: Run, table: Table) -> None:
    table.declare()
    with pytest.raises(AirflowFailException, match="expected 'impl' or 'storage', got 'hms'"):
        run(LanceConvertTableOperator, table=str(table), managed_by="hms")


def test_a_version_is_advanced_once(run: Run, table: Table, managed: str) -> None:
    by_path(managed)
    arguments = {"table": str(table), "expected_version": "1", "new_version": "2"}
    moved = {"table": str(table), "version": 2, "previous_version": 1}
    assert run(LanceAdvanceTableVersionOperator, **arguments) == {**moved, "advanced": True}
    assert run(LanceAdvanceTableVersionOperator, **arguments) == {**moved, "advanced": False}


def test_a_version_that_was_expected_in_vain_lets_airflow_try_again(
    run: Run, table: Table, managed: str
) -> None:
    with pytest.raises(LanceRetryableError, match="it is at version 1, expected 5"):
        run(LanceAdvanceTableVersionOperator, table=str(table), expected_version=5, new_version=6)


def test_a_version_that_nobody_wrote_fails_for_good(run: Run, table: Table, managed: str) -> None:
    with pytest.raises(AirflowFailException, match="no manifest of version 2"):
        run(LanceAdvanceTableVersionOperator, table=str(table), expected_version=1, new_version=2)


def test_a_version_that_a_template_left_out_is_told_by_its_argument(run: Run, table: Table) -> None:
    with pytest.raises(AirflowFailException, match="new_version='None': a version is needed"):
        run(LanceAdvanceTableVersionOperator, table=str(table), expected_version=1, new_version="None")


def test_metastore_and_storage_that_agree_are_told_so(run: Run, table: Table, managed: str) -> None:
    assert run(LanceCompareTableOperator, table=str(table), if_inconsistent="fail") == {
        "table": str(table),
        "verdict": "consistent",
        "metastore_version": 1,
        "storage_version": 1,
        "adopted": False,
    }


def test_a_writer_by_path_is_reported_then_adopted(run: Run, table: Table, managed: str) -> None:
    by_path(managed)
    found = {"table": str(table), "verdict": "storage_ahead", "metastore_version": 1, "storage_version": 2}
    assert run(LanceCompareTableOperator, table=str(table)) == {**found, "adopted": False}
    with pytest.raises(AirflowFailException, match="a writer committed by path"):
        run(LanceCompareTableOperator, table=str(table), if_inconsistent="fail")
    adopt = {"table": str(table), "if_inconsistent": "adopt"}
    assert run(LanceCompareTableOperator, **adopt) == {**found, "adopted": True}
    assert run(LanceCompareTableOperator, **adopt)["verdict"] == "consistent"


def test_a_tagged_version_outlives_a_clean_up_until_it_is_released(run: Run, table: Table) -> None:
    location = table.declare()
    for _ in range(3):
        table.advance()
    pinned = {"table": str(table), "version": 2, "tag": "a-run"}
    assert run(LanceTagVersionOperator, **{**pinned, "version": "2"}) == pinned
    assert run(LanceTagVersionOperator, **pinned) == pinned

    clean_up(location)
    assert lance.dataset(location, version="a-run").count_rows() == 2

    released = {"table": str(table), "tag": "a-run"}
    assert run(LanceReleaseVersionOperator, **released) == {**released, "released": True}
    assert run(LanceReleaseVersionOperator, **released) == {**released, "released": False}
    clean_up(location)
    assert [one["version"] for one in lance.dataset(location).versions()] == [3]


def clean_up(location: str) -> None:
    data = lance.dataset(location)
    data.cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)


def test_a_tag_moves_to_another_version(run: Run, table: Table) -> None:
    location = table.declare()
    table.advance()
    table.advance()
    for version in (1, 2):
        run(LanceTagVersionOperator, table=str(table), version=version, tag="a-run")
    assert lance.dataset(location, version="a-run").count_rows() == 2


def test_what_can_not_be_tagged_fails_for_good(run: Run, table: Table) -> None:
    table.declare()
    table.advance()
    with pytest.raises(AirflowFailException, match="version main:7 does not exist"):
        run(LanceTagVersionOperator, table=str(table), version=7, tag="a-run")
    with pytest.raises(AirflowFailException, match="tag='a:run': no name for a tag"):
        run(LanceTagVersionOperator, table=str(table), version=1, tag="a:run")


def test_a_table_that_is_gone_has_nothing_to_release(run: Run, table: Table) -> None:
    assert run(LanceReleaseVersionOperator, table=str(table), tag="a-run")["released"] is False
    with pytest.raises(AirflowFailException, match="has no such tag"):
        run(LanceReleaseVersionOperator, table=str(table), tag="a-run", if_missing="fail")
