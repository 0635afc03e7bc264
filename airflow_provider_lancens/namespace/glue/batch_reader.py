"""Reads of many catalog tables of a database with few calls."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from itertools import islice

from lance_namespace.errors import LanceNamespaceError, NamespaceNotFoundError

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace.batch_reads import OF_THE_SERVER, BatchRead, read_one_by_one
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable

log = logging.getLogger(__name__)


class GlueBatchReader:
    """Choice between a call per table and reading pages, based on earlier reads of a database.

    The first read of many fetches pages until it has all requested tables, but no more pages than single
    calls would have been: so it costs at most twice the cheaper way, and the next ones cost just that.
    """

    def __init__(self) -> None:
        """Start without earlier reads."""
        self._pages: dict[NamespaceId, int] = {}

    def read(
        self,
        namespace: NamespaceId,
        names: Collection[str],
        read_table: Callable[[str], CatalogTable | None],
        pages: Callable[[], Iterator[list[CatalogTable]]],
    ) -> Iterator[BatchRead]:
        """Read the named tables lazily; tables that don't exist are omitted.

        Args:
            namespace: the database.
            names: names of the tables, in lower case.
            read_table: reads one table by one call; None if it doesn't exist.
            pages: reads the database lazily, page by page.
        """
        left = dict.fromkeys(names)
        count = len(left)
        if count > self._pages.get(namespace, 1):
            try:
                yield from self._turn_pages(namespace, left, pages())
            except (NamespaceNotFoundError, *OF_THE_SERVER):
                raise
            except LanceNamespaceError as error:
                log.debug("Reading tables of %s one by one, since its pages fail: %s", namespace, error)
        yield from read_one_by_one(left, read_table, server_answers=len(left) < count)

    def _turn_pages(
        self, namespace: NamespaceId, left: dict[str, None], pages: Iterator[list[CatalogTable]]
    ) -> Iterator[BatchRead]:
        """Read pages until all tables are found, or until as many are read; what is found leaves `left`."""
        most, turned = len(left), 0
        for page in islice(pages, most):
            turned += 1
            requested = [table for table in page if table.id.name in left]
            for table in requested:
                del left[table.id.name]
            yield BatchRead(requested)
            if not left:
                break
        self._pages[namespace] = max(1, turned)
        if turned < most:
            left.clear()  # there are no more pages, so these tables don't exist
