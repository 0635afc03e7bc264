"""Cascading drop of a namespace: first a plan, as data, then its execution.

Exactly the plan is executed. The namespace is read again first: tables that were created, replaced or moved
since the plan was made stop the drop before anything is changed; tables that are gone count as dropped.
Tables that aren't Lance stop a cascade unless the caller names them. Rerun an interrupted cascade: its plan
has the remaining tables.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import NamespaceId, TableId
from airflow_provider_lancens.namespace import table_properties
from airflow_provider_lancens.namespace.batch_reads import OF_THE_SERVER, BatchRead
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable, Metastore, Namespace

log = logging.getLogger(__name__)

_AT_ONCE = 100
"""Tables that are read again together, just before they are dropped."""
_NAMED_IN_A_MESSAGE = 10
_NAMED_IN_A_LINE = 100
_NAMED_IN_DATA = 1000


@dataclass(frozen=True, slots=True)
class ForeignTables:
    """Tables and views that aren't Lance, and that a cascade may drop nevertheless."""

    named: frozenset[TableId] = frozenset()
    any: bool = False
    """Whether the cascade may drop all of them."""

    def __contains__(self, table: TableId) -> bool:
        return self.any or table in self.named


@dataclass(frozen=True, slots=True)
class PlannedTable:
    """Table of a plan, with its state, which must not have changed when the plan is executed."""

    id: TableId
    is_lance: bool
    location: str | None = field(default=None, repr=False)
    created: int | None = None
    """See `CatalogTable.created`."""

    @classmethod
    def of(cls, table: CatalogTable) -> PlannedTable:
        """Return the plan's view of a catalog table."""
        return cls(table.id, table_properties.is_lance(table), table.location, table.created)

    def difference(self, found: PlannedTable) -> str | None:
        """Return how the table of this name differs from the planned one; None if it doesn't."""
        if found.created != self.created:
            return "recreated"
        if found.is_lance != self.is_lance:
            return "changed to a Lance table" if found.is_lance else "changed to a table that isn't Lance"
        return "moved to another location" if found.location != self.location else None


