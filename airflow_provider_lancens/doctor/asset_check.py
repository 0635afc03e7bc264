"""Checks of assets: the authority of a connection's assets, and the names of a table's asset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from airflow_provider_lancens.assets.table import LanceTable
from airflow_provider_lancens.doctor.findings import Finding
from airflow_provider_lancens.hooks.airflow_errors import AirflowException

if TYPE_CHECKING:
    from airflow_provider_lancens.hooks.lance_hook import LanceHook
    from airflow_provider_lancens.identifiers import TableId

_SUBJECT = "assets"


def check_assets(hook: LanceHook) -> Iterator[Finding]:
    """Check that the connection whose id is the asset authority, if there is one, has the same assets.

    Args:
        hook: the connection's hook.
    """
    from airflow_provider_lancens.hooks.lance_hook import LanceHook

    authority = hook.asset_authority
    if authority == hook.lance_conn_id:
        return
    try:
        named = LanceHook.for_connection(authority)
    except AirflowException:
        yield Finding("ok", _SUBJECT, f"they have the authority {authority!r}, the id of no Lance connection")
        return
    if (theirs := named.asset_authority) != authority:
        yield Finding(
            "warning",
            _SUBJECT,
            f"they have the authority {authority!r}, but connection {authority!r} has {theirs!r}: a table "
            "has one asset through this connection and another one through that one",
            "Give both connections the same Asset authority.",
        )
    elif named.conn_type != hook.conn_type or _are_apart(
        named.endpoint_properties(), hook.endpoint_properties()
    ):
        yield Finding(
            "warning",
            _SUBJECT,
            f"they have the authority {authority!r}, but connection {authority!r} is to another metastore "
            f"({named.description}): two tables of one name are the same asset",
            "Give each metastore an Asset authority of its own.",
        )
    else:
        yield Finding("ok", _SUBJECT, f"they are the same as through connection {authority!r}")


def check_names(hook: LanceHook, table: TableId) -> Iterator[Finding]:
    """Check that the table's asset has one name in all DAGs, if Airflow's database can be read from here.

    Args:
        hook: the connection's hook.
        table: the table.
    """
    from sqlalchemy.exc import SQLAlchemyError

    uri = LanceTable.of(hook.asset_authority, table).uri
    try:
        named = _dags_by_name(uri)
    except SQLAlchemyError:
        return  # already reported by the check of the triggerer
    if len(named) > 1:
        names = ", ".join(f"{name!r} in {', '.join(dags)}" for name, dags in sorted(named.items()))
        yield Finding(
            "warning",
            f"table {table}",
            f"its asset {uri} has several names: {names}. Airflow knows it by one of them: tasks with "
            "another one as outlet or inlet fail, and DAGs that are scheduled on another one don't start",
            f"Give it one name in one DAG, and refer to it in the others by Asset.ref(uri={uri!r}).",
        )


def _dags_by_name(uri: str) -> dict[str, list[str]]:
    """Return the ids of the DAGs that use an asset, by the names that they give it."""
    from airflow.models.asset import (
        AssetModel,
        DagScheduleAssetReference,
        TaskInletAssetReference,
        TaskOutletAssetReference,
    )
    from airflow.utils.session import create_session
    from sqlalchemy import select

    named: dict[str, set[str]] = {}
    with create_session() as session:
        for model in (DagScheduleAssetReference, TaskInletAssetReference, TaskOutletAssetReference):
            used = select(AssetModel.name, model.dag_id).join(model, model.asset_id == AssetModel.id)
            for name, dag_id in session.execute(used.where(AssetModel.uri == uri)):
                named.setdefault(name, set()).add(dag_id)
    return {name: sorted(dags) for name, dags in named.items()}


def _are_apart(left: Mapping[str, str], right: Mapping[str, str]) -> bool:
    """Return whether two addresses can't belong to one metastore; each may name only some of its servers."""
    both = left.keys() & right.keys()
    return any(set(left[key].split(",")).isdisjoint(right[key].split(",")) for key in both)
