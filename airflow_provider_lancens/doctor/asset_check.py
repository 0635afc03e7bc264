"""The check of what a connection's assets are called, if it isn't by the connection's id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from airflow_provider_lancens.doctor.findings import Finding
from airflow_provider_lancens.hooks.airflow_errors import AirflowException

if TYPE_CHECKING:
    from airflow_provider_lancens.hooks.lance_hook import LanceHook

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
        yield Finding("ok", _SUBJECT, f"they are those of connection {authority!r}")


def _are_apart(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Return whether two addresses can't be those of one metastore; each may name other servers of it."""
    both = one.keys() & other.keys()
    return any(set(one[key].split(",")).isdisjoint(other[key].split(",")) for key in both)
