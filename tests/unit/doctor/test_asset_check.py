"""What the doctor says about the authority of a connection's assets."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from airflow.models.asset import (
    AssetModel,
    DagScheduleAssetReference,
    TaskInletAssetReference,
    TaskOutletAssetReference,
)
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from sqlalchemy import insert
from sqlalchemy.orm import Session

from airflow_provider_lancens.doctor.asset_check import check_assets, check_names
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.identifiers import TableId
from tests.support.airflow_database import airflow_database

Connect = Callable[..., str]
REFERENCED = (DagModel, DagRun)
"""Models that have to be loaded, since others refer to their tables."""
ORDERS = TableId.parse("sales$orders")


def found(connect: Connect, **named: Any) -> list[tuple[str, str]]:
    """Return the findings for a connection whose assets have the authority ``lake``."""
    if named:
        connect("lake", **named)
    writer = connect("lake_rw", host="m1,m2", extra={"asset_authority": "lake"})
    return [(finding.level, finding.text) for finding in check_assets(LanceHook(writer))]


def test_a_connection_with_its_own_assets_is_not_mentioned(connect: Connect) -> None:
    assert list(check_assets(LanceHook(connect(host="m1")))) == []


def test_an_authority_may_name_no_connection(connect: Connect) -> None:
    assert found(connect) == [("ok", "they have the authority 'lake', the id of no Lance connection")]


def test_a_connection_to_the_same_metastore_is_fine_by_whichever_server(connect: Connect) -> None:
    assert found(connect, host="m2,m3") == [("ok", "they are the same as through connection 'lake'")]


@pytest.mark.parametrize(
    ("named", "text"),
    [
        ({"host": "m9"}, "is to another metastore"),
        ({"host": "m1", "conn_type": "lance_hive3"}, "is to another metastore"),
        ({"host": "m1", "extra": {"asset_authority": "prod"}}, "has 'prod': a table has one asset through"),
    ],
)
def test_a_connection_with_other_assets_is_a_warning(
    connect: Connect, named: dict[str, Any], text: str
) -> None:
    [(level, said)] = found(connect, **named)
    assert level == "warning"
    assert text in said


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """The tables of Airflow's database that are read, empty."""
    models = (AssetModel, DagScheduleAssetReference, TaskInletAssetReference, TaskOutletAssetReference)
    with airflow_database(monkeypatch, models, used_by=["airflow.utils.session"]) as session:
        yield session


def use(database: Session, number: int, name: str, model: Any, **reference: str) -> None:
    values = {"id": number, "name": name, "uri": "lance://lake/sales/orders", "group": "asset", "extra": {}}
    database.execute(insert(AssetModel).values(**values))
    database.execute(insert(model).values(asset_id=number, **reference))


def test_an_asset_with_one_name_in_all_dags_is_not_mentioned(connect: Connect, database: Session) -> None:
    use(database, 1, "orders", DagScheduleAssetReference, dag_id="report")
    database.execute(insert(TaskOutletAssetReference).values(asset_id=1, dag_id="load", task_id="load"))
    assert list(check_names(LanceHook(connect(host="m")), ORDERS)) == []


def test_an_asset_with_several_names_is_a_warning_with_its_dags(connect: Connect, database: Session) -> None:
    use(database, 1, "orders", DagScheduleAssetReference, dag_id="report")
    use(database, 2, "lance://lake/sales/orders", TaskOutletAssetReference, dag_id="load", task_id="load")
    [finding] = check_names(LanceHook(connect(host="m")), ORDERS)
    assert finding.level == "warning"
    assert "'lance://lake/sales/orders' in load, 'orders' in report" in finding.text
    assert "Asset.ref(uri='lance://lake/sales/orders')" in finding.advice
