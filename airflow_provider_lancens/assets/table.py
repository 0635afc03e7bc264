"""A Lance table as an Airflow asset, ``lance://authority/database/table``, and its events.

The authority is the connections' field Asset authority, by default their id, not the server's address: a
metastore that moves keeps its assets, and a URI can't contain a secret.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import SplitResult, quote, unquote, urlsplit

from airflow.sdk import Asset, AssetAlias
from airflow.sdk.definitions.asset import AssetRef

from airflow_provider_lancens.identifiers import (
    ALLOWED_AUTHORITY,
    InvalidIdentifierError,
    TableId,
    is_asset_authority,
)
from airflow_provider_lancens.provider_info import DEFAULT_CONNECTION

if TYPE_CHECKING:
    from airflow.sdk import Asset as SdkAsset
    from airflow.sdk import Context

_log = logging.getLogger(__name__)
SCHEME = "lance"
WRITES_XCOM = "lance_writes"
"""Key of an XCom with the writes of a TaskFlow function, beside its own return value."""
_OTHER_AUTHORITY = (
    "The outlet %s is an asset of the table that was written, but the task's connection has the asset "
    "authority %r, so its event says no version: write lance_table(%r, %r), or change the connection's field "
    "Asset authority"
)
_COUNTS = ("inserted", "updated", "deleted")
"""Values of an extra that count the rows of a write."""
_LEVELS = (2, 3)
_FORM = (
    "write it as lance://<asset authority>/<database>/<table>, on Hive 3 as lance://<authority>/<catalog>/…"
)


@dataclass(frozen=True, slots=True)
class LanceTable:
    """The table of an asset; the same table through connections with one authority is the same asset."""

    authority: str
    """The field Asset authority of the table's connections, by default the connection's id."""
    table: TableId

    @classmethod
    def of(cls, asset_authority: str, table: TableId | str) -> Self:
        """Create it from an asset authority and the table identifier that operators take.

        Args:
            asset_authority: the asset authority of the connection.
            table: the table's identifier, ``database.table`` or ``database$table``. A `TableId` may have any
                number of levels, since some catalogs have tables outside of a database.

        Raises:
            ValueError: either is invalid. Templates are not supported: an asset is the same in every run.
        """
        _refuse_templates(asset_authority=asset_authority, table=table)
        try:
            identifier = table if isinstance(table, TableId) else _checked_table(TableId.written(table))
            return cls(_checked_authority(asset_authority), identifier)
        except InvalidIdentifierError as error:
            raise ValueError(f"table={table!r}: {error}; write it as database$table") from error

    @classmethod
    def parse(cls, uri: str | SplitResult) -> Self:
        """Parse an asset's URI.

        Raises:
            ValueError: it isn't the URI of a Lance table.
        """
        parts = urlsplit(uri) if isinstance(uri, str) else uri
        if parts.scheme != SCHEME or parts.query or parts.fragment:
            raise ValueError(f"{parts.geturl()!r} is not the URI of a Lance table; {_FORM}")
        levels = [unquote(level) for level in parts.path.strip("/").split("/")]
        try:
            return cls.of(unquote(parts.netloc), TableId.of(levels))
        except ValueError as error:
            raise ValueError(
                f"{parts.geturl()!r} is not the URI of a Lance table: {error}; {_FORM}"
            ) from error

    @property
    def uri(self) -> str:
        """The asset's normalized URI."""
        path = "/".join(quote(part, safe="") for part in self.table.parts)
        return f"{SCHEME}://{quote(self.authority, safe='')}/{path}"


def lance_table(
    table: str | TableId,
    asset_authority: str = DEFAULT_CONNECTION,
    *,
    name: str | None = None,
    group: str | None = None,
    extra: Mapping[str, Any] | None = None,
) -> SdkAsset:
    """Return the asset of a Lance table, for ``outlets`` and ``schedule``.

    Args:
        table: table identifier, ``database$table``. A table that is in no database, which only a connection
            of type ``lance`` has, is given as a `TableId`: its name alone is probably a mistake.
        asset_authority: the field Asset authority of the table's connections, which is the id of a connection
            by default. The connection isn't read while a DAG is parsed.
        name: the asset's name in Airflow, by default its URI. A table's asset has one name, in all DAGs:
            Airflow fails tasks whose outlet has another name, and starts no DAG that is scheduled on that.
            Other DAGs may refer to it by ``Asset.ref(uri=…)``.
        group: the asset's group in Airflow.
        extra: extra of the asset, without secrets.

    Raises:
        ValueError: the identifier is invalid, or an argument is a template.
    """
    return Asset(uri=LanceTable.of(asset_authority, table).uri, **asset_fields(name, group, extra))


