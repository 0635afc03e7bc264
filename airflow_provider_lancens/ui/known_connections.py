"""The Lance connections that the API server knows, grouped by asset authority."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from airflow.models import Connection
from airflow.models.asset import AssetModel
from airflow.utils.session import create_session
from sqlalchemy import select

from airflow_provider_lancens.assets.table import SCHEME
from airflow_provider_lancens.hooks.airflow_errors import AirflowException
from airflow_provider_lancens.hooks.connection_fields import asset_authority, connection_types
from airflow_provider_lancens.hooks.lance_hook import read_connection

if TYPE_CHECKING:
    from airflow.sdk import Connection as SdkConnection
    from sqlalchemy.orm import Session

_VARIABLE = "AIRFLOW_CONN_"


@dataclass(frozen=True, slots=True)
class KnownConnections:
    """The types and the asset authorities of Lance connections, by connection id."""

    types: Mapping[str, str]
    authorities: Mapping[str, str]

    @classmethod
    def read(cls) -> KnownConnections:
        """Read the connections in Airflow's database, in the environment, and with an id that an asset names.

        Other secrets backends can't be listed.
        """
        with create_session() as session:
            found = dict(_found(session))
        return cls(
            {conn_id: str(connection.conn_type) for conn_id, connection in found.items()},
            {conn_id: _authority_of(connection) for conn_id, connection in found.items()},
        )

    def sharing(self, authority: str) -> list[str]:
        """Return the ids of the connections with an asset authority, beginning with an equal id."""
        found = (conn_id for conn_id, given in self.authorities.items() if given == authority)
        return sorted(found, key=lambda conn_id: (conn_id != authority, conn_id))


def _found(session: Session) -> Iterator[tuple[str, SdkConnection]]:
    types = connection_types()
    listed = set()
    for connection in session.scalars(select(Connection).where(Connection.conn_type.in_(types))):
        listed.add(connection.conn_id)
        yield connection.conn_id, connection
    uris = session.scalars(select(AssetModel.uri).where(AssetModel.uri.startswith(f"{SCHEME}://")))
    named = {unquote(urlsplit(uri).netloc) for uri in uris}
    for conn_id in {*_in_environment(), *named} - listed:
        read = _read(conn_id)
        if read is not None and read.conn_type in types:
            yield conn_id, read


def _in_environment() -> set[str]:
    return {name.removeprefix(_VARIABLE).lower() for name in os.environ if name.startswith(_VARIABLE)}


def _read(conn_id: str) -> SdkConnection | None:
    try:
        return read_connection(conn_id)
    except Exception:  # noqa: BLE001 - another's connection may be anything, or nothing that can be read
        return None


def _authority_of(connection: SdkConnection) -> str:
    try:
        return asset_authority(connection)
    except AirflowException:  # the page of the connection shows the error
        return str(connection.conn_id)
