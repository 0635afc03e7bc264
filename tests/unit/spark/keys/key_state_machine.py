"""Random events of a table that is written under keys, checked with a model: deaths, clean-ups, Restores.

The model has the rows of each version, and which keys have expired. Each key brings one row, its name.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from lance_namespace import DeclareTableRequest, LanceNamespace, connect
from lance_namespace.errors import InvalidInputError, InvalidTableStateError

from airflow_provider_lancens.namespace.storage.table_files import TableFiles
from airflow_provider_lancens.spark.commit.committer import Committer
from airflow_provider_lancens.spark.commit.replace_where import ReplaceWhere
from airflow_provider_lancens.spark.commit.write_lease import acquire_lease
from airflow_provider_lancens.spark.keys import Counts, look_up
from airflow_provider_lancens.spark.keys.key_records import digest, folder_of
from airflow_provider_lancens.spark.maintenance import clean_up_versions, restore_version
from airflow_provider_lancens.spark.options import OnExistingKey, WriteRequest
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable, resolved_table
from airflow_provider_lancens.spark.write.pipeline import confirm_write
from tests.unit.spark.conftest import prepare

TABLE = "orders"
NOW = timedelta(0)
KEYS = [f"key {number}" for number in range(6)]
PARTS = ["part 1", "part 2"]
OTHERS_ROW = "of another client"
LAST_STEP = 8
"""More changes than a write makes, so that some deaths come after it."""

keys, parts = st.sampled_from(KEYS), st.sampled_from(PARTS)
has_rows = precondition(lambda self: self.versions)


class Death(BaseException):
    """Ends a driver as SIGKILL would: nothing catches it."""


@contextmanager
def death_at(step: int) -> Iterator[None]:
    """Die before the n-th change of the block to the storage, Lance's commit included."""
    changes = 0

    def counting(real: Callable[..., Any]) -> Callable[..., Any]:
        def change(*arguments: Any, **options: Any) -> Any:
            nonlocal changes
            changes += 1
            if changes >= step:
                raise Death
            return real(*arguments, **options)

        return change

    with pytest.MonkeyPatch.context() as patch:
        for name in ("put", "remove"):
            patch.setattr(TableFiles, name, counting(getattr(TableFiles, name)))
        patch.setattr(lance.LanceDataset, "commit", staticmethod(counting(lance.LanceDataset.commit)))
        try:
            yield
        except Death:
            return


