"""Staged versions of a table: complete versions that only those see who are given their number.

Lance calls them detached: their manifests have other names, no version follows them, and no listing of
versions contains them. The transaction of a staged version says under which idempotency key, and as which
change, it is to be published.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.storage.file_paths import is_file_path
from airflow_provider_lancens.namespace.storage.json_records import UNREADABLE, whole_number
from airflow_provider_lancens.namespace.storage.object_store import (
    VERSIONS,
    detached_name,
    detached_version_of,
)
from airflow_provider_lancens.spark.commit.replace_where import ReplaceWhere
from airflow_provider_lancens.spark.commit.table_changes import Append, Overwrite, TableChange
from airflow_provider_lancens.spark.commit.upsert import Upsert, read_keys
from airflow_provider_lancens.spark.keys import IDEMPOTENCY_KEY, KeyedCommit, KeyedWrite
from airflow_provider_lancens.spark.table.history import added_fragments
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

if TYPE_CHECKING:
    from lance import FragmentMetadata, Transaction
    from lance.schema import LanceSchema

    from airflow_provider_lancens.namespace.storage.table_files import StoredFile

_STAGED = "lancens.staged"
"""The property of a transaction that made a staged version: a `ChangeSpec`."""


TAGS = "_refs/tags"
"""Where Lance has the tags of a table."""
_TAG = "lancens-staged-"


def tag_of(uuid: str) -> str:
    """Return the tag that keeps the version onto which a transaction with this UUID was staged."""
    return f"{_TAG}{uuid}"


def is_staged_tag(path: str) -> bool:
    """Return whether a file is that of such a tag."""
    return re.fullmatch(rf"{TAGS}/{_TAG}[0-9a-f-]{{36}}\.json", path) is not None


@dataclass(frozen=True, slots=True)
class ChangeSpec:
    """How the change of a staged version is made again, when it is published."""

    mode: str
    base: int
    """The version that was the newest when the write began."""
    on: Sequence[str] = ()
    """The key columns of an upsert."""
    compared: bool = False
    """Whether the rows of an upsert were chosen by comparing them with those of `base`."""
    condition: str | None = None
    """The condition on the rows that are replaced, in Lance's SQL, rendered of a parsed condition."""

    @property
    def replaces_all(self) -> bool:
        """Whether it replaces all rows of the table, and its columns."""
        return self.mode not in ("append", "upsert") and self.condition is None

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse the property; None if another client wrote something else."""
        try:
            spec = cls(**json.loads(text))
        except UNREADABLE:
            return None
        columns = isinstance(spec.on, list | tuple) and all(isinstance(name, str) for name in spec.on)
        texts = isinstance(spec.mode, str) and isinstance(spec.condition, str | None)
        return spec if columns and texts and whole_number(spec.base) is not None else None

    def as_properties(self) -> dict[str, str]:
        """Return it as a property of a transaction."""
        fields = {name: getattr(self, name) for name in ("mode", "base", "compared", "condition")}
        return {_STAGED: json.dumps({**fields, "on": list(self.on)})}

    def change(
        self,
        target: ResolvedTable,
        schema: pa.Schema,
        fragments: Sequence[FragmentMetadata],
        written_for: LanceSchema,
    ) -> TableChange:
        """Return the change that adds fragments, which were written for these columns, to a table."""
        table = str(target.id)
        if self.condition is not None:
            return ReplaceWhere(table, self.base, schema, fragments, self.condition, written_for=written_for)
        if self.mode == "upsert":
            columns = pa.schema([schema.field(name) for name in self.on])
            keys = read_keys(target.dataset, fragments, columns, None, table)
            return Upsert(table, self.base, schema, fragments, keys, self.compared, written_for=written_for)
        kind = Append if self.mode == "append" else Overwrite
        return kind(table, self.base, schema, fragments, written_for=written_for)


@dataclass(frozen=True, slots=True)
class StagedVersion:
    """One staged version."""

    version: int
    """Its number, which has no order."""
    path: str
    """Its manifest, relative to the table's location."""
    created: datetime
    """By the storage's clock."""
    spec: ChangeSpec
    schema: pa.Schema = field(repr=False)
    transaction: Transaction = field(repr=False)

    @property
    def key(self) -> str:
        """The idempotency key of its write."""
        return str(self._properties[IDEMPOTENCY_KEY])

    @property
    def commit(self) -> KeyedCommit:
        """Its commit, with its counts and its fingerprint."""
        return KeyedCommit.of(self.version, self.transaction)

    @property
    def write(self) -> KeyedWrite:
        """What identifies the commit that publishes it."""
        return KeyedWrite(self.key, self.commit.fingerprint, execution_id=self.commit.execution_id)

    @property
    def tag(self) -> str:
        """The file of the tag that keeps the version onto which it was staged."""
        return f"{TAGS}/{tag_of(self.commit.uuid)}.json"

    @property
    def fragments(self) -> list[FragmentMetadata]:
        """What was written for it."""
        return added_fragments(self.transaction.operation)

    @property
    def files(self) -> list[str]:
        """The data files that were written for it, relative to the table's location.

        A crafted version may name other files: see `foreign_paths`.
        """
        return [path for path in self._paths if is_file_path(path)]

    @property
    def foreign_paths(self) -> list[str]:
        """What it names as its data files although it can't be below the table's location."""
        return [path for path in self._paths if not is_file_path(path)]

    @property
    def _paths(self) -> list[str]:
        return [f"data/{file.path}" for fragment in self.fragments for file in fragment.files]

    @property
    def _properties(self) -> dict[str, str]:
        return self.transaction.transaction_properties or {}


