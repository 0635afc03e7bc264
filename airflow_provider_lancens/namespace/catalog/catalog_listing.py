"""Walk through the tables of a catalog, by the operations that each implementation has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_lancens import spec_errors

_PAGE = 1000
MOST_READ = 1000
"""Tables that a search reads at most, those of the table's own namespace first; as in a metastore."""

Id = tuple[str, ...]
Call = Callable[[dict[str, Any]], Any]


@dataclass(slots=True)
class CatalogListing:
    """One walk through the tables of a catalog."""

    list_namespaces: Call
    list_tables: Call
    unknown: list[str] = field(default_factory=list)
    """What couldn't be listed, and why."""

    def others(self, table: Id) -> Iterator[Id]:
        """Iterate over the identifiers of all tables but one, beginning with those of its namespace.

        Args:
            table: the identifier of that table.

        Raises:
            ServiceUnavailableError: (17) the catalog doesn't answer.
        """
        own = table[:-1]
        for namespace in (own, *(one for one in self._below(()) if one != own)):
            for name in self._listed("tables", self.list_tables, namespace):
                if (*namespace, name) != table:
                    yield (*namespace, name)

    def _below(self, namespace: Id) -> Iterator[Id]:
        yield namespace
        for name in self._listed("namespaces", self.list_namespaces, namespace):
            yield from self._below((*namespace, name))

    def _listed(self, what: str, call: Call, namespace: Id) -> Iterator[str]:
        token: str | None = None
        request: dict[str, Any] = {"id": list(namespace), "limit": _PAGE}
        while True:
            try:
                page = call({**request, "page_token": token} if token else request)
            except (spec_errors.NamespaceNotFoundError, spec_errors.InvalidInputError):
                return  # dropped meanwhile, or without such a level
            except (spec_errors.UnsupportedOperationError, spec_errors.PermissionDeniedError) as error:
                if what == "tables":
                    self.unknown.append(f"the tables of {'$'.join(namespace) or 'the root'}: {error}")
                return
            yield from getattr(page, what)
            if not page.page_token or page.page_token == token:
                return
            token = page.page_token
