"""The operators with a real metastore; a second run changes nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pytest

from airflow_provider_lancens.hooks.airflow_errors import (
    AirflowException,
    AirflowFailException,
    LanceRetryableError,
)
from airflow_provider_lancens.operators.namespaces import (
    LanceCreateNamespaceOperator,
    LanceDropNamespaceOperator,
)
from airflow_provider_lancens.operators.tables import (
    LanceDeclareTableOperator,
    LanceDeregisterTableOperator,
    LanceDropTableOperator,
    LanceRegisterTableOperator,
)
from airflow_provider_lancens.operators.version_authority import (
    LanceAdvanceVersionOperator,
    LanceCheckTableOperator,
    LanceConvertTableOperator,
)
from airflow_provider_lancens.operators.versions import LanceDeleteTagOperator, LanceTagOperator
from tests.integration.airflow.lifecycle import Attempt
from tests.integration.airflow.tables import Table

Run = Callable[..., Any]
REGISTERED = {"operation": "register_table"}


def test_a_namespace_is_created_once(run: Run, database: str, tmp_path: Path) -> None:
    properties = {"owner_team": "sales", "database.location-uri": str(tmp_path / "sales")}
    arguments = {"namespace": database, "properties": properties}
    made = {"namespace": database, "operation": "create_namespace"}
    assert run(LanceCreateNamespaceOperator, **arguments) == {**made, "outcome": "done"}
    assert run(LanceCreateNamespaceOperator, **arguments) == {**made, "outcome": "unchanged"}


def test_an_existing_namespace_fails_without_retry_if_configured(run: Run, database: str) -> None:
    run(LanceCreateNamespaceOperator, namespace=database)
    with pytest.raises(AirflowFailException, match=f"creating namespace '{database}' through .*'lake'"):
        run(LanceCreateNamespaceOperator, namespace=database, if_exists="fail")


def test_a_namespace_is_dropped_once(run: Run, database: str) -> None:
    run(LanceCreateNamespaceOperator, namespace=database)
    gone = {"namespace": database, "operation": "drop_namespace"}
    assert run(LanceDropNamespaceOperator, namespace=database) == {**gone, "outcome": "done"}
    again = run(LanceDropNamespaceOperator, namespace=database, if_missing="skip")
    assert again == {**gone, "outcome": "unchanged"}


REMOVALS: dict[type[Any], dict[str, Any]] = {
    LanceDropNamespaceOperator: {"namespace": "{}"},
    LanceDeregisterTableOperator: {"table": "{}$orders"},
    LanceDropTableOperator: {"table": "{}$orders"},
    LanceDeleteTagOperator: {"table": "{}$orders", "tag": "a-run"},
}


@pytest.mark.parametrize("operator", REMOVALS)
def test_removing_what_does_not_exist_fails_unless_it_may_be_missing(
    run: Run, attempt: Attempt, table: Table, operator: type[Any]
) -> None:
    given = {name: value.format(table.database) for name, value in REMOVALS[operator].items()}

    with pytest.raises(AirflowFailException, match=r"doesn't exist.* correct its name, or set if_missing"):
        run(operator, **given)
    skipped = run(operator, **given, if_missing="skip")
    attempt.try_number = 2  # the first one may have removed it, and was killed
    retried = run(operator, **given)

    assert skipped == retried
    assert not any(value is True for value in retried.values())


def test_a_planned_drop_of_a_missing_namespace_fails_too(run: Run, database: str) -> None:
    with pytest.raises(AirflowFailException, match=f"namespace '{database}' doesn't exist"):
        run(LanceDropNamespaceOperator, namespace=database, dry_run=True)


def test_a_non_empty_namespace_is_dropped_only_by_cascade_and_keeps_its_data(run: Run, table: Table) -> None:
    location = table.declare()
    table.advance()
    with pytest.raises(AirflowFailException, match="NAMESPACE_NOT_EMPTY"):
        run(LanceDropNamespaceOperator, namespace=table.database)
    assert run(LanceDropNamespaceOperator, namespace=table.database, cascade=True)["outcome"] == "done"
    assert lance.dataset(location).count_rows() == 1


def test_a_table_is_declared_once_at_the_given_location(run: Run, database: str, tmp_path: Path) -> None:
    run(LanceCreateNamespaceOperator, namespace=database)
    location = str(tmp_path / "elsewhere")
    arguments = {"table": f"{database}$orders", "location": location, "properties": {"team": "sales"}}
    declared = {"table": f"{database}$orders", "operation": "declare_table", "location": location}
    assert run(LanceDeclareTableOperator, **arguments) == {**declared, "outcome": "done"}
    assert run(LanceDeclareTableOperator, **arguments) == {**declared, "outcome": "unchanged"}


def test_a_table_declared_at_another_location_fails_without_retry(
    run: Run, table: Table, tmp_path: Path
) -> None:
    location = table.declare()
    assert run(LanceDeclareTableOperator, table=str(table), location=f"{location}/")["outcome"] == "unchanged"
    with pytest.raises(
        AirflowFailException, match=f"exists at '{location}', not at location='{tmp_path}/new'"
    ):
        run(LanceDeclareTableOperator, table=str(table), location=str(tmp_path / "new"))


def test_a_table_keeps_the_layout_that_it_was_declared_with(run: Run, database: str) -> None:
    run(LanceCreateNamespaceOperator, namespace=database)
    name, stable = f"{database}$orders", {"stable_row_ids": True}

    assert run(LanceDeclareTableOperator, table=name, layout=stable)["outcome"] == "done"
    assert run(LanceDeclareTableOperator, table=name, layout=stable)["outcome"] == "unchanged"
    assert run(LanceDeclareTableOperator, table=name)["outcome"] == "unchanged"
    with pytest.raises(AirflowFailException, match=r"exists with layout=\{.*true\}, not \{"):
        run(LanceDeclareTableOperator, table=name, layout={"vector_columns": {"v": 2}})
    with pytest.raises(ValueError, match=r"layout: .*'rows'"):  # while the DAG is parsed
        run(LanceDeclareTableOperator, table=name, layout={"rows": 1})


def test_a_table_is_declared_with_its_columns(run: Run, database: str) -> None:
    run(LanceCreateNamespaceOperator, namespace=database)
    name, columns = f"{database}$orders", {"id": "bigint", "v": "float[2]"}

    assert run(LanceDeclareTableOperator, table=name, schema=columns)["outcome"] == "done"
    assert run(LanceDeclareTableOperator, table=name, schema=columns)["outcome"] == "unchanged"
    with pytest.raises(AirflowFailException, match="its column 'id' is int64, not string as schema says"):
        run(LanceDeclareTableOperator, table=name, schema={"id": "string"})
    with pytest.raises(AirflowFailException, match="schema: expected at least one column"):
        run(LanceDeclareTableOperator, table=name, schema={})


@pytest.mark.parametrize("authority", ["storage", "catalog"])
def test_a_table_keeps_the_version_authority_that_it_was_declared_with(
    run: Run, database: str, authority: str
) -> None:
    run(LanceCreateNamespaceOperator, namespace=database)
    other = {"storage": "catalog", "catalog": "storage"}[authority]
    given = {"table": f"{database}$orders", "schema": {"id": "bigint"}}

    assert run(LanceDeclareTableOperator, **given, version_authority=authority)["outcome"] == "done"
    with pytest.raises(AirflowFailException, match=f"version_authority='{authority}', not '{other}'"):
        run(LanceDeclareTableOperator, **given, version_authority=other)


def test_several_tables_are_declared_by_one_task(run: Run, database: str) -> None:
    run(LanceCreateNamespaceOperator, namespace=database)
    run(LanceDeclareTableOperator, table=f"{database}$orders")
    names = [f"{database}$orders", f"{database}$items"]

    declared = run(LanceDeclareTableOperator, table=names)

    assert {name: result["outcome"] == "done" for name, result in declared.items()} == dict(
        zip(names, (False, True), strict=True)
    )
    assert run(LanceDeclareTableOperator, table=names[1])["location"] == declared[names[1]]["location"]


def test_an_existing_table_fails_without_retry_if_configured(run: Run, table: Table) -> None:
    table.declare()
    with pytest.raises(AirflowFailException, match="TABLE_ALREADY_EXISTS"):
        run(LanceDeclareTableOperator, table=str(table), if_exists="fail")


def test_a_table_in_a_missing_namespace_fails_without_retry(run: Run, database: str) -> None:
    with pytest.raises(AirflowFailException, match="NAMESPACE_NOT_FOUND"):
        run(LanceDeclareTableOperator, table=f"{database}$orders")


def test_a_table_is_deregistered_once_and_keeps_its_data(run: Run, table: Table) -> None:
    location = table.declare()
    table.advance()
    gone = {"table": str(table), "operation": "deregister_table", "outcome": "done", "location": location}
    assert run(LanceDeregisterTableOperator, table=str(table)) == gone
    again = run(LanceDeregisterTableOperator, table=str(table), if_missing="skip")
    assert again["outcome"] == "unchanged"
    assert lance.dataset(location).count_rows() == 1


def test_a_data_set_is_registered_once(run: Run, table: Table) -> None:
    location = table.declare()
    table.advance()
    run(LanceDeregisterTableOperator, table=str(table))
    arguments = {"table": str(table), "location": location}
    assert run(LanceRegisterTableOperator, **arguments) == {**arguments, **REGISTERED, "outcome": "done"}
    assert run(LanceRegisterTableOperator, **arguments) == {**arguments, **REGISTERED, "outcome": "unchanged"}


def test_a_table_registered_elsewhere_fails_without_retry_or_is_replaced_if_configured(
    run: Run, table: Table, tmp_path: Path
) -> None:
    old = table.declare()
    table.advance()
    new = {"table": str(table), "location": str(tmp_path / "new.lance")}
    with pytest.raises(AirflowFailException, match=rf"exists at '{old}', not at .*if_exists='replace'"):
        run(LanceRegisterTableOperator, **new)
    assert run(LanceRegisterTableOperator, **new, if_exists="replace") == {
        **new,
        **REGISTERED,
        "outcome": "done",
    }
    assert lance.dataset(old).count_rows() == 1


def test_a_table_is_dropped_once_with_its_data(run: Run, table: Table) -> None:
    location = table.declare()
    table.advance()
    files = [file for file in Path(location).rglob("*") if file.is_file()]
    of_drop = {"table": str(table), "operation": "drop_table", "location": location}
    size = sum(file.stat().st_size for file in files)
    plan = {"files": len(files), "bytes": size, "tags": [], "other_files": 0}
    planned = {**of_drop, "outcome": "planned", "plan": plan}
    assert run(LanceDropTableOperator, table=str(table), dry_run=True) == planned
    assert run(LanceDropTableOperator, table=str(table)) == {**of_drop, "outcome": "done"}
    for dry_run in (False, True):
        again = run(LanceDropTableOperator, table=str(table), if_missing="skip", dry_run=dry_run)
        assert again["outcome"] == "unchanged"
    assert not Path(location).exists()


@pytest.mark.parametrize(
    ("operator", "arguments"),
    [
        (LanceCreateNamespaceOperator, {"namespace": "sales"}),
        (LanceDropNamespaceOperator, {"namespace": "sales"}),
        (LanceDeclareTableOperator, {"table": "sales$orders"}),
        (LanceRegisterTableOperator, {"table": "sales$orders", "location": "/lake/orders"}),
        (LanceDeregisterTableOperator, {"table": "sales$orders"}),
        (LanceDropTableOperator, {"table": "sales$orders"}),
        (
            LanceAdvanceVersionOperator,
            {"table": "sales$orders", "expected_version": "1", "version": "2"},
        ),
        (LanceConvertTableOperator, {"table": "sales$orders", "version_authority": "catalog"}),
        (LanceCheckTableOperator, {"table": "sales$orders"}),
        (LanceTagOperator, {"table": "sales$orders", "version": "1", "tag": "run"}),
        (LanceDeleteTagOperator, {"table": "sales$orders", "tag": "run"}),
    ],
)
def test_an_unreachable_metastore_lets_airflow_retry(
    operator: type[Any],
    arguments: dict[str, str],
    connect: Callable[..., str],
    free_ports: list[int],
) -> None:
    silent = connect(host=f"127.0.0.1:{free_ports[0]}", extra={"root": "/lake"})
    with pytest.raises(LanceRetryableError) as raised:
        operator(task_id="task", lance_conn_id=silent, **arguments).execute({})
    assert isinstance(raised.value, AirflowException)
    assert raised.value.__cause__ is not None
