"""Namespaces: create, list, describe, drop, exists (specification: Basic Operations)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lance_namespace.errors import (
    NamespaceAlreadyExistsError,
    NamespaceNotFoundError,
)

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace import fields
from airflow_provider_lancens.namespace.locations import as_uri
from airflow_provider_lancens.namespace.metastore import Metastore, Namespace
from airflow_provider_lancens.namespace.operations.cascade import Cascade, CascadePlan
from airflow_provider_lancens.namespace.paging import Page, page_of

CREATE, EXIST_OK, OVERWRITE = "create", "exist_ok", "overwrite"
FAIL, SKIP = "fail", "skip"
RESTRICT, CASCADE = "restrict", "cascade"


@dataclass(frozen=True, slots=True)
class NamespaceOperations:
    """The specification's namespace operations over any metastore."""

    metastore: Metastore
    root: str

    def create(self, namespace: NamespaceId, mode: str, properties: Mapping[str, str]) -> dict[str, str]:
        """Create a catalog or a database.

        Returns:
            The properties of the namespace as it then stands.

        Raises:
            NamespaceAlreadyExistsError: (2) it exists and the mode is CREATE.
            NamespaceNotEmptyError: (3) the mode is OVERWRITE and it holds something.
            NamespaceNotFoundError: (1) its parent doesn't exist.
            InvalidInputError: (13) a property can't be what it is.
        """
        view = self._view(namespace, properties)
        if mode == OVERWRITE:
            self._make_way(namespace)
        try:
            self.metastore.create_namespace(view)
        except NamespaceAlreadyExistsError:
            if mode != EXIST_OK:
                raise
            view = self.metastore.get_namespace(namespace)
        return fields.as_properties(view)

    def list(self, parent: NamespaceId, token: str | None, limit: int | None) -> Page:
        """The names one level below `parent`, sorted and cut into pages; 1 where it doesn't exist."""
        if len(parent) == self.metastore.namespace_levels:
            self.metastore.get_namespace(parent)  # it must exist, and nothing but tables lie below it
            return page_of((), token, limit)
        return page_of(self.metastore.list_namespaces(parent), token, limit)

    def describe(self, namespace: NamespaceId) -> dict[str, str]:
        """The properties of a namespace, ``database.*`` ones included; 1 where it doesn't exist."""
        return fields.as_properties(self.metastore.get_namespace(namespace))

    def exists(self, namespace: NamespaceId) -> None:
        """Return where it exists; the root always does.

        Raises:
            NamespaceNotFoundError: (1) it doesn't.
        """
        if not namespace.is_root:
            self.metastore.get_namespace(namespace)

    def plan_drop(self, namespace: NamespaceId) -> CascadePlan:
        """What a cascade would drop, as data; nothing is changed."""
        self.metastore.get_namespace(namespace)
        return Cascade(self.metastore).plan(namespace)

    def drop(
        self, namespace: NamespaceId, mode: str, behavior: str, foreign: frozenset[str]
    ) -> dict[str, str] | None:
        """Drop a namespace and, by CASCADE, what it holds; files survive (promise 3).

        Args:
            namespace: what to drop.
            mode: FAIL or SKIP where it doesn't exist.
            behavior: RESTRICT refuses a namespace that isn't empty.
            foreign: the tables that aren't Lance and may go all the same, by id; ``*`` for any.

        Returns:
            The properties that it had; None where it didn't exist and the mode is SKIP.

        Raises:
            NamespaceNotFoundError: (1) it doesn't exist and the mode is FAIL.
            NamespaceNotEmptyError: (3) it holds something that may not go; the message names it.
        """
        self.metastore.check_droppable(namespace)
        try:
            return self._drop(namespace, behavior, foreign)
        except NamespaceNotFoundError:
            if mode == SKIP:
                return None
            raise

    def _drop(self, namespace: NamespaceId, behavior: str, foreign: frozenset[str]) -> dict[str, str]:
        found = self.metastore.get_namespace(namespace)
        if behavior == CASCADE:
            cascade = Cascade(self.metastore)
            cascade.execute(cascade.plan(namespace), foreign)
        else:
            self.metastore.drop_namespace(namespace)
        return fields.as_properties(found)

    def _make_way(self, namespace: NamespaceId) -> None:
        self.metastore.check_droppable(namespace)
        # In place some servers keep the old description: only a drop, which the server itself
        # refuses where anything is left inside, leaves exactly the new properties.
        try:
            self.metastore.drop_namespace(namespace)
        except NamespaceNotFoundError:
            return

    def _view(self, namespace: NamespaceId, properties: Mapping[str, str]) -> Namespace:
        view = fields.as_view(namespace, properties)
        location = view.location or self.metastore.default_location(namespace, self.root)
        return replace(view, location=as_uri(location))
