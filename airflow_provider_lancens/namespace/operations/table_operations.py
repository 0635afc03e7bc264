"""Tables: declare, register, list, describe, rename, deregister, drop (specification: Basic Operations)."""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import (
    InvalidIdentifierError,
    NamespaceId,
    TableId,
    is_addressable,
)
from airflow_provider_lancens.namespace import table_properties
from airflow_provider_lancens.namespace.config import StorageConfig
from airflow_provider_lancens.namespace.locations import (
    Location,
    as_uri,
    check_location,
    is_local,
    location_fault,
    normalize,
    required_root,
    shown_location,
)
from airflow_provider_lancens.namespace.managed.managed_versions import ManagedVersions
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable, Metastore, ParameterChange
from airflow_provider_lancens.namespace.operations.authority_change import AuthorityChange, closed_to_writes
from airflow_provider_lancens.namespace.operations.cascade import PlannedTable
from airflow_provider_lancens.namespace.operations.clone_search import CloneSearch
from airflow_provider_lancens.namespace.operations.connection_stores import ConnectionStores
from airflow_provider_lancens.namespace.operations.recent_listings import RecentListings
from airflow_provider_lancens.namespace.operations.table_listing import TableListing
from airflow_provider_lancens.namespace.paging import Page, PageRequest
from airflow_provider_lancens.namespace.storage import default_layout, object_store, purge
from airflow_provider_lancens.namespace.storage.clones import Clones
from airflow_provider_lancens.namespace.storage.enclosing_dataset import check_not_enclosed
from airflow_provider_lancens.namespace.storage.location_overlap import ResolvedLocation
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.object_store import StoreId
from airflow_provider_lancens.namespace.storage.write_leases import (
    gates_of,
    leases_of,
    open_gate,
    open_gates,
    wait_for_writes,
)
from airflow_provider_lancens.redaction import redact

log = logging.getLogger(__name__)

_TRIES, _THREADS = 5, 32
_SEARCHED = 1000
"""Tables that are read at most to find clones: before a drop, and before some files are removed."""
_OF_THE_STORE = (spec_errors.UnauthenticatedError, spec_errors.ServiceUnavailableError)
"""Errors that concern all locations of a store."""
_OF_THE_SERVER = ("transient_lastDdlTime", "last_modified_by", "last_modified_time")
"""Parameters that Hive's metastore sets by itself."""


