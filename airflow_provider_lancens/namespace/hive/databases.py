"""The databases of a Hive Metastore: one level of namespaces, on 2.x all there is."""

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
from airflow_provider_lancens.namespace.hive import entries, limits
from airflow_provider_lancens.namespace.hive.calls import Calls
from airflow_provider_lancens.namespace.hive.connection import Connection
from airflow_provider_lancens.namespace.hive.dialect import DEFAULT_CATALOG, DEFAULT_DATABASE, catalog_of
from airflow_provider_lancens.namespace.hive.errors import OF_NAMESPACE
from airflow_provider_lancens.namespace.hive.settings import ClientSettings
from airflow_provider_lancens.namespace.locations import DATABASE_SUFFIX, join
from airflow_provider_lancens.namespace.metastore import Namespace


class Databases:
    """The namespace verbs of a metastore over databases in one catalog."""

    namespace_levels = 1

    def __init__(self, settings: ClientSettings) -> None:
        """Take the settings; nothing is opened."""
        self._settings = settings
        self._calls = Calls(settings, self._admit)

    @property
    def fingerprint(self) -> str:
        """The servers' addresses."""
        return str(self._settings)

    def close(self) -> None:
        """Give up idle connections."""
        self._calls.close()

    def check_name(self, name: str) -> None:
        """Refuse what HMS can't hold."""
        limits.check_name(name)

    def default_location(self, namespace: NamespaceId, root: str) -> str:
        """``{root}/{database}.db``."""
        return join(root, f"{namespace.name}{DATABASE_SUFFIX}")

    def create_namespace(self, namespace: Namespace) -> None:
        """Create a database; 2 where it exists."""
        limits.check_namespace(namespace)

        def create(connection: Connection) -> None:
            connection.client.create_database(entries.new_database(connection.dialect, namespace))

        def happened() -> bool:
            found = self._find_namespace(namespace.id)
            return found is not None and found.properties == namespace.properties

        with self._losers_told(namespace.id):
            self._calls.change(OF_NAMESPACE, f"create namespace {namespace.id}", create, happened)

    def get_namespace(self, namespace: NamespaceId) -> Namespace:
        """Read a database."""

        def read(connection: Connection) -> Any:
            return connection.client.get_database(connection.dialect.database(namespace))

        raw = self._calls.read(OF_NAMESPACE, f"read namespace {namespace}", read)
        return entries.namespace_view(namespace, raw)

    def list_namespaces(self, parent: NamespaceId) -> Sequence[str]:
        """All databases."""
        names: Sequence[str] = self._calls.read(
            OF_NAMESPACE, f"list namespaces of {str(parent)!r}", lambda c: c.client.get_all_databases()
        )
        return names

    def drop_namespace(self, namespace: NamespaceId) -> None:
        """Drop an empty database with ``deleteData=false``; the server refuses one that isn't empty."""

        def drop(connection: Connection) -> None:
            connection.client.drop_database(connection.dialect.database(namespace), False, False)

        def happened() -> bool:
            return self._find_namespace(namespace) is None

        try:
            self._calls.change(OF_NAMESPACE, f"drop namespace {namespace}", drop, happened)
        except InternalError:
            self.get_namespace(namespace)  # 2.3.10 and 3.1.3 answer a missing one with a NullPointerException
            raise

    def check_droppable(self, namespace: NamespaceId) -> None:
        """Refuse what HMS itself never drops: the database ``default`` of the catalog ``hive``."""
        if namespace.name == DEFAULT_DATABASE and catalog_of(namespace) == DEFAULT_CATALOG:
            raise InvalidInputError(
                f"namespace {namespace}: a Hive Metastore never drops it; drop its tables"
            )

    def _admit(self, connection: Connection) -> None:
        """Accept a new connection's server, or raise; databases are on every one."""

    @contextlib.contextmanager
    def _losers_told(self, namespace: NamespaceId) -> Iterator[None]:
        # 4.0.1 answers the losers of a race with a MetaException from its database.
        try:
            yield
        except InternalError as error:
            if self._find_namespace(namespace):
                raise NamespaceAlreadyExistsError(f"cannot create {namespace}: it exists") from error
            raise

    def _find_namespace(self, namespace: NamespaceId) -> Namespace | None:
        try:
            return self.get_namespace(namespace)
        except NamespaceNotFoundError:
            return None
