"""Databases of a Data Catalog: one level of namespaces."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from lance_namespace.errors import InvalidInputError, NamespaceNotEmptyError, NamespaceNotFoundError

from airflow_provider_lancens.identifiers import NamespaceId, is_addressable
from airflow_provider_lancens.namespace import namespace_properties, verify
from airflow_provider_lancens.namespace.glue import converters
from airflow_provider_lancens.namespace.glue.api import GlueApi, GlueCall
from airflow_provider_lancens.namespace.glue.errors import NAMESPACE_ERRORS
from airflow_provider_lancens.namespace.glue.settings import GlueSettings
from airflow_provider_lancens.namespace.locations import DATABASE_SUFFIX, join, normalize
from airflow_provider_lancens.namespace.metastore_protocol import Namespace

MAX_NAME = 255
"""Bytes of a name in UTF-8."""
NAMES_ONLY = ["NAME"]
"""Restricts Glue's responses to names where no other fields are needed."""
_OTHERS = frozenset("_-. ")
_LETTERS_MARKS_NUMBERS = ("L", "M", "N")


class GlueDatabases:
    """Namespace operations of a `Metastore` over the databases of a catalog."""

    namespace_levels = 1

    def __init__(self, settings: GlueSettings) -> None:
        """Take the settings; nothing is opened."""
        self._settings = settings
        self._api = GlueApi(settings)

    @property
    def fingerprint(self) -> str:
        """Endpoint, region and catalog."""
        return self._settings.fingerprint

    def close(self) -> None:
        """Close idle connections."""
        self._api.close()

    def check_name(self, name: str) -> None:
        """Refuse a name that Glue can't store, or that has a special meaning in a path or a pattern.

        Glue itself accepts nearly every character, and Athena only letters, digits and ``_`` unquoted.
        """
        if len(name.encode("utf-8", "replace")) > MAX_NAME:
            raise InvalidInputError(
                f"name {name[:40]!r}...: Glue allows at most {MAX_NAME} bytes, got {len(name)} characters"
            )
        if name != name.strip() or ".." in name or not all(map(_is_allowed, name)):
            raise InvalidInputError(
                f"name {name!r}: allowed in Glue are letters and digits of any script, '_', '-', "
                "'.' and inner spaces, but not '..'"
            )

    def default_location(self, namespace: NamespaceId, root: str) -> str:
        """Return ``{root}/{database}.db``."""
        return join(root, f"{namespace.name}{DATABASE_SUFFIX}")

    def create_namespace(self, namespace: Namespace) -> None:
        """Create a database."""

        def took_effect() -> bool:
            found = self._find_namespace(namespace.id)
            wanted = namespace_properties.to_properties(namespace)
            return found is not None and verify.contains(namespace_properties.to_properties(found), wanted)

        arguments = {"DatabaseInput": converters.database_input(namespace)}
        attempt = f"create namespace {namespace.id}"
        self._api.change(GlueCall("create_database", arguments, attempt, NAMESPACE_ERRORS), took_effect)

    def get_namespace(self, namespace: NamespaceId) -> Namespace:
        """Read a database."""
        attempt = f"read namespace {namespace}"
        call = GlueCall("get_database", {"Name": namespace.name}, attempt, NAMESPACE_ERRORS)
        return converters.to_namespace(namespace, self._api.read(call, "Database"))

    def deletable_folders(self, database: NamespaceId) -> Sequence[str]:
        """Return a database's location: Glue doesn't delete it, but Hive's and Spark's clients of Glue do."""
        location = self.get_namespace(database).location
        return [normalize(location)] if location else []

    def list_namespaces(self, parent: NamespaceId) -> Sequence[str]:
        """List all databases that an identifier can address."""
        return [name for name in self.all_databases(parent) if is_addressable(name)]

    def all_databases(self, parent: NamespaceId) -> Sequence[str]:
        """List the names of all databases, addressable or not."""
        attempt = f"list namespaces of {str(parent)!r}"
        call = GlueCall("get_databases", {"AttributesToGet": NAMES_ONLY}, attempt, NAMESPACE_ERRORS)
        return [raw["Name"] for page in self._api.pages(call, "DatabaseList") for raw in page]

    def check_droppable(self, namespace: NamespaceId) -> None:
        """Refuse nothing: Glue drops every database, ``default`` too."""

    def drop_namespace(self, namespace: NamespaceId) -> None:
        """Drop a database after checking that it is empty, since Glue would drop its tables with it.

        A table that another writer creates between the check and the drop is dropped from the catalog; its
        files are kept. Glue offers nothing to close that window.
        """
        held = next(self._table_names(namespace), None)
        if held is not None:
            raise NamespaceNotEmptyError(f"namespace {namespace} is not empty: it contains table {held!r}")
        attempt = f"drop namespace {namespace}"
        call = GlueCall("delete_database", {"Name": namespace.name}, attempt, NAMESPACE_ERRORS)
        self._api.change(call, lambda: self._find_namespace(namespace) is None)

    def _table_names(self, namespace: NamespaceId) -> Iterator[str]:
        arguments = {"DatabaseName": namespace.name, "AttributesToGet": NAMES_ONLY}
        call = GlueCall("get_tables", arguments, f"list tables of {namespace}", NAMESPACE_ERRORS)
        return (raw["Name"] for page in self._api.pages(call, "TableList") for raw in page)

    def _find_namespace(self, namespace: NamespaceId) -> Namespace | None:
        try:
            return self.get_namespace(namespace)
        except NamespaceNotFoundError:
            return None


def _is_allowed(character: str) -> bool:
    return character in _OTHERS or unicodedata.category(character).startswith(_LETTERS_MARKS_NUMBERS)