def open_staged(target: ResolvedTable, version: int) -> StagedVersion:
    """Open a staged version.

    Raises:
        TableVersionNotFoundError: (11) there is none with this number.
    """
    target.check_version(version)
    file = target.dataset.manifests.stat(f"{VERSIONS}/{detached_name(version)}")
    staged = None if file is None else _staged(target, file)
    if staged is None:
        raise spec_errors.TableVersionNotFoundError(
            f"table {target.id}: version {version} was not staged by this package"
        )
    return staged


def staged_versions(target: ResolvedTable) -> Iterator[StagedVersion]:
    """Yield all staged versions of a table, by one listing and a manifest for each."""
    for file in target.dataset.manifests.below(VERSIONS):
        if detached_version_of(file.path) is not None and (staged := _staged(target, file)) is not None:
            yield staged


def find_staged(target: ResolvedTable, write: KeyedWrite) -> StagedVersion | None:
    """Return a version that was staged under a key with the same data; None if there is none."""
    of_key = (staged for staged in staged_versions(target) if staged.key == write.key)
    return next((staged for staged in of_key if write.is_done_by(staged.commit)), None)


def _staged(target: ResolvedTable, file: StoredFile) -> StagedVersion | None:
    """Return the version of a detached manifest; None if another client made it, or it was removed."""
    version = detached_version_of(file.path) or 0
    try:
        dataset = target.open(version)
    except ValueError:
        if target.dataset.manifests.stat(file.path) is not None:
            raise
        return None
    transaction = dataset.read_transaction(version)
    spec = None if transaction is None else (transaction.transaction_properties or {}).get(_STAGED)
    parsed = None if spec is None else ChangeSpec.parse(spec)
    if transaction is None or parsed is None or not _is_ours(transaction):
        return None
    return StagedVersion(version, file.path, file.modified, parsed, dataset.schema, transaction)


def _is_ours(transaction: Transaction) -> bool:
    """Return whether it has what this package writes: a key and fragments; another client's may not."""
    operation: Any = transaction.operation
    return IDEMPOTENCY_KEY in (transaction.transaction_properties or {}) and any(
        hasattr(operation, name) for name in ("new_fragments", "fragments")
    )
