"""What there is: connections, namespaces and tables."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from airflow.models import Connection
from airflow.models.asset import AssetModel
from airflow.utils.session import create_session
from lance_namespace import ListNamespacesRequest, ListTablesRequest
from sqlalchemy import select

from airflow_provider_lancens.assets.table import SCHEME, LanceTable
from airflow_provider_lancens.hooks.airflow_errors import AirflowException
from airflow_provider_lancens.hooks.connection_form import connection_types
from airflow_provider_lancens.hooks.lance_hook import LanceHook, read_connection
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.table_status import TableStatus

_VARIABLE = "AIRFLOW_CONN_"
_THREADS = 8


def list_connections() -> list[dict[str, str]]:
    """Return the Lance connections that are known here: their ids and types, nothing else.

    These are the connections in Airflow's database and in the environment, and those named by assets:
    other secrets backends can't be listed.
    """
    types = connection_types()
    with create_session() as session:
        rows = session.execute(
            select(Connection.conn_id, Connection.conn_type).where(Connection.conn_type.in_(types))
        )
        connections = {str(conn_id): str(conn_type) for conn_id, conn_type in rows}
        uris = list(session.scalars(select(AssetModel.uri).where(AssetModel.uri.startswith(f"{SCHEME}://"))))
    for conn_id in {*_in_environment(), *(urlsplit(uri).netloc for uri in uris)} - connections.keys():
        conn_type = _type_of(conn_id)
        if conn_type in types:
            connections[conn_id] = conn_type
    return [{"id": key, "type": types[connections[key]]["hook-name"]} for key in sorted(connections)]


def list_namespaces(hook: LanceHook, namespace: str, token: str | None, limit: int) -> dict[str, Any]:
    """Return a page of the namespaces in a namespace, whose identifier is empty for the root."""
    request = ListNamespacesRequest(id=_parts(namespace), page_token=token, limit=limit)
    response = hook.get_reader().list_namespaces(request)
    return {"namespaces": sorted(response.namespaces), "next": response.page_token}


def list_tables(hook: LanceHook, namespace: str, token: str | None, limit: int) -> dict[str, Any]:
    """Return a page of the tables in a namespace, with their newest versions.

    Returns:
        ``tables``, each with its ``table`` identifier, ``name``, ``version`` (0 if nothing was written yet)
        and ``error``, and the token of the ``next`` page.
    """
    request = ListTablesRequest(id=_parts(namespace), page_token=token, limit=limit, include_declared=True)
    response = hook.get_reader().list_tables(request)
    tables = [TableId((*_parts(namespace), name)) for name in sorted(response.tables)]
    statuses = hook.poll_tables(tables)
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="lance-page-versions") as pool:
        entries = list(pool.map(lambda table: _entry(hook, table, statuses[table]), tables))
    return {"tables": entries, "next": response.page_token}


def uri_of(hook: LanceHook, table: str) -> str:
    """Return the URI of a table's asset."""
    return LanceTable.of(hook.lance_conn_id, TableId.parse(table)).uri


def _entry(hook: LanceHook, table: TableId, status: TableStatus | AirflowException) -> dict[str, Any]:
    entry = {"table": str(table), "name": table.name, "version": 0, "error": ""}
    try:
        if isinstance(status, AirflowException):
            raise status
        read = hook.read_storage_version(status) if status.needs_listing else status
    except AirflowException as error:
        return {**entry, "error": str(error)}
    return {**entry, "version": read.version}


def _parts(namespace: str) -> list[str]:
    return namespace.split("$") if namespace else []


def _in_environment() -> set[str]:
    return {name.removeprefix(_VARIABLE).lower() for name in os.environ if name.startswith(_VARIABLE)}


def _type_of(conn_id: str) -> str:
    try:
        return str(read_connection(conn_id).conn_type)
    except Exception:  # noqa: BLE001 - another's connection may be anything, or nothing that can be read
        return ""