def asset_fields(name: str | None, group: str | None, extra: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the fields of an asset that were given, for its constructor, which takes no None.

    Args:
        name: the asset's name.
        group: the asset's group.
        extra: the asset's extra.

    Raises:
        ValueError: a name or a group is a template.
    """
    _refuse_templates(name=name, group=group)
    given = {"name": name, "group": group}
    return {"extra": dict(extra or {}), **{key: value for key, value in given.items() if value is not None}}


def create_asset(*, asset_authority: str, table: str, extra: Mapping[str, Any] | None = None) -> SdkAsset:
    """Create the same asset; Airflow's provider manager finds factories by this name and these keywords."""
    return lance_table(table, asset_authority, extra=extra)


def _refuse_templates(**given: object) -> None:
    for argument, value in given.items():
        if isinstance(value, str) and ("{{" in value or "{%" in value):
            raise ValueError(
                f"{argument}={value!r}: templates are not allowed here, since an asset is the same in "
                "every run"
            )


def sanitize_uri(uri: SplitResult) -> SplitResult:
    """Normalize an asset's URI to lower case, as metastores store names.

    Raises:
        ValueError: it isn't the URI of a Lance table.
    """
    return urlsplit(LanceTable.parse(uri).uri)


def emit_asset_event(
    context: Context,
    outlets: Sequence[Any],
    table: LanceTable,
    version: int,
    previous_version: int | None,
    extra: Mapping[str, Any] | None = None,
    partitions: Sequence[str] | None = None,
) -> None:
    """Attach the version that a task created to the asset events of its outlets.

    The outlet that is the table's asset, or refers to it, gets ``{"table", "previous_version", "version"}``
    as its event's extra; after several writes of a task, from the version before the first one to the newest
    one. The table's asset is added to an asset alias, so that a task with a templated table emits one too.

    Args:
        context: the task's context.
        outlets: the task's outlets; others than the table's asset and aliases are ignored.
        table: identifier of the table that was written.
        version: its version now.
        previous_version: the version before, or None.
        extra: further values of the extra.
        partitions: the partitions that the version changed, such as days: the event of the table's asset has
            them as partition keys on Airflow 3.3 or newer, and any event in its extra. None if not known.
    """
    noted: Mapping[str, Any] = {
        "table": str(table.table),
        "previous_version": previous_version,
        "version": version,
        **(extra or {}),
        **({} if partitions is None else {"partitions": list(partitions)}),
    }
    for outlet in outlets:
        if isinstance(outlet, AssetAlias):
            _add_to_alias(context["outlet_events"][outlet], table, dict(noted))
        elif (event := _event_of(context, outlet, table)) is not None:
            event.extra.update(_with_earlier(event.extra, noted))
            if partitions and hasattr(event, "add_partitions"):  # since Airflow 3.3
                event.add_partitions(list(partitions))
        elif isinstance(outlet, Asset) and _names(outlet, table.table):
            _log.warning(_OTHER_AUTHORITY, outlet.uri, table.authority, str(table.table), table.authority)


def _with_earlier(known: Mapping[str, Any], noted: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the extra of an event for a write, and for the writes that the task has noted before.

    Args:
        known: the extra so far.
        noted: the extra for the write alone.
    """
    from airflow_provider_lancens.assets.event_records import merged, record_of

    earlier, found = record_of(known), record_of(noted)
    if earlier is None or earlier["table"] != noted["table"]:
        return noted
    if found is None:  # it has changed nothing
        return known
    counts = {name: known[name] + noted[name] for name in _COUNTS if name in known and name in noted}
    # Threads may note their writes, and a retry may find them, in another order than they were committed in.
    return {**noted, **merged(earlier, found, is_of_known_run=True), **counts}


def emit_no_event(context: Context, task: Any, table: LanceTable) -> None:
    """Remove a table's asset from the outlets of a running task, so that Airflow emits no event for it.

    Args:
        context: the task's context.
        task: the task.
        table: the table, which the task hasn't changed.
    """
    # An event that another write of the task has filled stays.
    events = [(outlet, _event_of(context, outlet, table)) for outlet in task.outlets]
    task.outlets = [outlet for outlet, event in events if event is None or event.extra]


def _event_of(context: Context, outlet: Any, table: LanceTable) -> Any | None:
    """Return the event of an outlet that is the table's asset, or refers to it; None of any other outlet."""
    if isinstance(outlet, AssetRef):
        with suppress(*_unknown_asset()):
            event = context["outlet_events"][outlet]
            return event if getattr(event.key, "uri", None) == table.uri else None
    elif isinstance(outlet, Asset) and outlet.uri == table.uri:
        return context["outlet_events"][outlet]
    return None


def _add_to_alias(event: Any, table: LanceTable, extra: dict[str, Any]) -> None:
    """Add the table's asset to an alias, by the name that DAGs have given it.

    An asset of the same URI with another name would be inactive, and start no DAG.
    """
    try:
        event.add(Asset.ref(uri=table.uri), extra=extra)
    except _unknown_asset():
        event.add(Asset(uri=table.uri), extra=extra)


def _unknown_asset() -> tuple[type[Exception], ...]:
    """Return the errors for a reference to an asset that no DAG has, or outside of a running task."""
    from airflow.sdk.exceptions import AirflowRuntimeError

    return AirflowRuntimeError, ImportError


def _names(outlet: SdkAsset, table: TableId) -> bool:
    """Return whether an asset is one of a table, with whatever authority."""
    with suppress(ValueError):
        return LanceTable.parse(outlet.uri).table == table
    return False


def _checked_authority(asset_authority: str) -> str:
    if not is_asset_authority(asset_authority):
        raise ValueError(f"asset_authority={asset_authority!r}: expected {ALLOWED_AUTHORITY}")
    return asset_authority


def _checked_table(table: TableId) -> TableId:
    if len(table) not in _LEVELS:
        raise ValueError(
            f"table={str(table)!r} has {len(table)} levels; write it as database$table, or pass a TableId if "
            "the catalog has other levels"
        )
    return table
