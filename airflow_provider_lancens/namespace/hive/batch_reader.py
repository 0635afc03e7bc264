"""Reads of many catalog tables of a database, in batches whose size follows the server's speed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from lance_namespace.errors import InternalError

from airflow_provider_lancens.identifiers import DELIMITER, NamespaceId
from airflow_provider_lancens.namespace.batch_reads import BatchRead, read_each
from airflow_provider_lancens.namespace.hive import converters
from airflow_provider_lancens.namespace.hive.api import HiveApi
from airflow_provider_lancens.namespace.hive.connection import Connection
from airflow_provider_lancens.namespace.hive.errors import TABLE_ERRORS
from airflow_provider_lancens.namespace.hive.pool import LostReplyError
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable

_FIRST, _LARGEST = 100, 500
"""Tables of a batch: HMS builds the whole reply in memory, for which it reads table by table."""
_FAST, _SLOW = 1 / 20, 1 / 4
"""Parts of the read timeout: the batch size is doubled after a faster reply, halved after a slower one."""
_DIVISOR = 10
"""A batch that timed out is read again in this many parts: tables may have thousands of columns."""


class HiveBatchReader:
    """Reader of many tables. It holds one batch at a time, and no failed batch repeats another one."""

    def __init__(self, api: HiveApi, read_timeout: float) -> None:
        """Take the calls to a metastore, and the seconds that one of them may take."""
        self._api = api
        self._read_timeout = read_timeout
        self._size = _FIRST

    def read(
        self, namespace: NamespaceId, names: Sequence[str], *, columns: bool = True
    ) -> Iterator[BatchRead]:
        """Read tables of a database lazily, batch by batch; missing tables are omitted.

        Args:
            namespace: the database.
            names: names of the tables.
            columns: whether the columns are needed; if not, they aren't decoded.
        """
        has_read = False
        start = 0
        while start < len(names):
            batch = names[start : start + self._size]
            start += len(batch)
            result = read_each(
                batch, partial(self._tables, namespace, columns=columns), server_answers=has_read
            )
            has_read = has_read or bool(result.tables)
            yield result

    def read_raw(self, namespace: NamespaceId, names: Sequence[str]) -> Iterator[Any]:
        """Read tables of a database as Thrift objects, lazily; a table that can't be read is an error."""
        start = 0
        while start < len(names):
            batch = names[start : start + self._size]
            start += len(batch)
            yield from self._batch(namespace, batch)

    def _tables(self, namespace: NamespaceId, names: Sequence[str], *, columns: bool) -> list[CatalogTable]:
        requested = frozenset(names)
        tables = []
        for raw in self._batch(namespace, names, columns=columns):
            if raw.tableName not in requested:
                raise InternalError(
                    f"cannot read tables of {namespace}: the metastore returned {raw.tableName!r}, "
                    "which was not requested"
                )
            tables.append(converters.to_table(namespace.table(raw.tableName), raw))
        return tables

    def _batch(self, namespace: NamespaceId, names: Sequence[str], *, columns: bool = True) -> Sequence[Any]:
        try:
            return self._call(namespace, names, columns=columns)
        except LostReplyError as error:
            if not error.timed_out or len(names) <= _DIVISOR:
                raise
            part = self._size = max(1, len(names) // _DIVISOR)
            parts = (names[start : start + part] for start in range(0, len(names), part))
            return [raw for some in parts for raw in self._call(namespace, some, columns=columns)]

    def _call(self, namespace: NamespaceId, names: Sequence[str], *, columns: bool) -> Sequence[Any]:
        def read(connection: Connection) -> Any:
            request = connection.dialect.tables_request(namespace, names)
            client = connection.client if columns else connection.reduced_client
            return client.get_table_objects_by_name_req(request).tables

        # As text: another client's table may have a name that no identifier can address.
        attempt = f"read tables of {namespace}"
        if len(names) == 1:
            attempt = f"read table {namespace}{DELIMITER}{names[0]}"
        started = time.monotonic()
        raws: Sequence[Any] | None = self._api.read(TABLE_ERRORS, attempt, read)
        self._adapt(len(names), time.monotonic() - started)
        if raws is None:
            raise InternalError(f"cannot {attempt}: the metastore's reply is empty")
        return raws

    def _adapt(self, size: int, seconds: float) -> None:
        if seconds > _SLOW * self._read_timeout:
            self._size = max(1, min(self._size, size // 2))
        elif size == self._size and seconds < _FAST * self._read_timeout:
            self._size = min(_LARGEST, 2 * size)
