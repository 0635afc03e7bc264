"""A Hive Metastore with catalogs (3.x, 4.x): two levels of namespaces, catalog and database."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from lance_namespace.errors import (
    InvalidInputError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    UnsupportedOperationError,
)

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace.hive import entries, limits
from airflow_provider_lancens.namespace.hive.connection import Connection
from airflow_provider_lancens.namespace.hive.dialect import DEFAULT_CATALOG, DEFAULT_DATABASE
from airflow_provider_lancens.namespace.hive.errors import OF_NAMESPACE
from airflow_provider_lancens.namespace.hive.metastore import HiveMetastore
from airflow_provider_lancens.namespace.locations import join
from airflow_provider_lancens.namespace.metastore import Namespace


class CatalogMetastore(HiveMetastore):
    """The verbs of a metastore whose outermost level are catalogs."""

    namespace_levels = 2

    def default_location(self, namespace: NamespaceId, root: str) -> str:
        """``{root}/{catalog}``, ``{root}/{catalog}/{database}.db``, in ``hive`` ``{root}/{database}.db``."""
        if len(namespace) == 1:
            return join(root, namespace.name)
        inside = root if namespace.parent.name == DEFAULT_CATALOG else join(root, namespace.parent.name)
        return super().default_location(namespace, inside)

    def create_namespace(self, namespace: Namespace) -> None:
        """Create a catalog or a database; 1 where the database's catalog doesn't exist."""
        if len(namespace.id) == 1:
            self._create_catalog(namespace)
            return
        try:
            super().create_namespace(namespace)
        except (InvalidInputError, NamespaceNotFoundError):
            self._get_catalog(namespace.id.parent)
            raise

    def get_namespace(self, namespace: NamespaceId) -> Namespace:
        """Read a catalog or a database."""
        return self._get_catalog(namespace) if len(namespace) == 1 else super().get_namespace(namespace)

    def list_namespaces(self, parent: NamespaceId) -> Sequence[str]:
        """All catalogs, or all databases of a catalog."""
        if parent.is_root:
            names: Sequence[str] = self._calls.read(
                OF_NAMESPACE, "list catalogs", lambda c: c.client.get_catalogs().names
            )
            return names
        found: Sequence[str] = self._calls.read(
            OF_NAMESPACE,
            f"list databases of catalog {parent}",
            lambda c: c.client.get_databases(f"@{parent}#*"),
        )
        return self._names_of_existing(parent, found)

    def check_droppable(self, namespace: NamespaceId) -> None:
        """Refuse the catalog ``hive`` and its database ``default``."""
        if namespace.parts == (DEFAULT_CATALOG,):
            raise InvalidInputError(f"catalog {namespace}: every Hive Metastore has it; drop its databases")
        if len(namespace) > 1:
            super().check_droppable(namespace)

    def drop_namespace(self, namespace: NamespaceId) -> None:
        """Drop an empty catalog or database, and no file with it."""
        if len(namespace) == 1:
            self._drop_catalog(namespace)
        else:
            super().drop_namespace(namespace)

    def _admit(self, connection: Connection) -> None:
        if not connection.dialect.has_catalogs:
            raise UnsupportedOperationError(
                f"metastore {connection.endpoint} has no catalogs, so it is a Hive 2.x: "
                "use Hive2Namespace (connection type lance_hive2)"
            )

    def _create_catalog(self, catalog: Namespace) -> None:
        if catalog.properties or catalog.owner or catalog.owner_type:
            raise InvalidInputError(
                f"catalog {catalog.id}: a metastore keeps a catalog's description and location and "
                f"nothing else; leave out {sorted(catalog.properties) or 'its owner'}"
            )
        limits.check_namespace(catalog)

        def create(connection: Connection) -> None:
            request = connection.dialect.types.CreateCatalogRequest(entries.new_catalog(catalog))
            connection.client.create_catalog(request)

        def happened() -> bool:
            found = self._find_namespace(catalog.id)
            return found is not None and found.description == catalog.description

        with self._losers_told(catalog.id):
            self._calls.change(OF_NAMESPACE, f"create catalog {catalog.id}", create, happened)

    def _get_catalog(self, catalog: NamespaceId) -> Namespace:
        raw = self._calls.read(
            OF_NAMESPACE,
            f"read catalog {catalog}",
            lambda c: c.client.get_catalog(c.dialect.types.GetCatalogRequest(catalog.name)).catalog,
        )
        return entries.catalog_view(catalog, raw)

    def _drop_catalog(self, catalog: NamespaceId) -> None:
        """Drop a catalog, whose own empty ``default`` database doesn't count.

        HMS 3.1.3 and 4.0.1 delete the catalog's folder and its ``default`` database's with it. So
        that no file goes, ``default`` is dropped first, by ``deleteData=false``, and the catalog
        is pointed at a folder that doesn't exist.
        """
        found = self._get_catalog(catalog)
        if set(self.list_namespaces(catalog)) - {DEFAULT_DATABASE}:
            raise NamespaceNotEmptyError(f"cannot drop catalog {catalog}: it has databases besides default")
        default = self._find_namespace(catalog.child(DEFAULT_DATABASE))
        if default:
            super().drop_namespace(default.id)
        with self._put_back(found, default):
            self._move_catalog(
                replace(found, location=join(found.location or "", f"dropped-{uuid.uuid4().hex}"))
            )

            def drop(connection: Connection) -> Any:
                return connection.client.drop_catalog(
                    connection.dialect.types.DropCatalogRequest(catalog.name)
                )

            self._calls.change(
                OF_NAMESPACE, f"drop catalog {catalog}", drop, lambda: self._find_namespace(catalog) is None
            )

    @contextlib.contextmanager
    def _put_back(self, catalog: Namespace, default: Namespace | None) -> Iterator[None]:
        # A database made meanwhile keeps the catalog alive; then it must be what it was.
        try:
            yield
        except NamespaceNotEmptyError:
            self._move_catalog(catalog)
            if default:
                super().create_namespace(default)
            raise

    def _move_catalog(self, catalog: Namespace) -> None:
        def move(connection: Connection) -> None:
            types = connection.dialect.types
            changed = entries.new_catalog(catalog)
            connection.client.alter_catalog(types.AlterCatalogRequest(catalog.id.name, changed))

        def happened() -> bool:
            return self._get_catalog(catalog.id).location == catalog.location

        self._calls.change(OF_NAMESPACE, f"move catalog {catalog.id}", move, happened)
