"""The locations that a connection's credentials are used for.

Any client of a metastore can write any location into a catalog table, and any writer of a table can refer to
files anywhere. The property ``allowed_locations`` confines every use of a table by a connection: declaring,
registering, reading, writing, dropping. Without it, files that a table refers to must be in the table's own
store, and tables of a connection with an object store in its own stores, see `operations.connection_stores`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.locations import check_location, location_fault, shown_location
from airflow_provider_lancens.namespace.storage.location_overlap import ResolvedLocation, store_of
from airflow_provider_lancens.redaction import redact

ALLOWED_LOCATIONS = "allowed_locations"
_ANYWHERE = "*"


@dataclass(frozen=True, slots=True)
class AllowedLocations:
    """Prefixes, one of which contains each location. Picklable."""

    prefixes: tuple[str, ...] = ()
    anywhere: bool = False
    """Whether the operator of the connection allows all locations in words."""

    @classmethod
    def parse(cls, text: str | None, root: str) -> Self:
        """Parse prefixes separated by commas, or ``*`` alone; the root, if there is one, is always allowed.

        Raises:
            InvalidInputError: (13) one is not an absolute path or URL.
        """
        named = [prefix.strip() for prefix in (text or "").split(",") if prefix.strip()]
        if named == [_ANYWHERE]:
            return cls(anywhere=True)
        prefixes = [check_location(prefix, f"property {ALLOWED_LOCATIONS!r}") for prefix in named]
        return cls(tuple(filter(None, (root, *prefixes))) if prefixes else ())

    @property
    def is_given(self) -> bool:
        """Whether the property decides, and no default."""
        return self.anywhere or bool(self.prefixes)

    def check(self, location: str, subject: str) -> None:
        """Check that a location is below one of the prefixes, in each way in which it may be read.

        Args:
            location: of another client or a caller.
            subject: what has the location, for the message.

        Raises:
            PermissionDeniedError: (15) it isn't.
        """
        if self.prefixes and not any(self._resolved_in(location)):
            raise spec_errors.PermissionDeniedError(
                f"{subject}: its location {shown_location(redact(location))} is not below any of "
                f"{', '.join(self.prefixes)}; if this connection may use it, add it to its property "
                f"{ALLOWED_LOCATIONS!r}"
            )

    def check_reference(self, reference: str, location: str, subject: str) -> None:
        """Check that a file or another dataset that a table refers to may be read with its credentials.

        Args:
            reference: its path or URL, as any writer of the table may have written it.
            location: the table's own.
            subject: what refers to it, for the message.

        Raises:
            PermissionDeniedError: (15) it is not below one of the prefixes; without any, it is in another
                store than the table.
        """
        if self.anywhere:
            return
        if fault := location_fault(reference, of_table=False):
            raise spec_errors.PermissionDeniedError(f"{subject}: a reference is not followed: {fault}")
        if self.prefixes and not ResolvedLocation(reference).lies_only_in(_resolved(location)):
            self.check(reference, subject)
        elif not self.prefixes and store_of(reference) != store_of(location):
            raise spec_errors.PermissionDeniedError(
                f"{subject}: {shown_location(redact(reference))} is in another store than the table at "
                f"{shown_location(redact(location))}, and is not read; if this connection may read it, set "
                f"its property {ALLOWED_LOCATIONS!r} to the prefixes of its tables and of such files"
            )

    def _resolved_in(self, location: str) -> list[bool]:
        resolved = ResolvedLocation(location)
        return [resolved.lies_only_in(_resolved(prefix)) for prefix in self.prefixes]


@lru_cache(maxsize=256)
def _resolved(prefix: str) -> ResolvedLocation:
    return ResolvedLocation(prefix)
