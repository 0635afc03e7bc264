"""Lists of names that are kept between the pages of a listing.

A metastore has no sorted pages: it returns all names for each of them. Listing N names by pages would
therefore transfer N * N / limit names; with a kept list, they are transferred once.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace.paging import Page, PageRequest

_SMALLEST = 1000
"""Names of the smallest list that is kept: a shorter one is read again for each page, so it is current."""
_LISTS = 4
_TIMES_AS_LONG = 10.0
"""A list is kept this many times as long as it took to read: reading takes a tenth of the time at most."""
_LONGEST = 300.0


class ListingKey(NamedTuple):
    """What is listed."""

    kind: str
    namespace: NamespaceId


@dataclass(frozen=True, slots=True)
class _Listing:
    names: Sequence[str]
    ends: float


class RecentListings:
    """The last lists of names, for the pages that follow; thread-safe."""

    def __init__(self) -> None:
        """Start without lists."""
        self._listings: OrderedDict[ListingKey, _Listing] = OrderedDict()
        self._lock = threading.Lock()

    def names(
        self, key: ListingKey, request: PageRequest, read: Callable[[], Iterable[str]]
    ) -> Sequence[str]:
        """Return all names, sorted and without repetitions.

        The first page, and a request for everything, always read them; a further page takes the names
        that the page before it read, if that is not long ago and they are many.

        Args:
            key: what is listed.
            request: the requested page.
            read: reads all names, in any order.
        """
        if request.after is not None and (known := self._known(key)) is not None:
            return known
        started = time.monotonic()
        names = sorted(set(read()))
        ended = time.monotonic()
        if request.limit is not None and len(names) >= _SMALLEST:
            self._keep(key, _Listing(names, ended + min(_LONGEST, _TIMES_AS_LONG * (ended - started))))
        return names

    def page(self, key: ListingKey, request: PageRequest, read: Callable[[], Iterable[str]]) -> Page:
        """Return the requested page of the names; after the last one, none are kept."""
        page = request.cut(self.names(key, request, read))
        if page.token is None:
            self.forget(key)
        return page

    def forget(self, key: ListingKey) -> None:
        """Keep a list no longer."""
        with self._lock:
            self._listings.pop(key, None)

    def _known(self, key: ListingKey) -> Sequence[str] | None:
        with self._lock:
            self._forget_expired()
            listing = self._listings.get(key)
            return listing.names if listing else None

    def _keep(self, key: ListingKey, listing: _Listing) -> None:
        with self._lock:
            self._forget_expired()
            self._listings.pop(key, None)
            self._listings[key] = listing
            while len(self._listings) > _LISTS:
                self._listings.popitem(last=False)

    def _forget_expired(self) -> None:
        now = time.monotonic()
        for key in [key for key, listing in self._listings.items() if now >= listing.ends]:
            del self._listings[key]
