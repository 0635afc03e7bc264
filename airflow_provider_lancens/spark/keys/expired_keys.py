"""Expired keys: digests of keys whose records were removed, so that a rerun is refused.

They are kept in shards by their first two hex digits, each a file of sorted digests. A clean-up that adds
keys writes a new file that includes the content of the old ones, then removes these.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import uuid4

from airflow_provider_lancens.namespace.storage.table_files import TableFiles
from airflow_provider_lancens.spark.keys.key_index import EXPIRED_KEYS

_SHARD = 2
_TRIES = 5


@dataclass(frozen=True, slots=True)
class ExpiredKeys:
    """The expired keys of a table."""

    files: TableFiles

    def contain(self, key_digest: str) -> bool:
        """Return whether a key has expired."""
        return key_digest in self._read(key_digest[:_SHARD])[0]

    def add(self, shard: str, digests: Collection[str]) -> None:
        """Add keys to a shard."""
        known, outdated = self._read(shard)
        text = "\n".join(sorted(known.union(digests)))
        self.files.put(f"{EXPIRED_KEYS}/{shard}/{uuid4()}", text.encode())
        if outdated:
            self.files.remove_outdated(*outdated)

    def _read(self, shard: str) -> tuple[frozenset[str], list[str]]:
        """Return the keys of a shard, and the files that hold them."""
        for _ in range(_TRIES):
            paths = [file.path for file in self.files.below(f"{EXPIRED_KEYS}/{shard}")]
            contents = [self.files.read(path) for path in paths]
            if None not in contents:
                break
            # A clean-up has merged them meanwhile.
        texts = (content.decode() for content in contents if content)
        return frozenset(line for text in texts for line in text.split("\n")), paths
