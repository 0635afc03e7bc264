"""The small protocol that a backend fulfils, on plain views.

The operations of the specification are written once, in `operations`, over this protocol. What a
backend reads comes back as frozen views; what it changes goes through verbs that name the
change, so the raw Thrift or Glue object never leaves the backend and no foreign field is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from airflow_provider_lancens.identifiers import NamespaceId, TableId

if TYPE_CHECKING:
    from lance_namespace.errors import LanceNamespaceError


@dataclass(frozen=True, slots=True)
class Namespace:
    """A catalog or a database as the metastore holds it."""

    id: NamespaceId
    location: str | None = None
    description: str | None = None
    owner: str | None = None
    owner_type: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    """The free ones only: what the metastore holds in a field of its own stands in the fields above."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table's entry as the metastore holds it, Lance or not."""

    id: TableId
    location: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    external: bool = True
    """Whether the metastore leaves its files alone."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What a server says of itself, by reading alone."""

    kind: str
    """In words, as ``Hive Metastore``."""
    api_version: str | None = None
    """What the server calls it; None for a service without one."""
    catalog: str | None = None
    """The catalog in use, in words; None where there are none."""
    compare_and_set: bool | None = None
    """Whether it checks expectations; None where that is not known, since only a probe tells."""

    @property
    def words(self) -> str:
        """All of it, for a person."""
        checks = {
            None: "not probed (the first managed table does)",
            True: "yes",
            False: "no: tables managed by the metastore are refused",
        }
        found = {
            "API version": self.api_version,
            "catalog": self.catalog,
            "compare-and-set": checks[self.compare_and_set],
        }
        return ", ".join([self.kind, *(f"{name} {value}" for name, value in found.items() if value)])


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a conditional update demands of one parameter, checked by the server itself."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Change:
    """A change of an entry's parameters, all at once."""

    set: Mapping[str, str]
    remove: Collection[str] = ()
    expect: Expectation | None = None
    """Where given, the server makes the change only if this holds; else nobody can say what it overwrote."""

    def applied_to(self, parameters: Mapping[str, str]) -> dict[str, str]:
        """The parameters as they then stand; those that the change doesn't name stay."""
        return {**{k: v for k, v in parameters.items() if k not in self.remove}, **self.set}


class Metastore(Protocol):
    """The verbs of a metastore. Every method is thread-safe and opens what it needs.

    Errors are `lance_namespace.errors`: NamespaceNotFoundError (1), NamespaceAlreadyExistsError
    (2), NamespaceNotEmptyError (3), TableNotFoundError (4), TableAlreadyExistsError (5),
    ConcurrentModificationError (14), and the transport's (15, 16, 17, 21).
    """

    @property
    def namespace_levels(self) -> int:
        """How many levels lie between the root and a table: 1 on Hive 2 and Glue, 2 on Hive 3."""

    @property
    def fingerprint(self) -> str:
        """Which server this is, without any secret: the same for the same properties."""

    def server_info(self) -> ServerInfo:
        """Ask the server who it is; nothing is changed and nothing is probed."""

    def check_name(self, name: str) -> None:
        """Refuse a name that the server can't hold, before anything is sent.

        Raises:
            InvalidInputError: (13) saying the reason.
        """

    def default_location(self, namespace: NamespaceId, root: str) -> str:
        """Where a namespace lies under `root` when its creator says nothing."""

    def create_namespace(self, namespace: Namespace) -> None:
        """Create it; 2 where it exists, 1 where its parent doesn't."""

    def get_namespace(self, namespace: NamespaceId) -> Namespace:
        """Read it; 1 where it doesn't exist."""

    def list_namespaces(self, parent: NamespaceId) -> Sequence[str]:
        """The names one level below, in any order; 1 where the parent doesn't exist."""

    def check_droppable(self, namespace: NamespaceId) -> None:
        """Refuse what the server never drops, before a cascade touches anything in it; 13."""

    def drop_namespace(self, namespace: NamespaceId) -> None:
        """Drop an empty namespace and no file with it; 3 where it isn't empty."""

    def create_table(self, table: Table) -> None:
        """Create an external table's entry; 5 where a table exists, 1 where its parent doesn't."""

    def get_table(self, table: TableId) -> Table:
        """Read an entry in one call; 4 (or 1) where it doesn't exist."""

    def get_tables(self, namespace: NamespaceId, names: Collection[str]) -> Sequence[Table]:
        """Read many entries of one namespace in batches; those that are gone are left out."""

    def list_tables(self, namespace: NamespaceId) -> Sequence[str]:
        """The names of all tables and views, Lance or not; 1 where the namespace doesn't exist."""

    def list_lance_tables(self, namespace: NamespaceId) -> Sequence[str]:
        """The names of the Lance tables; 1 where the namespace doesn't exist."""

    def update_table(self, table: TableId, decide: Callable[[Table], Change | None]) -> Table:
        """Change parameters and leave everything else, foreign fields too, as it is.

        Args:
            table: whose.
            decide: given the entry as it stands, says what to change, None for nothing; asked again where it
                moved meanwhile. What it raises ends the update, and nothing is changed.

        Returns:
            The entry as it stands then.

        Raises:
            ConcurrentModificationError: (14) the expectation didn't hold on the server.
            UnsupportedOperationError: (0) there is one, and the server can't check it.
        """

    def require_compare_and_set(self, namespace: NamespaceId) -> None:
        """Refuse (0) a server that doesn't check expectations, found by a probe in this namespace."""

    def rename_table(self, table: TableId, to: TableId) -> None:
        """Give an entry another name, in another namespace too where the server can."""

    def drop_table(self, table: TableId) -> None:
        """Drop an entry and no file with it; 4 where it doesn't exist."""

    def drop_tables(
        self, namespace: NamespaceId, names: Collection[str]
    ) -> Mapping[str, LanceNamespaceError]:
        """Drop many entries and no file with them.

        Returns:
            The names that stay, each with its error; what was gone already counts as dropped.
        """

    def close(self) -> None:
        """Give up idle connections."""
