"""Dropping a namespace with all it holds: first the plan, as data, then the drops it names.

Tables that aren't Lance stop a cascade unless the caller names them. A cascade that was
interrupted is run again: it plans what is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lance_namespace.errors import (
    LanceNamespaceError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
)

from airflow_provider_lancens.identifiers import NamespaceId, TableId
from airflow_provider_lancens.namespace.metastore import Metastore

ANY = "*"
_NAMED_IN_A_MESSAGE = 10


@dataclass(frozen=True, slots=True)
class CascadePlan:
    """What a cascade would drop, in the order in which it would."""

    lance_tables: tuple[TableId, ...]
    foreign_tables: tuple[TableId, ...]
    """Tables and views that aren't Lance: they stop the cascade unless allowed."""
    namespaces: tuple[NamespaceId, ...]
    """Innermost first; the one that was asked for last."""

    def forbidden(self, allowed: frozenset[str]) -> tuple[TableId, ...]:
        """The foreign tables that `allowed` doesn't name."""
        if ANY in allowed:
            return ()
        return tuple(table for table in self.foreign_tables if str(table) not in allowed)


@dataclass(frozen=True, slots=True)
class Cascade:
    """Plans a cascade over a metastore, and carries a plan out."""

    metastore: Metastore

    def plan(self, namespace: NamespaceId) -> CascadePlan:
        """Read what `namespace` holds, at every depth; nothing is changed.

        Raises:
            NamespaceNotFoundError: (1) it doesn't exist.
        """
        namespaces = (*self._descendants(namespace), namespace)
        lance: list[TableId] = []
        foreign: list[TableId] = []
        for database in namespaces:
            if len(database) != self.metastore.namespace_levels:
                continue
            try:
                ours, theirs = self._tables(database)
            except NamespaceNotFoundError:
                if database == namespace:
                    raise
                continue  # dropped by somebody else meanwhile, as may be all of its tables
            lance += [database.table(name) for name in ours]
            foreign += [database.table(name) for name in theirs]
        return CascadePlan(tuple(lance), tuple(foreign), namespaces)

    def execute(self, plan: CascadePlan, allowed: frozenset[str]) -> None:
        """Drop the plan's tables, then its namespaces; no file goes with them.

        Raises:
            NamespaceNotEmptyError: (3) the plan holds foreign tables that `allowed` doesn't name.
            LanceNamespaceError: a drop failed, with its own code; the message names what stays.
        """
        forbidden = plan.forbidden(allowed)
        if forbidden:
            raise NamespaceNotEmptyError(
                f"namespace {plan.namespaces[-1]}: these tables are not Lance and would be dropped too: "
                f"{_named(forbidden)}; allow them by name, or move them away"
            )
        self._drop_tables(plan)
        for namespace in plan.namespaces:
            self._drop_namespace(namespace)

    def _tables(self, database: NamespaceId) -> tuple[Sequence[str], Sequence[str]]:
        names = sorted(self.metastore.list_tables(database))
        lance = frozenset(self.metastore.list_lance_tables(database)) if names else frozenset()
        others = [name for name in names if name not in lance]
        if others:
            # A Lance table that was dropped between the two lists is in the first alone.
            there = frozenset(self.metastore.list_tables(database))
            others = [name for name in others if name in there]
        return [name for name in names if name in lance], others

    def _drop_tables(self, plan: CascadePlan) -> None:
        left: dict[TableId, LanceNamespaceError] = {}
        for database in plan.namespaces:
            tables = [t for t in (*plan.lance_tables, *plan.foreign_tables) if t.namespace == database]
            if tables:
                failed = self.metastore.drop_tables(database, [table.name for table in tables])
                left.update({database.table(name): error for name, error in failed.items()})
        if left:
            first = next(iter(left.values()))
            raise type(first)(
                f"namespace {plan.namespaces[-1]}: dropping it stopped; it stays, and so do "
                f"{_named(tuple(left))}; run it again to finish. First cause: {first}"
            ) from first

    def _descendants(self, namespace: NamespaceId) -> Iterator[NamespaceId]:
        if len(namespace) >= self.metastore.namespace_levels:
            return
        for name in sorted(self.metastore.list_namespaces(namespace)):
            child = namespace.child(name)
            yield from self._descendants(child)
            yield child

    def _drop_namespace(self, namespace: NamespaceId) -> None:
        try:
            self.metastore.drop_namespace(namespace)
        except NamespaceNotFoundError:
            return  # dropped by somebody else meanwhile


def _named(tables: tuple[TableId, ...]) -> str:
    shown = ", ".join(str(table) for table in tables[:_NAMED_IN_A_MESSAGE])
    more = len(tables) - _NAMED_IN_A_MESSAGE
    return f"{shown} and {more} more" if more > 0 else shown
