"""Protocol that a metastore backend implements, and the data classes it uses.

The operations of the specification are implemented once, in `operations`, over this protocol. A backend
returns frozen views and has one method per kind of change, so the raw Thrift or Glue object never leaves the
backend and no foreign field is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from airflow_provider_lancens.identifiers import DELIMITER, NamespaceId, TableId
from airflow_provider_lancens.namespace.locations import normalize

if TYPE_CHECKING:
    from lance_namespace.errors import LanceNamespaceError

    from airflow_provider_lancens.namespace.batch_reads import BatchRead


@dataclass(frozen=True, slots=True)
class Namespace:
    """Catalog or database as stored in the metastore."""

    id: NamespaceId
    location: str | None = field(default=None, repr=False)
    description: str | None = None
    owner: str | None = None
    owner_type: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Custom properties only; what the metastore stores in dedicated fields is in the fields above."""


class Column(NamedTuple):
    """Column as a catalog table describes it, with Hive's name of its type, such as ``array<float>``."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """Catalog table as stored in the metastore, Lance or not.

    The repr omits its location and parameters: any client may have written a secret there. What only the
    server knows isn't compared, so that the table that was sent equals the table that is read.
    """

    id: TableId
    location: str | None = field(default=None, repr=False)
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)
    external: bool = True
    """Whether the table is external, so that the metastore doesn't manage its files."""
    created: int | None = field(default=None, compare=False)
    """When the server created it, in seconds since 1970; differs for a later table of the same name."""
    columns: tuple[Column, ...] = field(default=(), repr=False, compare=False)
    """The columns that DESCRIBE shows; Lance itself never reads them."""


@dataclass(frozen=True, slots=True)
class TableLocation:
    """Location of a catalog table, Lance or not."""

    database: str
    """Identifier of the database; it starts with the catalog if this namespace can't address the catalog."""
    name: str
    """Name of the table; other clients may use names that no identifier can contain."""
    location: str
    is_lance: bool

    def __str__(self) -> str:
        return f"{self.database}{DELIMITER}{self.name}"


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """Description of a server, obtained by read-only calls."""

    kind: str
    """Display name, such as ``Hive Metastore``."""
    api_version: str | None = None
    """API version as the server reports it; None for a service without one."""
    catalog: str | None = None
    """Display name of the catalog in use; None where the server has no catalogs."""
    compare_and_set: bool | None = None
    """Whether the server supports compare-and-set; None where unknown, since only a probe can tell."""

    @property
    def summary(self) -> str:
        """Human-readable summary."""
        checks = {
            None: "not probed yet (done for the first managed table)",
            True: "yes",
            False: "no, so tables with managed_by=impl are refused",
        }
        details = {
            "API version": self.api_version,
            "catalog": self.catalog,
            "compare-and-set": checks[self.compare_and_set],
        }
        return ", ".join([self.kind, *(f"{name} {value}" for name, value in details.items() if value)])


@dataclass(frozen=True, slots=True)
class Expectation:
    """Expected value of one parameter in a conditional update, checked by the server."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class ParameterChange:
    """Atomic change of a catalog table's parameters, and of the columns that it describes."""

    set: Mapping[str, str]
    remove: Collection[str] = ()
    expect: Expectation | None = None
    """The server applies the change only if this holds; if None, a concurrent change may be lost."""
    columns: tuple[Column, ...] | None = None
    """The columns that the catalog table describes; None keeps them."""
    location: str | None = None
    """The location; None keeps it."""

    def applied_to(self, parameters: Mapping[str, str]) -> dict[str, str]:
        """Return the parameters after the change; parameters that it doesn't name are kept."""
        return {**{k: v for k, v in parameters.items() if k not in self.remove}, **self.set}


@dataclass(frozen=True, slots=True)
class TableUpdate:
    """Result of an update of a catalog table."""

    table: CatalogTable
    """The catalog table after the update."""
    changed: bool
    """Whether the table was changed; false if no change was needed."""


