"""Connections of type ``lance``: a folder and a REST service, with the operators, the sensor and the page."""

import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.namespace import RestAdapter

from airflow_provider_lancens.doctor import diagnose
from airflow_provider_lancens.hooks import LanceCatalogHook, LanceHook
from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException, LanceRetryableError
from airflow_provider_lancens.operators import (
    LanceAdvanceVersionOperator,
    LanceCheckTableOperator,
    LanceCleanUpVersionsOperator,
    LanceConvertTableOperator,
    LanceCreateNamespaceOperator,
    LanceDeclareTableOperator,
    LanceDeregisterTableOperator,
    LanceDropNamespaceOperator,
    LanceDropTableOperator,
    LanceRegisterTableOperator,
    LanceTagOperator,
)
from airflow_provider_lancens.sensors.table_version_sensor import LanceTableVersionSensor
from airflow_provider_lancens.ui import catalog, table_details, version_history
from tests.integration.airflow.lifecycle import MODES, PATIENCE, run_to_its_end
from tests.support.catalogs import KINDS, catalog_connection

Connect = Callable[..., str]
Run = Callable[..., Any]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.fixture
def service(root: Path) -> Iterator[RestAdapter]:
    """A REST service over the folder."""
    with RestAdapter("dir", {"root": str(root)}, port=0) as adapter:
        yield adapter


@pytest.fixture(params=KINDS)
def lake(request: pytest.FixtureRequest, connect: Connect, root: Path) -> Iterator[str]:
    """The id of a connection of type ``lance``."""
    with catalog_connection(request.param, connect, root) as conn_id:
        yield conn_id


@pytest.fixture
def table(lake: str, run: Run) -> str:
    """A declared table in a database."""
    run(LanceCreateNamespaceOperator, namespace="sales")
    run(LanceDeclareTableOperator, table="sales.orders", schema={"n": "bigint"})
    return "sales$orders"


def add_row(lake: str, table: str) -> int:
    namespace = LanceHook(lake).get_conn()
    rows = pa.table({"n": [1]})
    written = lance.write_dataset(rows, namespace_client=namespace, table_id=table.split("$"), mode="append")
    return int(written.version)


def test_the_connection_is_tested(lake: str, table: str) -> None:
    hook = LanceHook(lake)

    worked, said = hook.test_connection()

    assert type(hook) is LanceCatalogHook
    assert worked, said
    assert said.endswith("Namespaces: sales.")
    assert "hush" not in said


def test_namespaces_and_tables_are_made_and_removed_once(lake: str, run: Run, root: Path) -> None:
    created = [run(LanceCreateNamespaceOperator, namespace="sales") for _ in range(2)]
    declared = [run(LanceDeclareTableOperator, table="sales.orders") for _ in range(2)]
    planned = run(LanceDropTableOperator, table="sales$orders", dry_run=True)
    dropped = run(LanceDropTableOperator, table="sales$orders")
    again = run(LanceDropTableOperator, table="sales$orders", if_missing="skip")
    gone = run(LanceDropNamespaceOperator, namespace="sales")

    assert [one["outcome"] for one in (*created, *declared)] == ["done", "unchanged"] * 2
    assert Path(declared[0]["location"]).is_relative_to(root)
    assert declared[1]["location"] == dropped["location"] == declared[0]["location"] == planned["location"]
    assert {**planned["plan"], "bytes": 0} == {"files": 1, "bytes": 0, "tags": [], "other_files": 0}
    assert not Path(dropped["location"]).exists()
    outcomes = [one["outcome"] for one in (dropped, again, gone)]
    assert outcomes == ["done", "unchanged", "done"]


@pytest.mark.parametrize("mode", MODES)
def test_the_sensor_waits_for_a_version(lake: str, table: str, mode: str) -> None:
    add_row(lake, table)
    sensor = LanceTableVersionSensor(
        task_id="wait",
        table="sales.orders",
        lance_conn_id=lake,
        min_version=2,
        poke_interval=0.05,
        timeout=PATIENCE,
        **MODES[mode],
    )

    found = run_to_its_end(sensor)

    assert (found["table"], found["version"]) == (table, 2)


def test_a_table_that_does_not_exist_has_no_version(lake: str) -> None:
    status = LanceHook(lake).table_status("sales.nothing")

    assert (status.version, status.location) == (0, None)


def test_a_version_is_tagged_checked_and_cleaned_up(lake: str, table: str, run: Run) -> None:
    for _ in range(3):
        add_row(lake, table)

    run(LanceTagOperator, table=table, version=2, tag="train")
    checked = run(LanceCheckTableOperator, table=table)

    assert (checked["verdict"], checked["storage_version"]) == ("consistent", 4)
    assert LanceHook(lake).table(table).at("train").version == 2


def test_the_page_shows_databases_tables_and_versions(lake: str, table: str, run: Run) -> None:
    add_row(lake, table)
    run(LanceDeclareTableOperator, table="loose")
    hook = LanceHook(lake)

    assert catalog.list_namespaces(hook, "", None, 100)["namespaces"] == ["sales"]
    shown = catalog.list_tables(hook, "sales", None, 100)["tables"]
    assert [(one["table"], one["version"]) for one in shown] == [(table, 2)]
    assert [one["table"] for one in catalog.list_tables(hook, "", None, 100)["tables"]] == ["loose"]
    described = table_details.describe(hook, table)
    assert (described["version"], described["managed"]) == (2, False)
    assert [one["version"] for one in version_history.list_versions(hook, table, None, 10)["versions"]] == [
        2,
        1,
    ]


