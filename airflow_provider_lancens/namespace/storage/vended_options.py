"""Storage options whose credentials expire: requested again from the namespace that vended them.

They are passed like storage options. Code that opens a store takes a `snapshot`, so that a long write signs
its last requests, on drivers and executors, with other credentials than its first ones.
"""

from __future__ import annotations

import logging
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace

EXPIRES_AT = "expires_at_millis"
"""Lance's storage option: the time at which credentials expire, in milliseconds since 1970."""
_OFFSET = "refresh_offset_millis"
_OFFSET_BY_DEFAULT = 60_000
_PAUSE_SECONDS = 1.0
"""Between requests to a namespace that failed to vend credentials."""

_log = logging.getLogger(__name__)


class VendedOptions(Mapping[str, str]):
    """Storage options of a table with temporary credentials. Picklable, if its namespace is; thread-safe.

    Args:
        connect: connects to the namespace, on each machine when it is first needed.
        table_id: the table's identifier.
        own: options that the namespace doesn't vend; vended options take precedence.
        vended: the options that the namespace vended last, with `EXPIRES_AT`.
    """

    def __init__(
        self,
        connect: Callable[[], LanceNamespace],
        table_id: tuple[str, ...],
        own: Mapping[str, str],
        vended: Mapping[str, str],
    ) -> None:
        self._connect, self._table_id, self._own = connect, table_id, own
        self._namespace: LanceNamespace | None = None
        self._lock = threading.Lock()
        self._set(vended)

    def current(self) -> dict[str, str]:
        """Return consistent options, renewed if their credentials are about to expire.

        Options that can't be renewed are returned as they are: the storage then says that they have expired.
        """
        with self._lock:
            if time.time() >= self._renew_at:
                self._renew()
            return dict(self._options)

    @property
    def table_id(self) -> list[str]:
        """The identifier as used in requests."""
        return list(self._table_id)

    def _set(self, vended: Mapping[str, str]) -> None:
        self._vended, self._options = dict(vended), {**self._own, **vended}
        now, expires = time.time(), int(vended[EXPIRES_AT]) / 1000
        offset = int(vended.get(_OFFSET, _OFFSET_BY_DEFAULT)) / 1000
        # Credentials that live for less than the offset are renewed after half of their time.
        self._renew_at = expires - min(offset, max(0.0, expires - now) / 2)

    def _renew(self) -> None:
        from lance_namespace import DescribeTableRequest

        try:
            self._namespace = self._namespace or self._connect()
            request = DescribeTableRequest(id=list(self._table_id), vend_credentials=True)
            vended = self._namespace.describe_table(request).storage_options or {}
        except Exception as error:  # noqa: BLE001 any namespace may raise anything; the text may contain a secret
            _log.warning("table %s: renewing its credentials failed: %s", self._name, type(error).__name__)
            self._renew_at = time.time() + _PAUSE_SECONDS
            return
        if EXPIRES_AT in vended:
            self._set(vended)
        else:
            self._options, self._renew_at = {**self._own, **vended}, float("inf")

    @property
    def _name(self) -> str:
        return "$".join(self._table_id)

    def __getitem__(self, key: str) -> str:
        return self._options[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._options)

    def __len__(self) -> int:
        return len(self._options)

    def __repr__(self) -> str:
        return f"VendedOptions({self._name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        options = self.current()
        try:
            pickle.dumps(self._connect)
        except (pickle.PicklingError, TypeError, AttributeError):
            _log.warning(
                "table %s: its credentials expire and cannot be renewed on executors, since its namespace "
                "cannot be pickled; pass a NamespaceSpec instead",
                self._name,
            )
            return dict, (options,)
        return VendedOptions, (self._connect, self._table_id, self._own, self._vended)


def snapshot(options: Mapping[str, str]) -> dict[str, str]:
    """Return storage options to open a store with, with current credentials."""
    return options.current() if isinstance(options, VendedOptions) else dict(options)
