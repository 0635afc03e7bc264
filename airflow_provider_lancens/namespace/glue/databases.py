"""The databases of a Data Catalog: one level of namespaces."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from lance_namespace.errors import InvalidInputError, NamespaceNotEmptyError, NamespaceNotFoundError

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace import fields, outcome
from airflow_provider_lancens.namespace.glue import entries
from airflow_provider_lancens.namespace.glue.calls import Calls
from airflow_provider_lancens.namespace.glue.errors import OF_NAMESPACE
from airflow_provider_lancens.namespace.glue.settings import GlueSettings
from airflow_provider_lancens.namespace.locations import DATABASE_SUFFIX, join
from airflow_provider_lancens.namespace.metastore import Namespace

MAX_NAME = 255
"""Bytes of a name in UTF-8."""
NAMES_ONLY = ["NAME"]
"""What spares Glue sending whole entries where a name is enough."""
_OTHERS = frozenset("_-. ")
_LETTERS_MARKS_NUMBERS = ("L", "M", "N")


class Databases:
    """The namespace verbs of a metastore over the databases of a catalog."""

    namespace_levels = 1

    def __init__(self, settings: GlueSettings) -> None:
        """Take the settings; nothing is opened."""
        self._settings = settings
        self._calls = Calls(settings)

    @property
    def fingerprint(self) -> str:
        """Endpoint, region and catalog."""
        return self._settings.fingerprint

    def close(self) -> None:
        """Give up idle connections."""
        self._calls.close()

    def check_name(self, name: str) -> None:
        """Refuse what Glue can't hold, or what means something else in a path or a pattern.

        Glue itself takes nearly every character, and Athena only letters, digits and ``_`` unquoted.
        """
        if len(name.encode("utf-8", "replace")) > MAX_NAME:
            raise InvalidInputError(
                f"name {name[:40]!r}...: Glue holds at most {MAX_NAME} bytes, got {len(name)} characters"
            )
        if name != name.strip() or ".." in name or not all(map(_is_allowed, name)):
            raise InvalidInputError(
                f"name {name!r}: allowed in Glue are letters and digits of any script, '_', '-', '.' and "
                "inner blanks, but no '..'"
            )

    def default_location(self, namespace: NamespaceId, root: str) -> str:
        """``{root}/{database}.db``."""
        return join(root, f"{namespace.name}{DATABASE_SUFFIX}")

    def create_namespace(self, namespace: Namespace) -> None:
        """Create a database; 2 where it exists."""

        def happened() -> bool:
            found = self._find_namespace(namespace.id)
            wanted = fields.as_properties(namespace)
            return found is not None and outcome.holds(fields.as_properties(found), wanted)

        self._calls.change(
            OF_NAMESPACE,
            f"create namespace {namespace.id}",
            "create_database",
            happened,
            DatabaseInput=entries.database_input(namespace),
        )

    def get_namespace(self, namespace: NamespaceId) -> Namespace:
        """Read a database."""
        attempt = f"read namespace {namespace}"
        raw = self._calls.read(OF_NAMESPACE, attempt, "get_database", "Database", Name=namespace.name)
        return entries.namespace_view(namespace, raw)

    def list_namespaces(self, parent: NamespaceId) -> Sequence[str]:
        """All databases that an identifier can name."""
        attempt = f"list namespaces of {str(parent)!r}"
        raws = self._calls.pages(
            OF_NAMESPACE, attempt, "get_databases", "DatabaseList", AttributesToGet=NAMES_ONLY
        )
        return [raw["Name"] for raw in raws if entries.is_nameable(raw["Name"])]

    def check_droppable(self, namespace: NamespaceId) -> None:
        """Refuse nothing: Glue drops every database, ``default`` too."""

    def drop_namespace(self, namespace: NamespaceId) -> None:
        """Drop a database after a look whether it is empty, for Glue would drop its tables with it.

        A table that another writer creates between the look and the drop loses its entry; its
        files stay. Nothing in Glue closes that window.
        """
        held = next(self._table_names(namespace), None)
        if held is not None:
            raise NamespaceNotEmptyError(f"namespace {namespace} isn't empty: it holds table {held!r}")
        self._calls.change(
            OF_NAMESPACE,
            f"drop namespace {namespace}",
            "delete_database",
            lambda: self._find_namespace(namespace) is None,
            Name=namespace.name,
        )

    def _table_names(self, namespace: NamespaceId) -> Iterator[str]:
        raws = self._calls.pages(
            OF_NAMESPACE,
            f"list tables of {namespace}",
            "get_tables",
            "TableList",
            DatabaseName=namespace.name,
            AttributesToGet=NAMES_ONLY,
        )
        return (raw["Name"] for raw in raws)

    def _find_namespace(self, namespace: NamespaceId) -> Namespace | None:
        try:
            return self.get_namespace(namespace)
        except NamespaceNotFoundError:
            return None


def _is_allowed(character: str) -> bool:
    return character in _OTHERS or unicodedata.category(character).startswith(_LETTERS_MARKS_NUMBERS)
