"""Lists of the connections, namespaces and tables that the page shows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lance_namespace import ListNamespacesRequest, ListTablesRequest

from airflow_provider_lancens.assets.table import LanceTable
from airflow_provider_lancens.hooks.airflow_errors import AirflowException
from airflow_provider_lancens.hooks.connection_fields import connection_types
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.table_status import TableStatus
from airflow_provider_lancens.ui.known_connections import KnownConnections

_THREADS = 8


def list_connections() -> list[dict[str, str]]:
    """Return the Lance connections that are known here: their ids and types, nothing else.

    These are the connections in Airflow's database and in the environment, and those named by assets:
    other secrets backends can't be listed.
    """
    known, types = KnownConnections.read(), connection_types()
    return [{"id": key, "type": types[known.types[key]]["hook-name"]} for key in sorted(known.types)]


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
    return LanceTable.of(hook.asset_authority, TableId.parse(table)).uri


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
