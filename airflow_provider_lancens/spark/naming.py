"""What a write calls itself: the key that makes it the same write again, and what it brings."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Self

from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.namespace.writes import digest
from airflow_provider_lancens.spark.history import Commit
from airflow_provider_lancens.spark.options import ON_CHANGED, OnChanged


@dataclass(frozen=True, slots=True)
class WriteName:
    """A write's idempotency key, the digest of its fingerprint, and what to do where they disagree."""

    key: str
    fingerprint: str = ""
    on_changed: OnChanged = "fail"

    @classmethod
    def of(cls, key: str | None, fingerprint: str | None = None, on_changed: OnChanged = "fail") -> Self:
        """The name as a caller gave it; without a key, one that no other write has.

        Raises:
            InvalidInputError: (13) an argument can't be what it is; the message names it.
        """
        if key is not None and not key.strip():
            raise InvalidInputError(
                "idempotency_key: expected words that name this write, or None; got a blank"
            )
        if on_changed not in ON_CHANGED:
            raise InvalidInputError(
                f"on_changed: expected one of {', '.join(ON_CHANGED)}, got {on_changed!r}"
            )
        return cls(key or f"once-{uuid.uuid4()}", digest(fingerprint) if fingerprint else "", on_changed)

    def is_made_by(self, commit: Commit, table: str) -> bool:
        """Whether an earlier commit under the key is this very write; false where it is to be replaced.

        Raises:
            InvalidInputError: (13) it brought something else, and nobody asked to replace that.
        """
        if commit.brought(self.fingerprint):
            return True
        if self.on_changed == "replace":
            return False
        raise InvalidInputError(
            f"table {table}: version {commit.version} was committed under idempotency key {self.key!r} with "
            f"other data (fingerprint {commit.fingerprint}, now {self.fingerprint}); nothing was written. "
            "Another key writes this as well; on_changed='replace', where there is such an argument, puts it "
            "in its place"
        )
