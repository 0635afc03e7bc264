"""Expired keys: digests of keys whose records were removed, so that a rerun is refused.

They are kept in shards by their first two hex digits, each a file of sorted digests. A clean-up that adds
keys writes a new file that includes the content of the old ones, then removes these.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import uuid4

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.storage.table_files import TableFiles
from airflow_provider_lancens.spark.keys.key_index import EXPIRED_KEYS

_SHARD = 2
_TRIES = 5
_UUID = 36
"""Characters of the UUID in a file's name; older names have no size before it."""


@dataclass(frozen=True, slots=True)
class ExpiredKeys:
    """The expired keys of a table."""

    files: TableFiles

    def contain(self, key_digest: str) -> bool:
        """Return whether a key has expired.

        Raises:
            InvalidTableStateError: (19) that isn't known, since a file lost its content.
        """
        shard = self._read(key_digest[:_SHARD])
        if key_digest not in shard.keys and shard.damaged:
            raise spec_errors.InvalidTableStateError(
                f"storage at {self.files.location}: {shard.damaged[0]}, a list of expired keys, has lost "
                "content, so that it cannot be determined whether a key was committed; nothing was written. "
                "Restore the file from a backup, or use on_existing_key='write_again'"
            )
        return key_digest in shard.keys

    def add(self, shard: str, digests: Collection[str]) -> None:
        """Add keys to a shard."""
        found = self._read(shard)
        text = "\n".join(sorted(found.keys.union(digests)))
        # By its name a file is complete: one that lost its content mustn't make keys count as new.
        self.files.put(f"{EXPIRED_KEYS}/{shard}/{len(text)}-{uuid4()}", text.encode())
        if found.complete:
            self.files.remove_outdated(*found.complete)

    def _read(self, shard: str) -> _Shard:
        for _ in range(_TRIES):
            paths = [file.path for file in self.files.below(f"{EXPIRED_KEYS}/{shard}")]
            contents = [self.files.read(path) for path in paths]
            if None not in contents:
                break
            # A clean-up has merged them meanwhile.
        read = {path: content for path, content in zip(paths, contents, strict=True) if content is not None}
        keys = frozenset(line for content in read.values() for line in content.decode().split("\n"))
        complete = [path for path, content in read.items() if _is_complete(path, content)]
        return _Shard(keys, complete, [path for path in read if path not in complete])


@dataclass(frozen=True, slots=True)
class _Shard:
    keys: frozenset[str]
    complete: list[str]
    """The files that have what they were written with."""
    damaged: list[str]


def _is_complete(path: str, content: bytes) -> bool:
    size, _, rest = path.rpartition("/")[2].partition("-")
    return len(rest) != _UUID or not size.isdecimal() or int(size) == len(content)
