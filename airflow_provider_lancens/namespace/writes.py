"""The newest writes into a table, in its entry: known there also when their versions were cleaned up.

A write is named by an idempotency key. What stands in the entry is its digest, so that sixteen of them
stay below the 4,000 characters to which some metastores' databases limit a parameter.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Self

from lance_namespace.errors import InvalidTableStateError

from airflow_provider_lancens.namespace.marks import WRITES
from airflow_provider_lancens.namespace.metastore import Table

KEPT = 16
_DIGITS = 32
"""Of a digest: 128 bits."""


def digest(text: str) -> str:
    """A short name of a text of any length, without what it says."""
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


@dataclass(frozen=True, slots=True)
class Write:
    """A write that was committed."""

    key: str
    """The digest of its idempotency key."""
    version: int
    """The version that it made."""
    fingerprint: str = ""
    """The digest of what was written; empty where nobody said."""
    rows: int = 0
    files: int = 0
    bytes: int = 0

    def as_text(self) -> str:
        """As it travels in a request."""
        return _as_text([self])

    @classmethod
    def from_text(cls, text: str) -> Self:
        """What `as_text` wrote; ValueError or TypeError where it is something else."""
        [fields] = json.loads(text)
        return cls(*fields)


def writes_of(entry: Table) -> tuple[Write, ...]:
    """The writes that an entry tells of, newest first.

    Raises:
        InvalidTableStateError: (19) the parameter can't be read.
    """
    text = entry.parameters.get(WRITES)
    if not text:
        return ()
    try:
        return tuple(Write(*fields) for fields in json.loads(text))
    except (TypeError, ValueError) as error:
        raise InvalidTableStateError(
            f"table {entry.id}: its parameter {WRITES!r} was overwritten, no use: {error}; remove it, then "
            "idempotency keys are known as long as their versions are kept"
        ) from error


def noted(entry: Table, write: Write) -> Mapping[str, str]:
    """The parameter with one more write; empty where that changes nothing.

    The newest by version stay. Version 1 begins anew: what stood there was of a data set that is gone.
    """
    before = writes_of(entry)
    others = [one for one in before if one.key != write.key and write.version > 1]
    kept = sorted([write, *others], key=lambda one: one.version, reverse=True)[:KEPT]
    return {} if tuple(kept) == before else {WRITES: _as_text(kept)}


def _as_text(writes: Sequence[Write]) -> str:
    return json.dumps([astuple(write) for write in writes], separators=(",", ":"))