class Metastore(Protocol):
    """Operations of a metastore. Every method is thread-safe and opens connections as needed.

    Errors are `lance_namespace.errors`. Any method may raise the transport's: PermissionDeniedError (15),
    UnauthenticatedError (16), ServiceUnavailableError (17), ThrottlingError (21).
    """

    @property
    def namespace_levels(self) -> int:
        """Number of namespace levels between the root and a table: 1 on Hive 2 and Glue, 2 on Hive 3."""

    @property
    def fingerprint(self) -> str:
        """Identity of the server, without any secret: the same for the same properties."""

    def server_info(self) -> ServerInfo:
        """Describe the server by read-only calls; nothing is changed and nothing is probed."""

    def check_name(self, name: str) -> None:
        """Refuse a name that the server can't store, before anything is sent.

        Raises:
            InvalidInputError: (13) the name is invalid; the message says why.
        """

    def default_location(self, namespace: NamespaceId, root: str) -> str:
        """Return the location of a namespace under `root` when none is given."""

    def create_namespace(self, namespace: Namespace) -> None:
        """Create a catalog or a database.

        Raises:
            NamespaceAlreadyExistsError: (2) it exists.
            NamespaceNotFoundError: (1) its parent doesn't exist.
        """

    def get_namespace(self, namespace: NamespaceId) -> Namespace:
        """Read a catalog or a database.

        Raises:
            NamespaceNotFoundError: (1) it doesn't exist.
        """

    def deletable_folders(self, database: NamespaceId) -> Sequence[str]:
        """Return the folders that are deleted if a client drops the database, or its catalog, with all data.

        The database's own location comes first; empty where it has no location.

        Raises:
            NamespaceNotFoundError: (1) the database doesn't exist.
        """

    def list_namespaces(self, parent: NamespaceId) -> Sequence[str]:
        """List the names one level below, in any order.

        Raises:
            NamespaceNotFoundError: (1) the parent doesn't exist.
        """

    def check_droppable(self, namespace: NamespaceId) -> None:
        """Refuse a namespace that the server never drops, before a cascade changes anything in it.

        Raises:
            InvalidInputError: (13) the server never drops it.
        """

    def drop_namespace(self, namespace: NamespaceId) -> None:
        """Drop an empty namespace without deleting files.

        Raises:
            NamespaceNotEmptyError: (3) it isn't empty.
        """

    def create_table(self, table: CatalogTable) -> None:
        """Create an external catalog table.

        Raises:
            TableAlreadyExistsError: (5) a table of that name exists.
            NamespaceNotFoundError: (1) its parent doesn't exist.
        """

    def get_table(self, table: TableId) -> CatalogTable:
        """Read a catalog table in one call.

        Raises:
            TableNotFoundError: (4) it doesn't exist.
            NamespaceNotFoundError: (1) its namespace doesn't exist; some servers raise 4 for that, too.
        """

    def get_tables(
        self, namespace: NamespaceId, names: Collection[str], *, columns: bool = True
    ) -> Iterator[BatchRead]:
        """Read many catalog tables of one namespace lazily, in batches; missing tables are omitted.

        Args:
            namespace: the namespace.
            names: names of the tables.
            columns: whether the caller needs the columns; if not, they may be left out.

        Raises:
            NamespaceNotFoundError: (1) the namespace doesn't exist; on some servers all tables are omitted.
        """

    def hides_missing_tables(self, namespace: NamespaceId) -> bool:
        """Whether the server says of a table that doesn't exist that access to it is denied.

        AWS does to credentials without permissions on all tables of a database, and says the same of a table
        that exists. Of a database that these credentials may not read either, the answer is no:
        no declaration of a table would change what the server says.

        Args:
            namespace: the database, of one of whose tables the server has said so.
        """

    def scan_tables(self, namespace: NamespaceId, *, lance_only: bool = False) -> Iterator[BatchRead]:
        """Read all tables and views of one namespace lazily, in batches, in any order.

        Args:
            namespace: the namespace.
            lance_only: the caller needs only Lance tables, so others may be left out.

        Raises:
            NamespaceNotFoundError: (1) the namespace doesn't exist.
        """

    def list_tables(self, namespace: NamespaceId) -> Sequence[str]:
        """List the names of all tables and views, Lance or not.

        Raises:
            NamespaceNotFoundError: (1) the namespace doesn't exist.
        """

    def list_lance_tables(self, namespace: NamespaceId) -> Sequence[str]:
        """List the names of the Lance tables.

        Raises:
            NamespaceNotFoundError: (1) the namespace doesn't exist.
        """

    def table_locations(self) -> Iterator[TableLocation]:
        """Iterate over the locations of all tables of the server, in every catalog, addressable or not."""

    def update_table(
        self, table: TableId, decide: Callable[[CatalogTable], ParameterChange | None]
    ) -> TableUpdate:
        """Change parameters and leave everything else unchanged, including foreign fields.

        Args:
            table: the table to update.
            decide: given the current catalog table, returns the change, or None for no change; called again
                if the table was changed meanwhile. An exception it raises ends the update without a change.

        Returns:
            The catalog table after the update, and whether the decision that was applied changed it.

        Raises:
            ConcurrentModificationError: (14) the expectation didn't hold on the server.
            UnsupportedOperationError: (0) the change has an expectation, and the server can't check it.
        """

    def require_compare_and_set(self, namespace: NamespaceId) -> None:
        """Probe in this namespace whether the server supports compare-and-set, and refuse it if not.

        Raises:
            UnsupportedOperationError: (0) the server doesn't check expectations.
        """

    def rename_table(self, table: TableId, to: TableId) -> None:
        """Rename a catalog table, also into another namespace where the server supports that."""

    def drop_table(self, table: CatalogTable) -> None:
        """Drop a catalog table without deleting files.

        Args:
            table: the table as it was read: after a lost reply, another one of its name is no reason to drop
                it again.

        Raises:
            TableNotFoundError: (4) it doesn't exist.
        """

    def drop_tables(
        self, namespace: NamespaceId, tables: Collection[CatalogTable]
    ) -> Mapping[str, LanceNamespaceError]:
        """Drop many catalog tables without deleting files.

        Args:
            namespace: their namespace.
            tables: the tables as they were read, see `drop_table`; without a location and a time of creation
                if they couldn't be read.

        Returns:
            The error of each table that couldn't be dropped, by name; a missing table counts as dropped.
        """

    def close(self) -> None:
        """Close idle connections."""


def table_matches(found: CatalogTable, wanted: CatalogTable) -> bool:
    """Whether a catalog table has everything that was requested, so that its creation took effect."""
    same_place = normalize(found.location or "") == normalize(wanted.location or "")
    return same_place and contains(found.parameters, wanted.parameters)


def is_dropped(table: CatalogTable, found: CatalogTable | None) -> bool:
    """Whether a catalog table is gone, also if another table of its name has been created since.

    Args:
        table: the table as it was read before; if only its name is known, any table of that name is it.
        found: the table of its name now.
    """
    if found is None:
        return True
    if table.created is None and table.location is None:
        return False
    if found.created != table.created:
        return True
    return normalize(found.location or "") != normalize(table.location or "")


def contains(parameters: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether the parameters contain all of `wanted`."""
    return wanted.items() <= parameters.items()


def change_applied(table: CatalogTable, change: ParameterChange) -> bool:
    """Whether a change of a catalog table took effect."""
    gone = all(key not in table.parameters for key in change.remove if key not in change.set)
    described = change.columns is None or change.columns == table.columns
    moved = change.location is None or normalize(table.location or "") == normalize(change.location)
    return gone and described and moved and contains(table.parameters, change.set)
