"""The locations that a connection's credentials are used for.

Any client of a metastore can write any location into a catalog table. Where that matters, the property
``allowed_locations`` confines a connection, whatever it does with a table: declaring, registering, reading,
writing, dropping.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.locations import check_location, shown_location
from airflow_provider_lancens.namespace.storage.location_overlap import ResolvedLocation
from airflow_provider_lancens.redaction import redact

ALLOWED_LOCATIONS = "allowed_locations"


@dataclass(frozen=True, slots=True)
class AllowedLocations:
    """Prefixes, one of which contains each location; without any, each location is allowed."""

    prefixes: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str | None, root: str) -> Self:
        """Parse prefixes separated by commas; the root, if there is one, is always one of them.

        Raises:
            InvalidInputError: (13) one is not an absolute path or URL.
        """
        named = [one.strip() for one in (text or "").split(",") if one.strip()]
        prefixes = [check_location(one, f"property {ALLOWED_LOCATIONS!r}") for one in named]
        return cls(tuple(filter(None, (root, *prefixes))) if prefixes else ())

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

    def _resolved_in(self, location: str) -> list[bool]:
        resolved = ResolvedLocation(location)
        return [resolved.lies_only_in(_resolved(prefix)) for prefix in self.prefixes]


@lru_cache(maxsize=256)
def _resolved(prefix: str) -> ResolvedLocation:
    return ResolvedLocation(prefix)
