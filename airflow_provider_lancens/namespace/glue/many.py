"""Many entries of a database, read by the fewest calls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace.glue.calls import PAGE
from airflow_provider_lancens.namespace.metastore import Table


class ManyTables:
    """Chooses between a call for each entry and all pages, by what earlier reads of a database took.

    The first read of many turns pages until it has what it wants, but no more pages than single calls
    would have been: so it costs at most twice the better way, and the next ones cost just that.
    """

    def __init__(self) -> None:
        """Know no database yet."""
        self._pages: dict[NamespaceId, int] = {}

    def read(
        self,
        namespace: NamespaceId,
        names: Collection[str],
        one: Callable[[str], Table | None],
        all_of_them: Callable[[], Iterable[Table]],
    ) -> Sequence[Table]:
        """Read these entries; those that are gone are left out.

        Args:
            namespace: the database.
            names: which, in lower case.
            one: reads one entry by one call; None where it is gone.
            all_of_them: reads the database page by page, as its entries are asked for.
        """
        found: dict[str, Table] = {}
        if len(names) > self._pages.get(namespace, 1):
            found, is_complete = self._turn_pages(namespace, names, all_of_them())
            if is_complete:
                return list(found.values())
        singles = (one(name) for name in names if name not in found)
        return [*found.values(), *(entry for entry in singles if entry)]

    def _turn_pages(
        self, namespace: NamespaceId, names: Collection[str], entries: Iterable[Table]
    ) -> tuple[dict[str, Table], bool]:
        found: dict[str, Table] = {}
        count = 0
        is_complete = True
        for count, entry in enumerate(entries, 1):
            if entry.id.name in names:
                found[entry.id.name] = entry
            if len(found) == len(names):
                break
            if count >= PAGE * len(names):
                is_complete = False
                break
        self._pages[namespace] = max(1, -(-count // PAGE))
        return found, is_complete