@dataclass(frozen=True, slots=True)
class TableOperations:
    """Table operations of the specification over any metastore."""

    metastore: Metastore
    config: StorageConfig
    stores: ConnectionStores
    listings: RecentListings = field(default_factory=RecentListings, repr=False, compare=False)

    def declare(self, table: TableId, location: str | None, properties: Mapping[str, str]) -> CatalogTable:
        """Create a catalog table without a dataset.

        Args:
            table: its identifier.
            location: its root; None for ``{table}.lance`` in a folder of its own beside its database's, see
                `default_layout`.
            properties: the caller's parameters.

        Raises:
            NamespaceNotFoundError: (1) its namespace doesn't exist.
            TableAlreadyExistsError: (5) a catalog table of that name exists, Lance or not.
            InvalidInputError: (13) the location or a property is invalid, or the location is in a folder of
                another dataset.
            UnsupportedOperationError: (0) it is to be managed by a metastore that can't compare-and-set.
            InternalError: (18) the server failed, such as on creating the folder.
            ConcurrentModificationError: (14) a write to a former table at the given location is running.
        """
        catalog_table = self._new_catalog_table(table, location, properties)
        if location is not None:
            self._check_not_enclosed(catalog_table)
            self._check_no_former_writes(catalog_table)
        try:
            self.metastore.create_table(catalog_table)
        except spec_errors.InternalError as error:
            if location is not None:
                raise
            raise spec_errors.InternalError(
                f"{error}; if the metastore is not permitted to create the folder of "
                f"{catalog_table.location} beside the database's, grant that, or give the table a location"
            ) from error
        return catalog_table

    def register(
        self, table: TableId, location: str | None, properties: Mapping[str, str], *, overwrite: bool
    ) -> CatalogTable:
        """Create a catalog table for an existing dataset; a managed one starts at its newest version.

        Args:
            table: its identifier.
            location: location of the dataset.
            properties: the caller's parameters.
            overwrite: replace a catalog table of that name, if it is a Lance table, or was one before another
                client dropped its ``table_type``. Its ``managed_by`` is kept if `properties` has none.

        Raises:
            InvalidInputError: (13) no location, one in a folder of another dataset, or the catalog table to
                replace isn't Lance.
            NamespaceNotFoundError: (1) as for `declare`.
            TableAlreadyExistsError: (5) as for `declare`.
            ConcurrentModificationError: (14) a write is running that would be lost, or the table was changed
                concurrently.
        """
        if not location:
            raise spec_errors.InvalidInputError(
                f"table {table}: registering it requires the location of its dataset"
            )
        replaced = self._replaceable(table, location) if overwrite else None
        kept = _managed_by(replaced) if replaced else {}
        catalog_table = self._new_catalog_table(table, location, {**kept, **properties})
        self._check_not_enclosed(catalog_table)
        if replaced and table_properties.is_lance(replaced) and table_properties.STATE in replaced.parameters:
            return self._replace(replaced, catalog_table)
        if replaced:
            self._drop_catalog_table(replaced)
        with self._closed_if_managed(catalog_table):
            catalog_table = self._at_newest(catalog_table)
            self.metastore.create_table(catalog_table)
        return catalog_table

    def get(self, table: TableId) -> CatalogTable:
        """Return the catalog table of a Lance table.

        Raises:
            TableNotFoundError: (4) no catalog table has that name.
            InvalidInputError: (13) it isn't a Lance table.
        """
        catalog_table = self.metastore.get_table(table)
        table_properties.check_lance(catalog_table)
        return catalog_table

    def location_of(self, catalog_table: CatalogTable) -> Location:
        """Return a catalog table's location.

        Raises:
            InvalidInputError: (13) it is invalid, see `table_properties.location_of`.
            PermissionDeniedError: (15) it isn't allowed, or in another store, see `ConnectionStores`.
        """
        location = table_properties.location_of(catalog_table, self.config.allowed)
        self.stores.check(location, catalog_table.id.namespace, f"table {catalog_table.id}")
        return location

    def is_only_declared(self, catalog_table: CatalogTable) -> bool:
        """Whether no dataset exists at the table's location yet."""
        if table_properties.is_managed(catalog_table) and table_properties.managed_version(catalog_table):
            return False
        return (
            object_store.latest_version(self.location_of(catalog_table), self.config.storage_options) is None
        )

    def list(self, namespace: NamespaceId, token: str | None, limit: int | None, *, declared: bool) -> Page:
        """List the names of the Lance tables of a namespace, sorted and paginated.

        Args:
            namespace: the database.
            token: the previous page's token.
            limit: maximum number of names to return.
            declared: whether to include tables without a dataset. If false, a table whose storage doesn't
                answer is included; a table that can't be read, or can have no data, is left out: see
                `DataCheck`.
        """
        return self._listing.page(namespace, PageRequest.parse(token, limit), declared=declared)

    def list_all(self, token: str | None, limit: int | None, *, declared: bool) -> Page:
        """List the full identifiers of all Lance tables below the root, sorted and paginated."""
        return self._listing.page_of_all(PageRequest.parse(token, limit), declared=declared)

    def rename(self, table: TableId, to: TableId) -> None:
        """Rename a Lance table; its data stays where it is.

        Raises:
            TableAlreadyExistsError: (5) the new name is taken.
            UnsupportedOperationError: (0) the catalog table's type is MANAGED, or the metastore can't rename.
        """
        catalog_table = self.get(table)
        if not catalog_table.external:
            raise spec_errors.UnsupportedOperationError(
                f"table {table}: its catalog table has type MANAGED, so the metastore would move "
                f"its folder; deregister it and register it as {to}"
            )
        self.metastore.rename_table(table, to)

    def deregister(self, table: TableId) -> CatalogTable:
        """Drop the catalog table of a Lance table, whichever client created it; its data is kept."""
        catalog_table = self.get(table)
        self._drop_catalog_table(catalog_table)
        return catalog_table

    def drop(self, table: TableId) -> CatalogTable:
        """Delete Lance's own files below a table's location, then its catalog table (guarantee 3).

        The catalog table is dropped last, so that an interrupted drop can be rerun.

        Raises:
            ConcurrentModificationError: (14) a write is running; the message names it.
            InvalidInputError: (13) another catalog table, in any catalog, has the same location or an
                overlapping one, a table is a clone that refers to the data, or the location is a symbolic
                link; nothing is dropped.
        """
        catalog_table = self._droppable(table)
        self._finish_last_commit(catalog_table)
        purge.remove(self.location_of(catalog_table), self.config.storage_options)
        self._drop_unless_declared_again(catalog_table)
        return catalog_table

    def plan_drop(self, table: TableId) -> purge.DropPlan:
        """Return what `drop` would delete, or raise what it would; nothing is changed."""
        return purge.plan(self.location_of(self._droppable(table)), self.config.storage_options)

    def _droppable(self, table: TableId) -> CatalogTable:
        catalog_table = self.get(table)
        self._check_no_clones(catalog_table, self._check_sole_owner(catalog_table))
        wait_for_writes(self._files(catalog_table), f"table {table} can't be dropped")
        return catalog_table

    def clones_of(self, table: TableId, location: str) -> Clones:
        """Return the registered shallow clones of a table whose newest versions refer to its files.

        One listing of the databases that may be listed, until there are 1,000 Lance tables, which are read.

        Args:
            table: the source.
            location: its location.

        Raises:
            ServiceUnavailableError: (17) the metastore, or the storage of the source, doesn't answer.
        """
        return self._search(table, location).in_listing()

    def check_not_written(self, tables: Sequence[PlannedTable]) -> None:
        """Check that nobody writes to the tables of a cascade; one request for each.

        A cascade deletes no data, so a storage that doesn't answer, or refuses to, doesn't stop it.

        Raises:
            ConcurrentModificationError: (14) somebody does.
        """
        unavailable: set[StoreId] = set()

        def check(table: PlannedTable) -> None:
            location = table.location or ""
            if location_fault(location):
                return
            files = Manifests(location, self.config.storage_options, is_optional=True)
            if files.store_id in unavailable:
                return
            try:
                self.location_of(CatalogTable(table.id, location))
                wait_for_writes(files, f"table {table.id} can't be dropped")
            except spec_errors.ConcurrentModificationError:
                raise
            except spec_errors.LanceNamespaceError as error:
                whole = isinstance(error, _OF_THE_STORE) and not is_local(location)
                if whole:
                    unavailable.add(files.store_id)
                others = " and the others in its store" if whole else ""
                log.warning("Table %s%s: whether others write there is unknown: %s", table.id, others, error)

        if tables:
            with ThreadPoolExecutor(min(_THREADS, len(tables)), thread_name_prefix="lance-cascade") as pool:
                list(pool.map(check, tables))

    @property
    def _listing(self) -> TableListing:
        return TableListing(self.metastore, self.is_only_declared, self.listings)

    def _new_catalog_table(
        self, table: TableId, location: str | None, properties: Mapping[str, str]
    ) -> CatalogTable:
        parameters = table_properties.new_table_parameters(properties, self.config.managed_by)
        if parameters[table_properties.MANAGED_BY] == table_properties.BY_IMPLEMENTATION:
            self.metastore.require_compare_and_set(table.namespace)
        given = None if location is None else check_location(location)
        return CatalogTable(table, as_uri(self._choose_location(table, given)), parameters)

    def _choose_location(self, table: TableId, given: str | None) -> str:
        database = table.namespace
        root = self.config.root
        folders = self.metastore.deletable_folders(database)
        if not folders and (root or not given):
            below = required_root(root, f"namespace {str(database)!r} of table {table.name!r}")
            folders = [self.metastore.default_location(database, below)]
        if not given and (fault := location_fault(folders[0])):
            raise spec_errors.InvalidInputError(
                f"table {table}: no location is given, and the location of its namespace {str(database)!r} "
                f"is invalid: {fault}; give a location"
            )
        chosen = given or default_layout.table_location(
            table.name, self.metastore.default_location(database, ""), folders
        )
        self.config.allowed.check(chosen, f"table {table}")
        self.stores.check(chosen, database, f"table {table}")
        around = default_layout.folder_around(chosen, folders)
        if around:
            log.warning(
                "Table %s: its location %s is inside %s, which is deleted as a whole if any client "
                "drops %s or its catalog with its data (DROP DATABASE ... CASCADE); store the "
                "table elsewhere: %s",
                table,
                chosen,
                shown_location(redact(around)),
                database,
                "omit the location, or choose another" if given else "choose a location in another bucket",
            )
        return chosen

    def _finish_last_commit(self, catalog_table: CatalogTable) -> None:
        # Without the catalog table, an interrupted commit is indistinguishable from a refused one.
        if (
            not table_properties.is_managed(catalog_table)
            or not catalog_table.location
            or location_fault(catalog_table.location)
        ):
            return
        try:
            location = self.location_of(catalog_table)
            ManagedVersions(catalog_table, Manifests(location, self.config.storage_options)).finish()
        except spec_errors.LanceNamespaceError as error:
            log.warning(
                "Table %s is removed from the catalog, although its last commit could not be finished: %s",
                catalog_table.id,
                error,
            )

    def _check_sole_owner(self, catalog_table: CatalogTable) -> Sequence[CatalogTable]:
        """Refuse to remove data at a location that overlaps another catalog table's.

        Any database of any catalog may hold the other table, so all are read: a drop is rare and final.

        Returns:
            The other Lance tables, which may be clones of this one, beginning with its namespace.
        """
        mine = ResolvedLocation(self.location_of(catalog_table))
        namespace = catalog_table.id.namespace
        others: list[CatalogTable] = []
        for other in self.metastore.table_locations():
            if str(other) == str(catalog_table.id):
                continue
            if ResolvedLocation(other.location).overlaps(mine):
                its = shown_location(redact(other.location))
                raise spec_errors.InvalidInputError(
                    f"table {catalog_table.id}: table {other} points to the same data: {its}, and this "
                    f"one to {catalog_table.location}; deregister one of them instead"
                )
            if other.is_lance and is_addressable(other.name):
                with contextlib.suppress(InvalidIdentifierError):  # invalid name of a database
                    others.append(
                        CatalogTable(NamespaceId.parse(other.database).table(other.name), other.location)
                    )
        return sorted(others, key=lambda other: other.id.namespace != namespace)

    def _check_no_clones(self, catalog_table: CatalogTable, others: Sequence[CatalogTable]) -> None:
        """Refuse to remove data that the newest version of another table refers to.

        Lance records a clone in the clone alone. Each table costs requests to its storage, so of a large
        metastore only some are read, beginning with its namespace.
        """
        if not others or self._files(catalog_table).newest() is None:
            return
        location = self.location_of(catalog_table)
        self._search(catalog_table.id, location).among(others).check_none(catalog_table.id)

    def _search(self, table: TableId, location: str) -> CloneSearch:
        return CloneSearch(self.metastore, self.config, self.stores, table, location, _SEARCHED)

    def _drop_unless_declared_again(self, catalog_table: CatalogTable) -> None:
        """Drop a catalog table after the removal of its data, which takes time."""
        try:
            now = self.metastore.get_table(catalog_table.id)
            if normalize(now.location or "") == normalize(catalog_table.location or ""):
                self.metastore.drop_table(now)
        except spec_errors.TableNotFoundError:
            log.info("Table %s: another client has dropped it meanwhile", catalog_table.id)

    def _check_not_enclosed(self, catalog_table: CatalogTable) -> None:
        location = self.location_of(catalog_table)
        options, allowed = self.config.storage_options, self.config.allowed
        check_not_enclosed(location, options, allowed, f"table {catalog_table.id}")

    def _check_no_former_writes(self, catalog_table: CatalogTable) -> None:
        """Refuse a location at which others still write to a dropped table, if the storage may be read."""
        location = self.location_of(catalog_table)
        files = Manifests(location, self.config.storage_options, is_optional=True)
        try:
            if leases_of(files) and files.newest() is None:
                wait_for_writes(files, f"table {catalog_table.id} can't be declared at {location}")
        except spec_errors.ConcurrentModificationError:
            raise
        except spec_errors.LanceNamespaceError as error:  # a declaration needs no access to the storage
            log.info("Table %s is declared without a look at its location: %s", catalog_table.id, error)

    def _replace(self, replaced: CatalogTable, new: CatalogTable) -> CatalogTable:
        """Replace a catalog table in place: a name without a table in between would fail its writers."""
        same = normalize(replaced.location or "") == normalize(new.location or "")
        to_metastore = table_properties.is_managed(new)
        if not same:
            wait_for_writes(self._files(replaced), f"table {new.id} can't be registered at another location")
        elif to_metastore and not table_properties.is_managed(replaced):
            AuthorityChange(self).give_to_metastore(new.id)
            replaced = self.metastore.get_table(new.id)
        gates = [] if to_metastore else gates_of(self._files(new))
        with self._closed_if_managed(new) if not same else contextlib.nullcontext():
            after = self._replaced_in_place(replaced, new)
        open_gates(self._files(new), gates)
        return after

    def _replaced_in_place(self, replaced: CatalogTable, new: CatalogTable) -> CatalogTable:
        def decide(found: CatalogTable) -> ParameterChange:
            authority = table_properties.MANAGED_BY
            if (found.location, found.parameters.get(authority)) != (
                replaced.location,
                replaced.parameters.get(authority),
            ):
                raise spec_errors.ConcurrentModificationError(
                    f"table {new.id}: another client changed it while it was registered; run it again"
                )
            self._finish_last_commit(found)
            parameters = self._at_newest(new).parameters
            conditional = table_properties.is_managed(found) or table_properties.is_managed(new)
            return ParameterChange(
                parameters,
                remove=[key for key in found.parameters if key not in (*parameters, *_OF_THE_SERVER)],
                expect=table_properties.unchanged(found) if conditional else None,
                columns=None if found.location == new.location or not found.columns else (),
                location=new.location,
            )

        for _ in range(_TRIES - 1):
            with contextlib.suppress(spec_errors.ConcurrentModificationError):
                return self.metastore.update_table(new.id, decide).table
        return self.metastore.update_table(new.id, decide).table

    @contextlib.contextmanager
    def _closed_if_managed(self, catalog_table: CatalogTable) -> Iterator[None]:
        """Keep the storage from deciding while the metastore becomes the authority of an existing dataset."""
        if not table_properties.is_managed(catalog_table):
            yield
            return
        files, token = self._files(catalog_table), uuid.uuid4().hex
        if files.newest() is None and not leases_of(files):
            yield  # nothing was written there
            return
        try:
            with closed_to_writes(files, token, f"table {catalog_table.id} can't be registered"):
                yield
        except spec_errors.LanceNamespaceError:
            open_gate(files, token)
            raise

    def _at_newest(self, catalog_table: CatalogTable) -> CatalogTable:
        """Return a catalog table with the storage's newest version if it is managed."""
        if not table_properties.is_managed(catalog_table):
            return catalog_table
        newest = str(self._files(catalog_table).newest() or 0)
        state = table_properties.new_state(newest)
        added = {table_properties.VERSION: newest, table_properties.STATE: state}
        return replace(catalog_table, parameters={**catalog_table.parameters, **added})

    def _files(self, catalog_table: CatalogTable) -> Manifests:
        return Manifests(self.location_of(catalog_table), self.config.storage_options)

    def _drop_catalog_table(self, catalog_table: CatalogTable) -> None:
        self._finish_last_commit(catalog_table)
        self.metastore.drop_table(catalog_table)

    def _replaceable(self, table: TableId, location: str) -> CatalogTable | None:
        """Return the catalog table that a registration replaces; None if there is none.

        Raises:
            InvalidInputError: (13) it isn't a Lance table.
        """
        try:
            catalog_table = self.metastore.get_table(table)
        except spec_errors.TableNotFoundError:
            return None
        if not table_properties.lost_table_type(catalog_table) and not self._lost_all_parameters(
            catalog_table, location
        ):
            table_properties.check_lance(catalog_table)
        return catalog_table

    def _lost_all_parameters(self, catalog_table: CatalogTable, location: str) -> bool:
        """Whether only its location shows that a catalog table belongs to the dataset stored there."""
        if catalog_table.parameters.get(table_properties.TABLE_TYPE) or not catalog_table.location:
            return False
        stored_at = self.location_of(catalog_table)
        if stored_at != Location.of(location):
            return False
        return object_store.latest_version(stored_at, self.config.storage_options) is not None


def _managed_by(catalog_table: CatalogTable) -> dict[str, str]:
    return {
        key: value for key, value in catalog_table.parameters.items() if key == table_properties.MANAGED_BY
    }
