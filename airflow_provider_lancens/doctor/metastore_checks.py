"""The metastore of a connection: whether it answers, and what its user may do, by doing it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lance_namespace import (
    CreateNamespaceRequest,
    DeclareTableRequest,
    DeregisterTableRequest,
    DescribeTableRequest,
    DropNamespaceRequest,
    DropTableRequest,
    ListNamespacesRequest,
)
from lance_namespace.errors import LanceNamespaceError, UnsupportedOperationError

from airflow_provider_lancens.doctor.findings import Finding
from airflow_provider_lancens.doctor.storage_checks import check_storage

if TYPE_CHECKING:
    from airflow_provider_lancens.hooks.lance_hook import LanceHook
    from airflow_provider_lancens.namespace.base import MetastoreNamespace

_SLOW_SECONDS = 1.0
_CATALOGS = "lance_hive3"
"""The connection type whose topmost namespaces are catalogs."""


def check_server(hook: LanceHook) -> Iterator[Finding]:
    """Check that the server answers, and how fast."""
    namespace = hook.get_conn()
    namespace.server_info()  # connects
    started = time.monotonic()
    server = namespace.server_info()
    seconds = time.monotonic() - started
    level, advice = ("ok", "") if seconds < _SLOW_SECONDS else ("warning", "Polls of sensors are as slow.")
    text = f"{hook.description}: {server.summary}; answers in {seconds * 1000:.0f} ms"
    yield Finding(level, "metastore", text, advice)  # type: ignore[arg-type]


def check_rights(hook: LanceHook) -> Iterator[Finding]:
    """Create a namespace and a table, write beside the table, and remove all of it again."""
    namespace = hook.get_conn()
    with _scratch_namespace(hook, namespace) as scratch:
        yield Finding("ok", "rights", f"may create and drop namespaces (tried with {'$'.join(scratch)})")
        yield from _check_table(namespace, [*scratch, "orders"])


def _check_table(namespace: MetastoreNamespace, table: list[str]) -> Iterator[Finding]:
    namespace.declare_table(DeclareTableRequest(id=table))
    try:
        yield Finding("ok", "rights", "may declare, change and drop tables")
        yield _compare_and_set(namespace, table)
        described = namespace.describe_table(DescribeTableRequest(id=table))
        yield from check_storage(str(described.location), dict(described.storage_options or {}))
    finally:
        try:
            namespace.drop_table(DropTableRequest(id=table))
        except LanceNamespaceError:
            # Such as a storage that denies listings: the catalog, at least, is left as it was.
            namespace.deregister_table(DeregisterTableRequest(id=table))
            raise


def _compare_and_set(namespace: MetastoreNamespace, table: list[str]) -> Finding:
    try:
        namespace.convert_table(table, managed_by="impl")
    except UnsupportedOperationError as error:
        return Finding(
            "ok", "compare-and-set", f"not supported, so the storage decides versions of tables ({error})"
        )
    return Finding("ok", "compare-and-set", "supported: tables can have managed_by=impl")


@contextmanager
def _scratch_namespace(hook: LanceHook, namespace: MetastoreNamespace) -> Iterator[list[str]]:
    parents: list[str] = []
    if hook.conn_type == _CATALOGS:
        catalogs = namespace.list_namespaces(ListNamespacesRequest(id=[])).namespaces
        parents = ["hive" if "hive" in catalogs else min(catalogs)]
    scratch = [*parents, f"lancens_doctor_{uuid.uuid4().hex[:8]}"]
    namespace.create_namespace(CreateNamespaceRequest(id=scratch))
    try:
        yield scratch
    finally:
        try:
            namespace.drop_namespace(DropNamespaceRequest(id=scratch))
        except LanceNamespaceError as error:
            raise type(error)(f"{'$'.join(scratch)} is left over, drop it: {error}") from error