def test_the_doctor_tries_the_permissions_and_leaves_nothing(lake: str, table: str) -> None:
    found = list(diagnose(lake, [table]))

    worst = {finding.subject: finding.level for finding in found if finding.level == "problem"}
    assert worst.keys() <= {"triggerer"}
    assert [finding.level for finding in found if finding.subject == "permissions"] == ["ok", "ok"]
    assert next(f.text for f in found if f.subject == f"table {table}").endswith("consistent")
    assert LanceHook(lake).catalog().list_databases() == ["sales"]


REFUSED: list[tuple[type[Any], dict[str, Any], str]] = [
    (
        LanceConvertTableOperator,
        {"table": "sales$orders", "version_authority": "catalog"},
        "Hive Metastore or",
    ),
    (
        LanceDeclareTableOperator,
        {"table": "sales$more", "version_authority": "catalog"},
        "version_authority='catalog' is not supported by this catalog",
    ),
    (
        LanceAdvanceVersionOperator,
        {"table": "sales$orders", "expected_version": 1, "version": 2},
        "a commit to the storage is the new version",
    ),
    (
        LanceDropNamespaceOperator,
        {"namespace": "sales", "cascade": True},
        "drop or deregister its tables, then the namespace",
    ),
    (LanceDropNamespaceOperator, {"namespace": "sales", "dry_run": True}, "the plan of a cascade"),
    (
        LanceCheckTableOperator,
        {"table": "sales$orders", "if_inconsistent": "adopt"},
        "nothing, since the storage decides its versions",
    ),
]


@pytest.mark.parametrize(("operator", "arguments", "said"), REFUSED)
def test_what_a_catalog_cannot_do_fails_without_retries_and_says_what_to_do(
    lake: str, table: str, run: Run, operator: type[Any], arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(AirflowFailException, match=r"\(code 0, UNSUPPORTED\)") as refused:
        run(operator, **arguments)

    assert said in str(refused.value)
    assert "through connection 'lake'" in str(refused.value)


def test_data_below_a_folder_is_registered(connect: Connect, run: Run, root: Path, tmp_path: Path) -> None:
    connect(conn_type="lance", extra={"root": f"file://{root}/"})
    run(LanceCreateNamespaceOperator, namespace="sales")
    lance.write_dataset(pa.table({"n": [1]}), root / "made.lance")
    location = str(root / "made.lance")

    made = [run(LanceRegisterTableOperator, table="sales.made", location=location) for _ in range(2)]
    with pytest.raises(AirflowFailException, match=r"deregister it first.*\(code 0"):
        run(LanceRegisterTableOperator, table="sales.made", location=location, if_exists="replace")
    with pytest.raises(AirflowFailException, match="registers data below its root alone"):
        run(LanceRegisterTableOperator, table="sales.other", location=str(tmp_path / "other.lance"))
    removed = run(LanceDeregisterTableOperator, table="sales.made")

    assert [one["outcome"] for one in made] == ["done", "unchanged"]
    assert made[0]["location"] == removed["location"] == location
    assert Path(location).exists()


def test_two_connections_to_one_folder_see_the_same_tables(connect: Connect, run: Run, root: Path) -> None:
    connect(conn_type="lance", extra={"root": str(root)})
    other = connect("other", "lance", extra={"root": f"{root}/"})
    run(LanceDeclareTableOperator, table="orders", schema={"n": "bigint"})
    add_row("lake", "orders")

    assert add_row(other, "orders") == 3
    assert LanceHook("lake").table_status("orders") == LanceHook(other).table_status("orders")


def test_what_a_shallow_clone_refers_to_is_kept(lake: str, table: str, run: Run) -> None:
    add_row(lake, table)
    orders, catalog = LanceHook(lake).table(table), LanceHook(lake).catalog()
    run(LanceCreateNamespaceOperator, namespace="other")
    clone = catalog.declare_table("other.clone")
    orders.dataset().shallow_clone(clone.location, 2)
    orders.overwrite(pa.table({"n": [7]}))

    with pytest.raises(AirflowFailException, match=r"other\$clone is a clone that refers to its data"):
        run(LanceDropTableOperator, table=table)
    run(LanceCleanUpVersionsOperator, table=table, older_than=timedelta(0))

    assert len(orders.history()) == 1
    assert LanceHook(lake).table("other.clone").to_arrow()["n"].to_pylist() == [1]
    assert catalog.drop_table("other.clone").is_done
    assert run(LanceDropTableOperator, table=table)["outcome"] == "done"


def test_a_service_that_has_ended_is_retried_and_shows_no_secret(
    connect: Connect, run: Run, service: RestAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    connect(
        conn_type="lance",
        host=f"http://127.0.0.1:{service.port}",
        password="hush-hush",
        extra={"impl": "rest"},
    )
    service.stop()

    with caplog.at_level(logging.DEBUG), pytest.raises(LanceRetryableError, match="refused") as failed:
        run(LanceDeclareTableOperator, table="orders")

    assert "SERVICE_UNAVAILABLE" in str(failed.value)
    assert "hush" not in f"{failed.value} {failed.value.__cause__} {caplog.text}"
