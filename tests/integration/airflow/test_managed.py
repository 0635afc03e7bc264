"""Operators on managed tables and on tags; a second run changes nothing."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import ConcurrentModificationError

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException, LanceRetryableError
from airflow_provider_lancens.namespace import Hive2Namespace
from airflow_provider_lancens.operators.namespaces import LanceCreateNamespaceOperator
from airflow_provider_lancens.operators.tables import LanceDeclareTableOperator, LanceRegisterTableOperator
from airflow_provider_lancens.operators.version_authority import (
    LanceAdvanceVersionOperator,
    LanceCheckTableOperator,
    LanceConvertTableOperator,
)
from airflow_provider_lancens.operators.versions import LanceDeleteTagOperator, LanceTagOperator
from tests.integration.airflow.tables import Table
from tests.servers.proxy import Proxy

Run = Callable[..., Any]


@pytest.fixture
def managed(run: Run, table: Table) -> str:
    """The location of a managed table at version 1."""
    location = table.declare()
    table.advance()
    run(LanceConvertTableOperator, table=str(table), version_authority="catalog")
    return location


def commit_directly(location: str) -> None:
    """Commit a row as a direct writer."""
    lance.write_dataset(pa.table({"n": [1]}), location, mode="append")


def test_a_tag_is_retried_if_the_metastore_fails_while_lance_opens_the_table(
    metastore: MetastoreServer,
    connect: Callable[..., str],
    run: Run,
    table: Table,
    managed: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    described = Hive2Namespace.describe_table

    with Proxy(metastore.uri) as network:
        connect(host=network.uri, extra={"root": str(tmp_path)})

        def describe_and_lose_the_metastore(*arguments: Any) -> Any:
            response = described(*arguments)
            network.gone = True
            return response

        with monkeypatch.context() as patch:
            patch.setattr(Hive2Namespace, "describe_table", describe_and_lose_the_metastore)
            with pytest.raises(LanceRetryableError, match="SERVICE_UNAVAILABLE"):
                run(LanceTagOperator, table=str(table), version=1, tag="report")
        network.gone = False
        run(LanceTagOperator, table=str(table), version=1, tag="report")

    assert lance.dataset(managed).tags.list()["report"]["version"] == 1


def test_a_table_is_converted_to_managed_and_back_once(run: Run, table: Table) -> None:
    table.declare()
    for authority in ("catalog", "storage"):
        converted = {"table": str(table), "version_authority": authority}
        arguments = {"operator": LanceConvertTableOperator, **converted}
        made = {**converted, "operation": "set_version_authority"}
        assert run(**arguments) == {**made, "outcome": "done"}
        assert run(**arguments) == {**made, "outcome": "unchanged"}


def test_the_connection_sets_the_version_authority_of_new_tables(
    metastore: MetastoreServer, connect: Callable[..., str], run: Run, table: Table, tmp_path: Path
) -> None:
    run(LanceCreateNamespaceOperator, namespace=table.database)
    connect(host=metastore.uri, extra={"root": str(tmp_path), "managed_by": "impl"})
    run(LanceDeclareTableOperator, table=str(table))
    compared = run(LanceCheckTableOperator, table=str(table))
    assert (compared["verdict"], compared["catalog_version"]) == ("consistent", 0)


@pytest.mark.parametrize(("authority", "other"), [("catalog", "storage"), ("storage", "catalog")])
def test_a_table_is_declared_with_its_version_authority_and_another_one_is_refused(
    run: Run, table: Table, authority: str, other: str
) -> None:
    run(LanceCreateNamespaceOperator, namespace=table.database)
    given = {"table": str(table), "version_authority": authority}
    assert run(LanceDeclareTableOperator, **given)["outcome"] == "done"
    assert run(LanceDeclareTableOperator, **given)["outcome"] == "unchanged"
    assert run(LanceDeclareTableOperator, table=str(table))["outcome"] == "unchanged"

    differs = rf"exists with version_authority='{authority}', not '{other}'; .* LanceConvertTableOperator"
    location = run(LanceDeclareTableOperator, table=str(table))["location"]
    with pytest.raises(AirflowFailException, match=differs):
        run(LanceDeclareTableOperator, table=str(table), version_authority=other)
    with pytest.raises(AirflowFailException, match=differs):
        run(LanceRegisterTableOperator, table=str(table), location=location, version_authority=other)
    assert run(LanceConvertTableOperator, **given)["outcome"] == "unchanged"


def test_a_version_is_advanced_once(run: Run, table: Table, managed: str) -> None:
    commit_directly(managed)
    arguments = {"table": str(table), "expected_version": "1", "version": "2"}
    moved = {"table": str(table), "operation": "advance", "version": 2, "previous_version": 1, "reason": ""}
    moved["location"] = managed
    for outcome in ("done", "unchanged"):
        answer = run(LanceAdvanceVersionOperator, **arguments)
        assert answer == {**moved, "outcome": outcome, "seconds": answer["seconds"]}


def test_an_unmet_expected_version_is_retryable(run: Run, table: Table, managed: str) -> None:
    with pytest.raises(LanceRetryableError, match="it is at version 1, expected 5"):
        run(LanceAdvanceVersionOperator, table=str(table), expected_version=5, version=6)


def test_an_expected_version_that_the_table_has_passed_fails_without_retry(
    run: Run, table: Table, managed: str
) -> None:
    with pytest.raises(AirflowFailException, match=r"it is at version 1, expected 0 \(code 14, ") as raised:
        run(LanceAdvanceVersionOperator, table=str(table), expected_version=0, version=2)
    assert isinstance(raised.value, ConcurrentModificationError)


def test_advancing_to_a_missing_version_fails_without_retry(run: Run, table: Table, managed: str) -> None:
    with pytest.raises(AirflowFailException, match="no manifest of version 2"):
        run(LanceAdvanceVersionOperator, table=str(table), expected_version=1, version=2)


def test_a_version_rendered_empty_is_reported_by_its_argument(run: Run, table: Table) -> None:
    with pytest.raises(AirflowFailException, match="version='None': expected a version"):
        run(LanceAdvanceVersionOperator, table=str(table), expected_version=1, version="None")


def test_a_consistent_metastore_and_storage_are_reported_as_such(
    run: Run, table: Table, managed: str
) -> None:
    found = run(LanceCheckTableOperator, table=str(table))

    assert 0 <= found.pop("seconds") < 60
    assert found == {
        "table": str(table),
        "operation": "check",
        "outcome": "unchanged",
        "version": 1,
        "previous_version": 1,
        "verdict": "consistent",
        "catalog_version": 1,
        "storage_version": 1,
        "checked": 1,
        "missing_files": {},
        "complete_version": 1,
        "reason": f"table {table}: metastore at 1, storage at 1: consistent",
        "location": managed,
    }


def test_a_direct_commit_fails_the_task_is_reported_or_is_adopted(
    run: Run, table: Table, managed: str
) -> None:
    commit_directly(managed)
    ahead = {"verdict": "storage_ahead", "catalog_version": 1, "storage_version": 2}.items()
    with pytest.raises(AirflowFailException, match="a direct writer committed"):
        run(LanceCheckTableOperator, table=str(table))
    reported = run(LanceCheckTableOperator, table=str(table), if_inconsistent="report")
    assert (reported["outcome"], reported["version"]) == ("unchanged", None)
    assert ahead <= reported.items()
    adopt = {"table": str(table), "if_inconsistent": "adopt"}
    adopted = run(LanceCheckTableOperator, **adopt)
    assert (adopted["outcome"], adopted["version"], adopted["checked"]) == ("done", 2, 2)
    assert ahead <= adopted.items()
    assert run(LanceCheckTableOperator, **adopt)["verdict"] == "consistent"


def test_missing_files_are_reported_and_nothing_is_adopted(run: Run, table: Table, managed: str) -> None:
    commit_directly(managed)
    run(LanceCheckTableOperator, table=str(table), if_inconsistent="adopt")
    for file in Path(managed, "data").iterdir():
        file.unlink()

    reported = run(LanceCheckTableOperator, table=str(table), if_inconsistent="report")
    assert (reported["verdict"], reported["complete_version"]) == ("files_missing", None)
    assert sorted(reported["missing_files"]) == [1, 2]
    with pytest.raises(AirflowFailException, match="refers to files that were removed, such as data/"):
        run(LanceCheckTableOperator, table=str(table))
    with pytest.raises(AirflowFailException, match="refers to files that were removed, such as data/"):
        run(LanceCheckTableOperator, table=str(table), if_inconsistent="adopt")


def test_storage_managed_tables_are_compared_too(run: Run, table: Table) -> None:
    table.declare()
    table.advance()

    found = run(LanceCheckTableOperator, table=str(table))

    assert (found["verdict"], found["catalog_version"], found["storage_version"]) == ("consistent", 1, 1)


def test_a_tagged_version_survives_clean_up_until_it_is_deleted(run: Run, table: Table) -> None:
    location = table.declare()
    for _ in range(3):
        table.advance()
    pinned = {"table": str(table), "version": 2, "tag": "a-run"}
    tagged = {**pinned, "operation": "tag", "outcome": "done", "location": location}
    assert run(LanceTagOperator, **{**pinned, "version": "2"}) == tagged
    assert run(LanceTagOperator, **pinned) == tagged

    clean_up(location)
    assert lance.dataset(location, version="a-run").count_rows() == 2

    tag = {"table": str(table), "tag": "a-run"}
    gone = {**tag, "operation": "delete_tag"}
    assert run(LanceDeleteTagOperator, **tag) == {**gone, "outcome": "done"}
    assert run(LanceDeleteTagOperator, **tag, if_missing="skip") == {**gone, "outcome": "unchanged"}
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
        run(LanceTagOperator, table=str(table), version=version, tag="a-run")
    assert lance.dataset(location, version="a-run").count_rows() == 2


def test_an_invalid_tag_or_version_fails_without_retry(run: Run, table: Table) -> None:
    table.declare()
    table.advance()
    with pytest.raises(AirflowFailException, match="has no version 7: it has not been written yet"):
        run(LanceTagOperator, table=str(table), version=7, tag="a-run")
    with pytest.raises(AirflowFailException, match="tag='a:run': is not a valid tag name"):
        run(LanceTagOperator, table=str(table), version=1, tag="a:run")
