"""Hive Metastore with catalogs (3.x, 4.x): two levels of namespaces, catalog and database."""

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
from airflow_provider_lancens.namespace.hive import converters, limits
from airflow_provider_lancens.namespace.hive.connection import Connection
from airflow_provider_lancens.namespace.hive.dialect import DEFAULT_CATALOG, DEFAULT_DATABASE
from airflow_provider_lancens.namespace.hive.errors import NAMESPACE_ERRORS
from airflow_provider_lancens.namespace.hive.metastore import HiveMetastore
from airflow_provider_lancens.namespace.locations import join, normalize
from airflow_provider_lancens.namespace.metastore_protocol import Namespace


class CatalogMetastore(HiveMetastore):
    """`Metastore` whose outermost level is catalogs."""

    namespace_levels = 2

    def default_location(self, namespace: NamespaceId, root: str) -> str:
        """Return ``{root}/{catalog}[/{database}.db]``, but ``{root}/{database}.db`` in catalog ``hive``."""
        if len(namespace) == 1:
            return join(root, namespace.name)
        inside = root if namespace.parent.name == DEFAULT_CATALOG else join(root, namespace.parent.name)
        return super().default_location(namespace, inside)

    def create_namespace(self, namespace: Namespace) -> None:
        """Create a catalog or a database, in an existing catalog."""
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

    def deletable_folders(self, database: NamespaceId) -> Sequence[str]:
        """Return a database's folders, and its catalog's unless that is ``hive``, which is never dropped."""
        folders = super().deletable_folders(database)
        if database.parent.name == DEFAULT_CATALOG:
            return folders
        catalog = self._get_catalog(database.parent).location
        return [*folders, *([normalize(catalog)] if catalog else [])]

    def list_namespaces(self, parent: NamespaceId) -> Sequence[str]:
        """List all catalogs, or all databases of a catalog."""
        if parent.is_root:
            names: Sequence[str] = self._api.read(
                NAMESPACE_ERRORS, "list catalogs", lambda c: c.client.get_catalogs().names
            )
            return names
        found: Sequence[str] = self._api.read(
            NAMESPACE_ERRORS,
            f"list databases of catalog {parent}",
            lambda c: c.client.get_databases(f"@{parent}#*"),
        )
        return self._names_or_not_found(parent, found)

    def check_droppable(self, namespace: NamespaceId) -> None:
        """Refuse the catalog ``hive`` and its database ``default``."""
        if namespace.parts == (DEFAULT_CATALOG,):
            raise InvalidInputError(
                f"catalog {namespace} cannot be dropped: every Hive Metastore has it; drop its "
                "databases instead"
            )
        if len(namespace) > 1:
            super().check_droppable(namespace)

    def drop_namespace(self, namespace: NamespaceId) -> None:
        """Drop an empty catalog or database without deleting files."""
        if len(namespace) == 1:
            self._drop_catalog(namespace)
        else:
            super().drop_namespace(namespace)

    def _check_server(self, connection: Connection) -> None:
        if not connection.dialect.has_catalogs:
            raise UnsupportedOperationError(
                f"metastore {connection.endpoint} has no catalogs, so it is Hive 2.x: use "
                "Hive2Namespace (connection type lance_hive2)"
            )

    def _create_catalog(self, catalog: Namespace) -> None:
        if catalog.properties or catalog.owner or catalog.owner_type:
            raise InvalidInputError(
                f"catalog {catalog.id}: a metastore stores only the description and the location of "
                f"a catalog; leave out {sorted(catalog.properties) or 'its owner'}"
            )
        limits.check_namespace(catalog)

        def create(connection: Connection) -> None:
            request = connection.dialect.types.CreateCatalogRequest(converters.new_catalog(catalog))
            connection.client.create_catalog(request)

        def took_effect() -> bool:
            found = self._find_namespace(catalog.id)
            return found is not None and found.description == catalog.description

        with self._creation_errors(catalog.id):
            self._api.change(NAMESPACE_ERRORS, f"create catalog {catalog.id}", create, took_effect)

    def _get_catalog(self, catalog: NamespaceId) -> Namespace:
        raw = self._api.read(
            NAMESPACE_ERRORS,
            f"read catalog {catalog}",
            lambda c: c.client.get_catalog(c.dialect.types.GetCatalogRequest(catalog.name)).catalog,
        )
        return converters.catalog_to_namespace(catalog, raw)

    def _drop_catalog(self, catalog: NamespaceId) -> None:
        """Drop a catalog that is empty except for its own empty ``default`` database.

        HMS 3.1.3 and 4.0.1 delete the catalog's folder and its ``default`` database's with it. To keep
        all files, ``default`` is dropped first, by ``deleteData=false``, and the catalog
        is pointed at a folder that doesn't exist.
        """
        found = self._get_catalog(catalog)
        if set(self.list_namespaces(catalog)) - {DEFAULT_DATABASE}:
            raise NamespaceNotEmptyError(
                f"cannot drop catalog {catalog}: it has databases other than default"
            )
        default = self._find_namespace(catalog.child(DEFAULT_DATABASE))
        if default:
            super().drop_namespace(default.id)
        with self._restored_if_not_empty(found, default):
            self._move_catalog(
                replace(found, location=join(found.location or "", f"dropped-{uuid.uuid4().hex}"))
            )

            def drop(connection: Connection) -> Any:
                return connection.client.drop_catalog(
                    connection.dialect.types.DropCatalogRequest(catalog.name)
                )

            self._api.change(
                NAMESPACE_ERRORS,
                f"drop catalog {catalog}",
                drop,
                lambda: self._find_namespace(catalog) is None,
            )

    @contextlib.contextmanager
    def _restored_if_not_empty(self, catalog: Namespace, default: Namespace | None) -> Iterator[None]:
        # A database created meanwhile prevents the drop; then the catalog must be restored.
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
            changed = converters.new_catalog(catalog)
            connection.client.alter_catalog(types.AlterCatalogRequest(catalog.id.name, changed))

        def took_effect() -> bool:
            return self._get_catalog(catalog.id).location == catalog.location

        self._api.change(NAMESPACE_ERRORS, f"move catalog {catalog.id}", move, took_effect)