@dataclass(frozen=True, slots=True)
class CascadePlan:
    """Tables and namespaces that a cascade drops, in that order."""

    tables: tuple[PlannedTable, ...]
    namespaces: tuple[NamespaceId, ...]
    """Innermost first, the requested one last."""
    stored: Namespace = field(repr=False, compare=False)
    """The requested namespace as it was stored when the plan was made."""

    @property
    def target(self) -> NamespaceId:
        """The requested namespace."""
        return self.namespaces[-1]

    def check_empty(self) -> None:
        """Check that the namespace has neither tables nor namespaces, as a drop without a cascade does.

        Raises:
            NamespaceNotEmptyError: (3) it has; the message names them.
        """
        held = [*self.namespaces[:-1], *(table.id for table in self.tables)]
        if held:
            raise spec_errors.NamespaceNotEmptyError(
                f"namespace {self.target} is not empty: it contains {_named(held)}; allow a cascade, or drop "
                "them first"
            )

    @property
    def lance_tables(self) -> tuple[TableId, ...]:
        """Lance tables."""
        return tuple(table.id for table in self.tables if table.is_lance)

    @property
    def foreign_tables(self) -> tuple[TableId, ...]:
        """Tables and views that aren't Lance or can't be read: they stop the cascade unless allowed."""
        return tuple(table.id for table in self.tables if not table.is_lance)

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON values, with at most 1,000 names of each kind, and their counts."""
        named = {
            "namespaces": self.namespaces,
            "lance_tables": self.lance_tables,
            "foreign_tables": self.foreign_tables,
        }
        return {
            **{kind: [str(id_) for id_ in ids[:_NAMED_IN_DATA]] for kind, ids in named.items()},
            "lance_table_count": len(self.lance_tables),
            "foreign_table_count": len(self.foreign_tables),
        }

    def lines(self) -> tuple[str, ...]:
        """Return the plan as text for a log, in lines of at most a hundred names."""
        listed = {
            "Namespaces to drop": self.namespaces,
            "Lance tables to drop from the metastore": self.lance_tables,
            "Tables that aren't Lance": self.foreign_tables,
        }
        return tuple(line for kind, ids in listed.items() for line in _lines_of(kind, ids))


@dataclass(frozen=True, slots=True)
class Cascade:
    """Planner and executor of cascading drops."""

    metastore: Metastore
    check_tables: Callable[[Sequence[PlannedTable]], object] = len
    """Called with the Lance tables before any is dropped: refuses tables that others write to."""

    def plan(self, namespace: NamespaceId) -> CascadePlan:
        """Plan the drop of a namespace with its contents, at every depth; nothing is changed.

        Raises:
            NamespaceNotFoundError: (1) it doesn't exist.
        """
        stored = self.metastore.get_namespace(namespace)
        namespaces = (*self._descendants(namespace), namespace)
        tables: list[PlannedTable] = []
        for database in namespaces:
            tables += sorted(self._tables_of(database, namespace), key=lambda table: table.id.name)
        return CascadePlan(tuple(tables), namespaces, stored)

    def execute(self, plan: CascadePlan, allowed: ForeignTables) -> None:
        """Drop the plan's tables, then its namespaces, without deleting files, and nothing else.

        Raises:
            NamespaceNotFoundError: (1) the requested namespace doesn't exist any more.
            NamespaceNotEmptyError: (3) the plan has foreign tables that aren't allowed, or the namespace has
                changed since: it contains tables that the plan doesn't, or other ones of the same names.
            ConcurrentModificationError: (14) a table is being written to; nothing was dropped.
            LanceNamespaceError: a drop failed, with its own code; the message names what remains.
        """
        _check_allowed(plan, allowed)
        self._check_unchanged(plan)
        self._check_tables(plan)
        self._drop_tables(plan)
        for namespace in plan.namespaces:
            self._drop_namespace(namespace, plan)

    def check(self, plan: CascadePlan, allowed: ForeignTables) -> None:
        """Check whether `execute` would refuse a plan that was just made; nothing is changed.

        Raises:
            NamespaceNotEmptyError: (3) the plan has foreign tables that aren't allowed.
            ConcurrentModificationError: (14) a table is being written to.
        """
        _check_allowed(plan, allowed)
        self._check_tables(plan)

    def _check_tables(self, plan: CascadePlan) -> None:
        self.check_tables([table for table in plan.tables if table.is_lance])

    def _check_unchanged(self, plan: CascadePlan) -> None:
        """Read the namespace again, without holding a second plan of it."""
        namespaces = (*self._descendants(plan.target), plan.target)
        planned = frozenset(plan.namespaces)
        missing = {table.id: table for table in plan.tables}
        added = [f"{namespace} (a new namespace)" for namespace in namespaces if namespace not in planned]
        for database in namespaces:
            changed = []
            for table in self._tables_of(database, plan.target):
                known = missing.pop(table.id, None)
                if difference := known.difference(table) if known else "new":
                    changed.append(f"{table.id} ({difference})")
            added += sorted(changed)
        if added:
            raise spec_errors.NamespaceNotEmptyError(
                f"namespace {plan.target}: it has changed since the drop was planned, nothing was dropped: "
                f"{_named(added)}; run it again for a new plan"
            )
        if missing:
            log.info(
                "Namespace %s: another client already dropped planned tables: %s",
                plan.target,
                _named(missing),
            )

    def _tables_of(self, namespace: NamespaceId, target: NamespaceId) -> Iterator[PlannedTable]:
        """Iterate over the tables of a namespace, none if it is a catalog, in any order."""
        if len(namespace) != self.metastore.namespace_levels:
            return
        try:
            yield from _planned(namespace, self.metastore.scan_tables(namespace))
        except spec_errors.NamespaceNotFoundError:
            if namespace == target:
                raise
            # A nested namespace was dropped concurrently, as tables may be.

    def _drop_tables(self, plan: CascadePlan) -> None:
        left: dict[TableId, spec_errors.LanceNamespaceError] = {}
        for database, planned in groupby(plan.tables, lambda table: table.id.namespace):
            tables = list(planned)
            for start in range(0, len(tables), _AT_ONCE):
                some = tables[start : start + _AT_ONCE]
                last = next(reversed(left.values()), None)
                if isinstance(last, OF_THE_SERVER):
                    left |= {table.id: last for table in some}  # these would fail in the same way
                else:
                    left |= self._drop_unchanged(database, some)
        if left:
            first = next(iter(left.values()))
            raise type(first)(
                f"namespace {plan.target}: the drop was interrupted; it still exists, and so do "
                f"{_named(left)}; run it again to finish. First error: {first}"
            ) from first

    def _drop_unchanged(
        self, database: NamespaceId, tables: Sequence[PlannedTable]
    ) -> dict[TableId, spec_errors.LanceNamespaceError]:
        """Drop tables unless they have changed since the plan; return the error of each that remains."""
        try:
            reads = list(self.metastore.get_tables(database, [table.id.name for table in tables]))
        except spec_errors.NamespaceNotFoundError:
            return {}  # dropped concurrently, with its tables
        except spec_errors.LanceNamespaceError as error:
            return {table.id: error for table in tables}
        current = {now.id: now for now in _planned(database, reads)}
        left: dict[TableId, spec_errors.LanceNamespaceError] = {}
        for table in tables:
            if table.id in current and (difference := table.difference(current[table.id])):
                left[table.id] = spec_errors.NamespaceNotEmptyError(
                    f"table {table.id} was {difference} since the plan"
                )
        read = {now.id: now for batch in reads for now in batch.tables}
        unchanged = [table.id for table in tables if table.id in current and table.id not in left]
        failed = self.metastore.drop_tables(
            database, [read.get(table, CatalogTable(table)) for table in unchanged]
        )
        return left | {database.table(name): error for name, error in failed.items()}

    def _descendants(self, namespace: NamespaceId) -> Iterator[NamespaceId]:
        if len(namespace) >= self.metastore.namespace_levels:
            return
        for name in sorted(self.metastore.list_namespaces(namespace)):
            child = namespace.child(name)
            yield from self._descendants(child)
            yield child

    def _drop_namespace(self, namespace: NamespaceId, plan: CascadePlan) -> None:
        try:
            self.metastore.drop_namespace(namespace)
        except spec_errors.NamespaceNotFoundError:
            return  # dropped concurrently
        except spec_errors.NamespaceNotEmptyError as error:
            names = self._created_in(namespace, plan)
            if not names:  # what was added has no valid identifier; the server's message says more
                raise
            raise spec_errors.NamespaceNotEmptyError(
                f"namespace {namespace}: it was not dropped, since another client added to it while the "
                f"planned tables were dropped: {_named(names)}; run it again for a new plan"
            ) from error

    def _created_in(self, namespace: NamespaceId, plan: CascadePlan) -> Sequence[str]:
        if len(namespace) == self.metastore.namespace_levels:
            return sorted(self.metastore.list_tables(namespace))
        names = sorted(self.metastore.list_namespaces(namespace))
        planned = frozenset(plan.namespaces)
        return [name for name in names if namespace.child(name) not in planned]


def _check_allowed(plan: CascadePlan, allowed: ForeignTables) -> None:
    forbidden = [table for table in plan.foreign_tables if table not in allowed]
    if forbidden:
        raise spec_errors.NamespaceNotEmptyError(
            f"namespace {plan.target}: these tables are not Lance tables and would also be "
            f"dropped: {_named(forbidden)}; allow them by name, or move them elsewhere"
        )


def _planned(database: NamespaceId, reads: Iterable[BatchRead]) -> Iterator[PlannedTable]:
    """Iterate over the plan's views of tables; of each batch, nothing else is kept."""
    for read in reads:
        yield from map(PlannedTable.of, read.tables)
        yield from (PlannedTable(database.table(name), is_lance=False) for name in read.failures)


def _lines_of(kind: str, ids: Sequence[object]) -> Iterator[str]:
    if len(ids) <= _NAMED_IN_A_LINE:
        yield f"{kind}: {', '.join(map(str, ids)) or 'none'}"
        return
    for start in range(0, len(ids), _NAMED_IN_A_LINE):
        some = ids[start : start + _NAMED_IN_A_LINE]
        yield f"{kind} ({start + 1} to {start + len(some)} of {len(ids)}): {', '.join(map(str, some))}"


def _named(things: Collection[object]) -> str:
    more = len(things) - _NAMED_IN_A_MESSAGE
    shown = ", ".join(map(str, islice(things, _NAMED_IN_A_MESSAGE)))
    return f"{shown} and {more} more" if more > 0 else shown
