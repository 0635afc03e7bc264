"""Routes of the Lance page: each reads in a thread, with a deadline, what the user may see."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query

from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.ui import (
    asset_events,
    catalog,
    table_details,
    task_tables,
    version_history,
    waits,
)
from airflow_provider_lancens.ui.access import Access, AccessDep, require_access
from airflow_provider_lancens.ui.http_errors import http_errors
from airflow_provider_lancens.ui.known_connections import KnownConnections
from airflow_provider_lancens.ui.open_hooks import OpenHooks
from airflow_provider_lancens.ui.reader_threads import ReaderThreads

ENTRIES_OF_A_PAGE = 50
Limit = Annotated[int, Query(ge=1, le=100)]
Text = Annotated[str, Query(max_length=1000)]
Content = dict[str, Any]


def create_router(hooks: OpenHooks, threads: ReaderThreads) -> APIRouter:
    """Return the routes.

    Args:
        hooks: where connections are opened.
        threads: where they are read.
    """
    router = APIRouter(dependencies=[Depends(require_access)])
    _add_catalog(router, hooks, threads)
    _add_table(router, hooks, threads)
    _add_tasks(router, threads)
    return router


def _add_catalog(router: APIRouter, hooks: OpenHooks, threads: ReaderThreads) -> None:
    @router.get("/connections")
    async def connections() -> Content:
        return await _read(threads, lambda: {"connections": catalog.list_connections()})

    @router.get("/namespaces")
    async def namespaces(
        conn: Text,
        namespace: Text = "",
        token: Text = "",
        limit: Limit = ENTRIES_OF_A_PAGE,
    ) -> Content:
        read = _of(hooks, conn, catalog.list_namespaces, namespace, token or None, limit)
        return await _read(threads, read, conn)

    @router.get("/tables")
    async def tables(
        access: AccessDep, conn: Text, namespace: Text, token: Text = "", limit: Limit = ENTRIES_OF_A_PAGE
    ) -> Content:
        read = _of(hooks, conn, _list_tables, namespace, token or None, limit, access)
        return await _read(threads, read, conn)


def _add_table(router: APIRouter, hooks: OpenHooks, threads: ReaderThreads) -> None:
    @router.get("/table")
    async def table(conn: Text, table: Text) -> Content:
        return await _read(threads, _of(hooks, conn, table_details.describe, table), conn, table)

    @router.get("/versions")
    async def versions(
        access: AccessDep,
        conn: Text,
        table: Text,
        before: int | None = None,
        limit: Limit = ENTRIES_OF_A_PAGE,
    ) -> Content:
        return await _read(
            threads, _of(hooks, conn, _list_versions, table, before, limit, access), conn, table
        )

    @router.get("/waits")
    async def waiting(access: AccessDep, conn: Text, table: Text) -> Content:
        return await _read(threads, _of(hooks, conn, _list_waits, table, access), conn, table)

    @router.get("/missing")
    async def missing(access: AccessDep, conn: Text) -> Content:
        return await _read(threads, _of(hooks, conn, waits.list_missing, access), conn)

    @router.get("/check")
    async def check(conn: Text, table: Text) -> Content:
        return await _read(threads, _of(hooks, conn, table_details.check, table), conn, table)

    @router.get("/sample")
    async def sample(conn: Text, table: Text) -> Content:
        return await _read(threads, _of(hooks, conn, table_details.sample, table), conn, table)


def _add_tasks(router: APIRouter, threads: ReaderThreads) -> None:
    @router.get("/run")
    async def run(access: AccessDep, dag_id: Text, run_id: Text, task_id: Text = "") -> Content:
        def tables() -> Content:
            if dag_id not in access.dag_ids:
                raise HTTPException(403, "You may not read this DAG, or it does not exist.")
            return {"tables": task_tables.tables_of(dag_id, run_id, task_id or None)}

        return await _read(threads, tables)


def _of(hooks: OpenHooks, conn: str, call: Callable[..., Content], *arguments: Any) -> Callable[[], Content]:
    return lambda: call(hooks.get(conn), *arguments)


async def _read(
    threads: ReaderThreads, call: Callable[[], Content], conn: str = "", table: str = ""
) -> Content:
    with http_errors():
        return await threads.run(call, conn, table)


def _list_tables(hook: LanceHook, namespace: str, token: str | None, limit: int, access: Access) -> Content:
    page = catalog.list_tables(hook, namespace, token, limit)
    uris = {entry["table"]: catalog.uri_of(hook, entry["table"]) for entry in page["tables"]}
    events = asset_events.newest_events(uris.values(), access)
    for entry in page["tables"]:
        entry["event"] = events.get(uris[entry["table"]])
    return page


def _list_versions(hook: LanceHook, table: str, before: int | None, limit: int, access: Access) -> Content:
    page = version_history.list_versions(hook, table, before, limit)
    entries = page["versions"]
    page["expired"] = [bookmark for bookmark in page["expired"] if access.may_see_name(bookmark["name"])]
    if not entries:
        return page
    first, last = (datetime.fromisoformat(entry["created"]) for entry in (entries[-1], entries[0]))
    tasks = asset_events.producing_tasks(catalog.uri_of(hook, table), first, last, access)
    for entry in entries:
        entry["task"] = tasks.get(entry["version"])
        entry["key"] = entry["key"] if access.may_see_name(entry["key"]) else ""
        entry["tags"] = [tag for tag in entry["tags"] if access.may_see_name(tag)]
        entry["bookmarks"] = {
            tag: entry["bookmarks"][tag] for tag in entry["tags"] if tag in entry["bookmarks"]
        }
    return page


def _list_waits(hook: LanceHook, table: str, access: Access) -> Content:
    sharing = KnownConnections.read().sharing(hook.asset_authority)
    page = waits.list_waits({hook.lance_conn_id, *sharing}, table, access)
    return {**page, "dags": asset_events.consumers(catalog.uri_of(hook, table), access)}
