"""A Lance table as an Airflow asset: ``lance://connection/database/table``.

An asset goes by the connection's id, not by the server's address: a metastore that moves takes its
assets with it, and no secret can stand in a URI.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import SplitResult, quote, unquote, urlsplit

from airflow.providers.common.compat.sdk import Asset

from airflow_provider_lancens.identifiers import InvalidIdentifierError, TableId

if TYPE_CHECKING:
    from airflow.sdk import Asset as SdkAsset

SCHEME = "lance"
_LEVELS = (2, 3)
_FORM = "write it as lance://<connection id>/<database>/<table>, on Hive 3 as lance://<id>/<catalog>/…"


@dataclass(frozen=True, slots=True)
class LanceTable:
    """Which table an asset is; the same table through the same connection is always the same asset."""

    lance_conn_id: str
    table: TableId

    @classmethod
    def of(cls, lance_conn_id: str, table: str) -> Self:
        """Name a table as operators do.

        Args:
            lance_conn_id: the Airflow connection.
            table: the table's identifier, ``database$table``.

        Raises:
            ValueError: either can't be what it is. A template can't: an asset is the same in every run.
        """
        for argument, value in (("lance_conn_id", lance_conn_id), ("table", table)):
            if "{{" in value or "{%" in value:
                raise ValueError(f"{argument}={value!r}: an asset is the same in every run: no template")
        try:
            return cls(_checked_connection(lance_conn_id), _checked_table(TableId.parse(table)))
        except InvalidIdentifierError as error:
            raise ValueError(f"table={table!r}: {error}; write it as database$table") from error

    @classmethod
    def parse(cls, uri: str | SplitResult) -> Self:
        """Read an asset's URI.

        Raises:
            ValueError: it isn't one of a Lance table.
        """
        parts = urlsplit(uri) if isinstance(uri, str) else uri
        if parts.scheme != SCHEME or parts.query or parts.fragment:
            raise ValueError(f"{parts.geturl()!r} isn't a Lance table's URI; {_FORM}")
        levels = [unquote(level) for level in parts.path.strip("/").split("/")]
        try:
            return cls.of(unquote(parts.netloc), "$".join(levels))
        except ValueError as error:
            raise ValueError(f"{parts.geturl()!r} isn't a Lance table's URI: {error}; {_FORM}") from error

    @property
    def uri(self) -> str:
        """The asset's URI in its one spelling."""
        path = "/".join(quote(part, safe="") for part in self.table.parts)
        return f"{SCHEME}://{quote(self.lance_conn_id, safe='')}/{path}"


def lance_table(table: str, lance_conn_id: str, *, extra: Mapping[str, Any] | None = None) -> SdkAsset:
    """The asset that a Lance table is, for ``outlets`` and ``schedule``.

    Args:
        table: the table's identifier, ``database$table``.
        lance_conn_id: the Airflow connection.
        extra: what is kept with the asset; no secret.

    Raises:
        ValueError: no table can be called so, or an argument is a template.
    """
    return create_asset(lance_conn_id=lance_conn_id, table=table, extra=extra)


def create_asset(*, lance_conn_id: str, table: str, extra: Mapping[str, Any] | None = None) -> SdkAsset:
    """The same under the name and the keywords by which Airflow's provider manager finds factories."""
    return Asset(uri=LanceTable.of(lance_conn_id, table).uri, extra=dict(extra or {}))


def sanitize_uri(uri: SplitResult) -> SplitResult:
    """Bring an asset's URI into its one spelling: metastores lower-case what they hold.

    Raises:
        ValueError: it isn't one of a Lance table.
    """
    return urlsplit(LanceTable.parse(uri).uri)


def _checked_connection(lance_conn_id: str) -> str:
    if not lance_conn_id or not lance_conn_id.isprintable() or set(lance_conn_id) & set("/@ "):
        raise ValueError(f"lance_conn_id={lance_conn_id!r}: needed is the id of an Airflow connection")
    return lance_conn_id


def _checked_table(table: TableId) -> TableId:
    if len(table) not in _LEVELS:
        raise ValueError(f"table={str(table)!r} has {len(table)} levels; write it as database$table")
    return table
