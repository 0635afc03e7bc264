"""Databases of a Hive Metastore: one level of namespaces, the only one on 2.x."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from lance_namespace.errors import (
    InternalError,
    InvalidInputError,
    NamespaceAlreadyExistsError,
    NamespaceNotFoundError,
)

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace.hive import converters, limits
from airflow_provider_lancens.namespace.hive.api import HiveApi
from airflow_provider_lancens.namespace.hive.connection import Connection
from airflow_provider_lancens.namespace.hive.dialect import DEFAULT_CATALOG, DEFAULT_DATABASE, catalog_of
from airflow_provider_lancens.namespace.hive.errors import NAMESPACE_ERRORS
from airflow_provider_lancens.namespace.hive.settings import ClientSettings
from airflow_provider_lancens.namespace.locations import DATABASE_SUFFIX, join, normalize
from airflow_provider_lancens.namespace.metastore_protocol import Namespace


class HiveDatabases:
    """Namespace operations of a `Metastore` over databases in one catalog."""

    namespace_levels = 1
    check_name = staticmethod(limits.check_name)

    def __init__(self, settings: ClientSettings) -> None:
        """Take the settings; nothing is opened."""
        self._settings = settings
        self._api = HiveApi(settings, self._check_server)

    @property
    def fingerprint(self) -> str:
        """Addresses of the servers."""
        return str(self._settings)

    def close(self) -> None:
        """Close idle connections."""
        self._api.close()

    def default_location(self, namespace: NamespaceId, root: str) -> str:
        """Return ``{root}/{database}.db``."""
        return join(root, f"{namespace.name}{DATABASE_SUFFIX}")

    def create_namespace(self, namespace: Namespace) -> None:
        """Create a database."""
        limits.check_namespace(namespace)

        def create(connection: Connection) -> None:
            connection.client.create_database(converters.new_database(connection.dialect, namespace))

        def took_effect() -> bool:
            found = self._find_namespace(namespace.id)
            return found is not None and found.properties == namespace.properties

        with self._creation_errors(namespace.id):
            self._api.change(NAMESPACE_ERRORS, f"create namespace {namespace.id}", create, took_effect)

    def get_namespace(self, namespace: NamespaceId) -> Namespace:
        """Read a database."""
        return converters.to_namespace(namespace, self._raw_database(namespace))

    def deletable_folders(self, database: NamespaceId) -> Sequence[str]:
        """Return a database's location, and its location of managed tables on 4.x."""
        raw = self._raw_database(database)
        folders = (raw.locationUri, getattr(raw, "managedLocationUri", None))
        return [normalize(folder) for folder in folders if folder]

    def list_namespaces(self, parent: NamespaceId) -> Sequence[str]:
        """List all databases."""
        names: Sequence[str] = self._api.read(
            NAMESPACE_ERRORS, f"list namespaces of {str(parent)!r}", lambda c: c.client.get_all_databases()
        )
        return names

    def all_databases(self) -> Sequence[NamespaceId]:
        """List the databases of all catalogs; the id of an unaddressable one starts with its catalog."""
        unnamed = DEFAULT_CATALOG if self.namespace_levels == 1 else None

        def read(connection: Connection) -> list[NamespaceId]:
            client = connection.client
            if not connection.dialect.has_catalogs:
                return [NamespaceId.of([name]) for name in client.get_all_databases()]
            return [
                NamespaceId.of([name] if catalog == unnamed else [catalog, name])
                for catalog in client.get_catalogs().names
                for name in client.get_databases(f"@{catalog}#*")
            ]

        found: list[NamespaceId] = self._api.read(
            NAMESPACE_ERRORS, "list the databases of all catalogs", read
        )
        return found

    def drop_namespace(self, namespace: NamespaceId) -> None:
        """Drop an empty database with ``deleteData=false``; the server refuses one that isn't empty."""

        def drop(connection: Connection) -> None:
            connection.client.drop_database(connection.dialect.database(namespace), False, False)

        def took_effect() -> bool:
            return self._find_namespace(namespace) is None

        try:
            self._api.change(NAMESPACE_ERRORS, f"drop namespace {namespace}", drop, took_effect)
        except InternalError:
            self.get_namespace(namespace)  # for a missing one 2.3.10 and 3.1.3 raise a NullPointerException
            raise

    def check_droppable(self, namespace: NamespaceId) -> None:
        """Refuse the database that HMS itself never drops: ``default`` of the catalog ``hive``."""
        if namespace.name == DEFAULT_DATABASE and catalog_of(namespace) == DEFAULT_CATALOG:
            raise InvalidInputError(
                f"namespace {namespace} cannot be dropped: every Hive Metastore has it; drop its "
                "tables instead"
            )

    def _raw_database(self, database: NamespaceId) -> Any:
        def read(connection: Connection) -> Any:
            return connection.client.get_database(connection.dialect.database(database))

        return self._api.read(NAMESPACE_ERRORS, f"read namespace {database}", read)

    def _check_server(self, connection: Connection) -> None:
        """Accept a new connection's server, or raise; all servers support databases."""

    @contextlib.contextmanager
    def _creation_errors(self, namespace: NamespaceId) -> Iterator[None]:
        # 4.0.1 raises a MetaException from its database for the losers of a race.
        try:
            yield
        except InternalError as error:
            if self._find_namespace(namespace):
                raise NamespaceAlreadyExistsError(f"cannot create {namespace}: it already exists") from error
            raise

    def _find_namespace(self, namespace: NamespaceId) -> Namespace | None:
        try:
            return self.get_namespace(namespace)
        except NamespaceNotFoundError:
            return None
