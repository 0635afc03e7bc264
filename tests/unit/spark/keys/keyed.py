"""Commits with key records, made step by step, as by a driver that is killed in between."""

import uuid
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.fragment import write_fragments

from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.spark.keys import Counts, KeyedCommit
from airflow_provider_lancens.spark.keys.commit_lineage import Lineage
from airflow_provider_lancens.spark.keys.key_attempts import lineage_below
from airflow_provider_lancens.spark.keys.key_records import KeyRecord, confirm, digest, write_record
from airflow_provider_lancens.spark.keys.key_search import RecordSearch
from airflow_provider_lancens.spark.table import history
from airflow_provider_lancens.spark.table.history import added_files
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

ROWS = pa.table({"n": [1, 2]})


@dataclass
class Attempt:
    """An attempt to commit two rows as the next version."""

    target: ResolvedTable
    key: str
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    record: KeyRecord | None = None

    @property
    def version(self) -> int:
        return (self.target.latest_version() or 0) + 1

    def announce(self) -> "Attempt":
        Path(self.target.dataset.location).mkdir(exist_ok=True)
        files = added_files(self._operation)
        commit = KeyedCommit(self.version, self.uuid, Counts(2, 1, 100), files=tuple(files))
        self.record = KeyRecord(self.version, self.uuid, digest(self.key))
        write_record(files_of(self.target), self.record, self.key, commit)
        return self

    def commit(self) -> "Attempt":
        where, operation = self.target.dataset.location, self._operation
        transaction = lance.Transaction(
            self.version - 1,
            operation,
            self.uuid,
            KeyedCommit(self.version, self.uuid, Counts(2, 1, 100), lineage=self._lineage).as_properties(
                self.key
            ),
        )
        lance.LanceDataset.commit(where, transaction, read_version=self.version - 1)
        return self

    @cached_property
    def _operation(self) -> Any:
        is_first = self.version == 1
        where = self.target.dataset.location
        fragments = write_fragments(ROWS, where, mode="overwrite" if is_first else "append")
        if is_first:
            return lance.LanceOperation.Overwrite(ROWS.schema, fragments)
        return lance.LanceOperation.Append(fragments)

    @property
    def _lineage(self) -> Lineage | None:
        """What the commit states; without a record it is one of an older version, which stated nothing."""
        if self.record is None:
            return None
        latest = self.target.open_latest()
        return Lineage(0, 1) if latest is None else lineage_below(files_of(self.target), latest)

    def confirm(self) -> "Attempt":
        assert self.record
        confirm(files_of(self.target), self.record)
        return self


def commit(target: ResolvedTable, key: str) -> Attempt:
    """Make a complete commit."""
    return Attempt(target, key).announce().commit().confirm()


def touch(target: ResolvedTable, times: int = 1) -> None:
    """Make commits of another client, without rows."""
    for _ in range(times):
        latest = target.latest_version() or 0
        transaction = lance.Transaction(latest, lance.LanceOperation.UpdateConfig())
        lance.LanceDataset.commit(target.dataset.location, transaction, read_version=latest)


def files_of(target: ResolvedTable) -> Manifests:
    return target.dataset.manifests


def find(target: ResolvedTable, key: str) -> int | None:
    """The version that the key is known to have committed."""
    latest = target.open_latest()
    if latest is None:
        return None
    search = RecordSearch.of(target, latest, key)
    found = search.commit()
    if found is None:
        search.check_not_lost()
    return None if found is None else found.version


def versions_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which each version is added whose transaction is read from now on."""
    versions: list[int] = []
    real = history._History.read

    def read_version(self: history._History, version: int) -> object:
        versions.append(version)
        return real(self, version)

    monkeypatch.setattr(history._History, "read", read_version)
    return versions
