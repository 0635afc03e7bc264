"""What a commit that stops halfway leaves beside the data: its transaction, and its manifest on the way.

Lance writes the transaction and stages the manifest; on a managed table that is recorded too, see
`namespace.commits`. Once a version is made, its manifest names its transaction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from airflow_provider_lancens.namespace.storage import MANIFEST_SUFFIX, RECORDED, VERSIONS, version_of
from airflow_provider_lancens.namespace.table_files import StoredFile, TableFiles
from airflow_provider_lancens.spark.running import MARKS

_TRANSACTIONS, _TRANSACTION_SUFFIX = "_transactions", ".txn"
_STAGED = f"{MANIFEST_SUFFIX}-"
_NAME_OF_TRANSACTION = re.compile(rb"\d+-[0-9a-f-]{36}\.txn")


@dataclass(frozen=True, slots=True)
class CommitFiles:
    """The files of commits, made and tried, beside one data set."""

    files: TableFiles

    def on_the_way(self) -> Iterator[StoredFile]:
        """Transactions, staged manifests and recorded ones, whatever became of their commits."""
        transactions = self.files.below(_TRANSACTIONS)
        yield from (file for file in transactions if file.path.endswith(_TRANSACTION_SUFFIX))
        yield from (file for file in self.files.below(VERSIONS) if _STAGED in file.path)
        yield from self._records()

    def needed(self, newest: int | None) -> set[str]:
        """The paths among them that versions need.

        Args:
            newest: the newest version. Its manifest may be a recorded one, and not have its final name yet.
        """
        records = [file.path for file in self._records() if version_of(file.path) == newest]
        finals = [file.path for file in self.files.below(VERSIONS) if version_of(file.path) is not None]
        return {*records, *(path for manifest in (*records, *finals) for path in self._named_in(manifest))}

    def _records(self) -> Iterator[StoredFile]:
        for folder in self.files.folders(RECORDED):
            if folder != MARKS:
                yield from self.files.below(folder)

    def _named_in(self, manifest: str) -> Iterator[str]:
        for name in _NAME_OF_TRANSACTION.findall(self.files.read(manifest) or b""):
            yield f"{_TRANSACTIONS}/{name.decode()}"
