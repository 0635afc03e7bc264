"""Namespaces: create, list, describe, drop, exists (specification: Basic Operations)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace import namespace_properties
from airflow_provider_lancens.namespace.locations import as_uri, required_root
from airflow_provider_lancens.namespace.metastore_protocol import Metastore, Namespace
from airflow_provider_lancens.namespace.operations.cascade import (
    Cascade,
    CascadePlan,
    ForeignTables,
    PlannedTable,
)
from airflow_provider_lancens.namespace.operations.recent_listings import ListingKey, RecentListings
from airflow_provider_lancens.namespace.paging import Page, PageRequest
from airflow_provider_lancens.namespace.storage.allowed_locations import AllowedLocations
from airflow_provider_lancens.namespace.storage.location_overlap import ResolvedLocation

log = logging.getLogger(__name__)

CREATE, EXIST_OK, OVERWRITE = "create", "exist_ok", "overwrite"
FAIL, SKIP = "fail", "skip"
RESTRICT, CASCADE = "restrict", "cascade"


@dataclass(frozen=True, slots=True)
class NamespaceOperations:
    """Namespace operations of the specification over any metastore."""

    metastore: Metastore
    root: str
    allowed: AllowedLocations = field(default_factory=AllowedLocations)
    check_tables: Callable[[Sequence[PlannedTable]], object] = len
    """See `Cascade`."""
    listings: RecentListings = field(default_factory=RecentListings, repr=False, compare=False)

    def create(self, namespace: NamespaceId, mode: str, properties: Mapping[str, str]) -> dict[str, str]:
        """Create a catalog or a database.

        Returns:
            The properties of the namespace afterwards.

        Raises:
            NamespaceAlreadyExistsError: (2) it exists and the mode is CREATE.
            NamespaceNotEmptyError: (3) the mode is OVERWRITE and it isn't empty.
            NamespaceNotFoundError: (1) its parent doesn't exist.
            InvalidInputError: (13) a property is invalid.
        """
        view = self._new_namespace(namespace, properties)
        if mode == OVERWRITE:
            self._drop_for_overwrite(namespace)
        try:
            self.metastore.create_namespace(view)
        except spec_errors.NamespaceAlreadyExistsError:
            if mode != EXIST_OK:
                raise
        # Read the stored properties: a metastore may choose the location, or another spelling of it.
        return namespace_properties.to_properties(self.metastore.get_namespace(namespace))

    def list(self, parent: NamespaceId, token: str | None, limit: int | None) -> Page:
        """List the names one level below `parent`, sorted and paginated.

        Raises:
            NamespaceNotFoundError: (1) it doesn't exist.
            InvalidInputError: (13) the limit is below 1, or the token is invalid.
        """
        request = PageRequest.parse(token, limit)
        if len(parent) == self.metastore.namespace_levels:
            self.metastore.get_namespace(parent)  # it must exist, and has only tables below it
            return request.cut(())
        key = ListingKey("namespaces", parent)
        return self.listings.page(key, request, lambda: self.metastore.list_namespaces(parent))

    def describe(self, namespace: NamespaceId) -> dict[str, str]:
        """Return the properties of a namespace, including ``database.*``.

        Raises:
            NamespaceNotFoundError: (1) it doesn't exist.
        """
        return namespace_properties.to_properties(self.metastore.get_namespace(namespace))

    def exists(self, namespace: NamespaceId) -> None:
        """Check that a namespace exists; the root always does.

        Raises:
            NamespaceNotFoundError: (1) it doesn't exist.
        """
        if not namespace.is_root:
            self.metastore.get_namespace(namespace)

    def plan_drop(self, namespace: NamespaceId) -> CascadePlan:
        """Return what a cascade would drop; nothing is changed.

        Raises:
            NamespaceNotFoundError: (1) it doesn't exist.
            InvalidInputError: (13) the server never drops it.
        """
        self.metastore.check_droppable(namespace)
        return Cascade(self.metastore).plan(namespace)

    def check_planned(self, plan: CascadePlan, behavior: str, foreign: ForeignTables) -> None:
        """Raise what a drop by a plan that was just made would; nothing is changed.

        Args:
            plan: the plan, as `plan_drop` returned it.
            behavior: RESTRICT refuses a namespace that isn't empty.
            foreign: the tables that aren't Lance but may be dropped.

        Raises:
            NamespaceNotEmptyError: (3) it has contents that may not be dropped; the message names them.
            ConcurrentModificationError: (14) a table is being written to.
        """
        if behavior == RESTRICT:
            plan.check_empty()
        else:
            Cascade(self.metastore, self.check_tables).check(plan, foreign)

    def drop_planned(self, plan: CascadePlan, foreign: ForeignTables) -> dict[str, str]:
        """Drop exactly the tables and namespaces of a plan; no file is deleted (guarantee 3).

        Args:
            plan: the plan, as `plan_drop` returned it.
            foreign: the tables that aren't Lance but may be dropped.

        Returns:
            The namespace's properties when the plan was made.

        Raises:
            NamespaceNotFoundError: (1) the namespace doesn't exist any more.
            NamespaceNotEmptyError: (3) foreign tables aren't allowed, or the namespace has changed since.
            ConcurrentModificationError: (14) a table is being written to; nothing was dropped.
        """
        self.metastore.check_droppable(plan.target)
        Cascade(self.metastore, self.check_tables).execute(plan, foreign)
        return namespace_properties.to_properties(plan.stored)

    def drop(
        self, namespace: NamespaceId, mode: str, behavior: str, foreign: ForeignTables
    ) -> dict[str, str] | None:
        """Drop a namespace and, with CASCADE, its contents; no file is deleted (guarantee 3).

        Args:
            namespace: the namespace to drop.
            mode: FAIL or SKIP if it doesn't exist.
            behavior: RESTRICT refuses a namespace that isn't empty; CASCADE logs and executes a plan.
            foreign: the tables that aren't Lance but may be dropped.

        Returns:
            Its former properties; None if it didn't exist and the mode is SKIP.

        Raises:
            NamespaceNotFoundError: (1) it doesn't exist and the mode is FAIL.
            NamespaceNotEmptyError: (3) it has contents that may not be dropped; the message names them.
        """
        self.metastore.check_droppable(namespace)
        try:
            return self._drop(namespace, behavior, foreign)
        except spec_errors.NamespaceNotFoundError:
            if mode == SKIP:
                return None
            raise

    def _drop(self, namespace: NamespaceId, behavior: str, foreign: ForeignTables) -> dict[str, str]:
        if behavior == CASCADE:
            plan = Cascade(self.metastore).plan(namespace)
            for line in plan.lines():
                log.info("Namespace %s: %s", namespace, line)
            return self.drop_planned(plan, foreign)
        stored = self.metastore.get_namespace(namespace)
        self.metastore.drop_namespace(namespace)
        return namespace_properties.to_properties(stored)

    def _drop_for_overwrite(self, namespace: NamespaceId) -> None:
        self.metastore.check_droppable(namespace)
        # Updated in place, some servers keep the old description. A drop, which the server refuses if the
        # namespace isn't empty, leaves exactly the new properties.
        try:
            self.metastore.drop_namespace(namespace)
        except spec_errors.NamespaceNotFoundError:
            return

    def _new_namespace(self, namespace: NamespaceId, properties: Mapping[str, str]) -> Namespace:
        view = namespace_properties.from_properties(namespace, properties)
        if (
            view.location
            and self.root
            and ResolvedLocation(self.root).lies_in(ResolvedLocation(view.location))
        ):
            log.warning(
                "Namespace %s: its location %s contains root, %s, so the data of every table below "
                "root is deleted if any client drops this namespace with its data; choose a "
                "location below root",
                namespace,
                view.location,
                self.root,
            )
        location = view.location or self.metastore.default_location(
            namespace, required_root(self.root, f"namespace {str(namespace)!r}")
        )
        self.allowed.check(location, f"namespace {namespace}")
        return replace(view, location=as_uri(location))