class KeyedTableMachine(RuleBasedStateMachine):
    """A table with writers under keys, other clients, and clean-ups."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.namespace: LanceNamespace = connect("dir", {"root": str(folder)})
        self.location = folder / f"{TABLE}.lance"
        self.namespace.declare_table(DeclareTableRequest(id=[TABLE]))
        self.used_keys = 0
        self._forget()

    @rule(key=keys)
    def write(self, key: str) -> None:
        rows = self._rows()
        if key in self.in_doubt:
            self._write_in_doubt(key)
        elif key in self.expired:
            with pytest.raises(InvalidInputError, match="has expired"):
                self._write(key)
        else:
            assert self._write(key) is (key not in rows)
            self._now([*rows, key] if key not in rows else rows)
            self.recorded.add(key)

    @rule(key=keys, step=st.integers(1, LAST_STEP))
    def die_in_a_write(self, key: str, step: int) -> None:
        rows, before = self._rows(), self._version()
        if key in self.in_doubt | self.expired | set(rows):
            return
        with death_at(step):
            self._write(key)
        if self._version() > before:
            self._now([*rows, key])
            self.recorded.add(key)
        if any((self.location / folder_of(digest(key))).glob(f"{before + 1}-*")):
            self.open_attempts.add((key, before + 1))

    @has_rows
    @rule()
    def append_by_another_client(self) -> None:
        lance.write_dataset(pa.table({"key": [OTHERS_ROW]}), str(self.location), mode="append")
        self._now([*self._rows(), OTHERS_ROW])

    @has_rows
    @rule()
    def compact(self) -> None:
        lance.dataset(str(self.location)).optimize.compact_files()
        self._now(self._rows())

    @has_rows
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        kept = sorted(int(one["version"]) for one in lance.dataset(str(self.location)).version_refs())
        wanted = data.draw(st.sampled_from(kept))
        restore_version(self.namespace, TABLE, wanted)
        self._now(self.versions[wanted])

    @has_rows
    @rule(data=st.data(), step=st.integers(1, LAST_STEP))
    def die_in_a_restore_and_repeat_it(self, data: st.DataObject, step: int) -> None:
        kept = sorted(int(one["version"]) for one in lance.dataset(str(self.location)).version_refs())
        wanted, before, key = data.draw(st.sampled_from(kept)), self._version(), self._new_key("restore")
        rows = self.versions[wanted]
        with death_at(step):
            restore_version(self.namespace, TABLE, wanted, idempotency_key=key)
        restore_version(self.namespace, TABLE, wanted, idempotency_key=key)
        assert self._version() == before + 1
        self._now(rows)

    @has_rows
    @rule(part=parts, step=st.integers(1, LAST_STEP))
    def die_in_a_replacement_of_a_part_and_repeat_it(self, part: str, step: int) -> None:
        rows, before, key = self._rows(), self._version(), self._new_key("part")
        with death_at(step):
            self._replace_part(key, part)
        self._replace_part(key, part)
        assert self._version() == before + 1
        self._now([*(row for row in rows if row != part), part])

    @has_rows
    @rule(expires=st.booleans())
    def clean_up(self, expires: bool) -> None:
        newest = self._version()
        clean_up_versions(self.namespace, TABLE, older_than=NOW, keep_keys=NOW if expires else None)
        self._now(self._rows())
        # An attempt at a version that doesn't exist yet may be under way: its key is left alone.
        self.open_attempts = {attempt for attempt in self.open_attempts if attempt[1] > newest}
        if expires:
            expired = (self.recorded | self.in_doubt) - {key for key, _ in self.open_attempts}
            self.expired |= expired
            self.recorded -= expired
            self.in_doubt -= expired

    @has_rows
    @rule(step=st.integers(1, LAST_STEP), expires=st.booleans())
    def die_in_a_clean_up_and_repeat_it(self, step: int, expires: bool) -> None:
        keep_keys = NOW if expires else None
        with death_at(step):
            clean_up_versions(self.namespace, TABLE, older_than=NOW, keep_keys=keep_keys)
        self._now(self._rows())
        self.clean_up(expires=expires)

    @has_rows
    @rule()
    def clean_up_by_another_client(self) -> None:
        newest = self._version()
        lance.dataset(str(self.location)).cleanup_old_versions(older_than=NOW)
        lost = {attempt for attempt in self.open_attempts if attempt[1] < newest}
        self.in_doubt |= {key for key, _ in lost}
        self.open_attempts -= lost

    @has_rows
    @rule(leaves_keys=st.booleans())
    def remove_by_hand(self, leaves_keys: bool) -> None:
        for found in self.location.iterdir():
            if found.is_dir() and not (leaves_keys and found.name == "_lancens"):
                shutil.rmtree(found)
        self._forget()

    @invariant()
    def table_has_the_rows_of_the_model(self) -> None:
        rows: list[str] = []
        if self._version():
            rows = lance.dataset(str(self.location)).to_table()["key"].to_pylist()
        assert sorted(rows) == sorted(self._rows())

    def _write(self, key: str, on_existing_key: OnExistingKey = "skip") -> bool:
        with resolved_table(self.namespace, TABLE) as target:
            lookup = look_up(target, WriteRequest("append", key, on_existing_key=on_existing_key))
            if lookup.earlier is not None:
                return False
            change = prepare(target, "append", pa.table({"key": [key]}))
            with acquire_lease(target.dataset).kept_alive(end=True) as lease:
                committer = Committer(target, lookup.write, Counts(1, 1, 1), lease=lease)
                return committer.commit(change, lookup.version).made_here

    def _replace_part(self, key: str, part: str) -> None:
        """Replace the rows of a part by one, once under a key."""
        with resolved_table(self.namespace, TABLE) as target:
            lookup = look_up(target, WriteRequest("overwrite", key, replace_where=f"key = '{part}'"))
            if lookup.earlier is not None:
                return
            rows = prepare(target, "append", pa.table({"key": [part]}))
            condition = f"key = '{part}'"
            change = ReplaceWhere(rows.table, rows.base, rows.schema, rows.fragments, condition)
            with acquire_lease(target.dataset).kept_alive(end=True) as lease:
                Committer(target, lookup.write, Counts(1, 1, 1), lease=lease).commit(change, lookup.version)

    def _new_key(self, of: str) -> str:
        self.used_keys += 1
        return f"{of} {self.used_keys}"

    def _write_in_doubt(self, key: str) -> None:
        """Find it, write it, or be told that this is impossible and do as the message says."""
        rows = self._rows()
        try:
            made = self._write(key)
        except InvalidTableStateError:
            if key in rows:
                confirm_write(self.namespace, TABLE, key)
            made = self._write(key, "skip" if key in rows else "write_again")
        assert made is (key not in rows)
        self._now([*rows, key] if made else rows)
        self.recorded.add(key)

    def _forget(self) -> None:
        self.versions: dict[int, list[str]] = {}
        """The rows of each version."""
        self.expired: set[str] = set()
        self.recorded: set[str] = set()
        """The keys that have records of commits."""
        self.open_attempts: set[tuple[str, int]] = set()
        """The keys and versions of drivers that died about when they committed."""
        self.in_doubt: set[str] = set()
        """The keys of such versions that others cleaned up."""

    def _now(self, rows: list[str]) -> None:
        # A compaction may make two versions.
        for version in range(max(self.versions, default=0) + 1, self._version() + 1):
            self.versions[version] = rows

    def _rows(self) -> list[str]:
        return self.versions[max(self.versions)] if self.versions else []

    def _version(self) -> int:
        target: ResolvedTable
        with resolved_table(self.namespace, TABLE) as target:
            return target.latest_version() or 0
