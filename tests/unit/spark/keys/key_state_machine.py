"""Random events of a table that is written under keys, checked with a model: deaths, clean-ups, losses.

The model has the rows of each version. Each key brings one row, its name. A rerun is skipped if the row is
there, writes it if it isn't, and is refused where that can't be known.
"""

import contextlib
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
from airflow_provider_lancens.spark.commit.append_overwrite import ReplaceWhereCommit
from airflow_provider_lancens.spark.commit.committer import Committer
from airflow_provider_lancens.spark.commit.redo import redo_change
from airflow_provider_lancens.spark.commit.write_lease import acquire_lease
from airflow_provider_lancens.spark.keys import Counts, look_up
from airflow_provider_lancens.spark.keys.commit_lineage import LINEAGE
from airflow_provider_lancens.spark.keys.key_lookup import accept_lost_keys, confirm_write
from airflow_provider_lancens.spark.keys.key_records import digest, folder_of
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
from airflow_provider_lancens.spark.maintenance.restore import restore_version
from airflow_provider_lancens.spark.options import OnExistingKey, WriteIdentity
from airflow_provider_lancens.spark.table.history import read_transaction
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable, resolved_table
from tests.support.prepared_tables import prepare

TABLE = "orders"
NOW = timedelta(0)
KEYS = [f"key {number}" for number in range(6)]
PARTS = ["part 1", "part 2"]
OTHERS_ROW = "of another client"
LAST_STEP = 8
"""More changes than a write makes, so that some deaths come after it."""

keys, parts = st.sampled_from(KEYS), st.sampled_from(PARTS)
policies = st.sampled_from(["skip", "redo", "write_again"])
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
    """A table with writers under keys, other clients, clean-ups, and losses."""

    table = TABLE

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.namespace = self.connect()
        self.location = self.locate()
        self.used_keys = 0
        self.refusals: list[str] = []
        """The keys that were refused, since it can't be known what became of them."""
        self._forget()

    def connect(self) -> LanceNamespace:
        """Connect to a namespace in which the table is declared."""
        made: LanceNamespace = connect("dir", {"root": str(self.folder)})
        made.declare_table(DeclareTableRequest(id=[TABLE]))
        return made

    def locate(self) -> Path:
        """Return the table's folder."""
        return self.folder / f"{TABLE}.lance"

    def dataset(self) -> lance.LanceDataset:
        """Open the table as other clients do."""
        return lance.dataset(str(self.location))

    def append_elsewhere(self, rows: pa.Table) -> None:
        """Append rows as other clients do."""
        lance.write_dataset(rows, str(self.location), mode="append")

    @rule(key=keys)
    def write(self, key: str) -> None:
        rows = self._rows()
        try:
            made = self._write(key)
        except InvalidInputError as error:
            if "has expired" not in str(error) or key not in self.ever_expired:
                raise
            return
        except InvalidTableStateError as error:
            self._do_what_is_said(key, str(error))
            return
        assert made is (key not in rows)
        self._now([*rows, key] if made else rows)
        self.recorded.add(key)

    @rule(key=keys)
    def write_again(self, key: str) -> None:
        rows = self._rows()
        assert self._write(key, "write_again")
        self._now([*rows, key])
        self.recorded.add(key)

    @has_rows
    @rule(key=keys)
    def replace(self, key: str) -> None:
        rows = self._rows()
        try:
            made = self._write(key, "redo")
        except (InvalidInputError, InvalidTableStateError):
            assert self._rows_in_table() == sorted(rows)
            return
        assert made
        self._now([*(row for row in rows if row != key), key])
        self.recorded.add(key)

    @rule(key=keys, step=st.integers(1, LAST_STEP), policy=policies)
    def die_in_a_write_and_repeat_it(self, key: str, step: int, policy: OnExistingKey) -> None:
        rows, execution = self._rows(), self._new_key("execution")
        try:
            with death_at(step):
                self._write(key, policy, execution)
            self._write(key, policy, execution)
        except (InvalidInputError, InvalidTableStateError):
            assert self._rows_in_table() == sorted(rows)
            return
        others = [row for row in rows if row != key] if policy == "redo" else rows
        skips = policy == "skip" and key in rows
        self._now(rows if skips else [*others, key])
        self.recorded.add(key)

    @rule(key=keys, step=st.integers(1, LAST_STEP))
    def die_in_a_write(self, key: str, step: int) -> None:
        rows, before = self._rows(), self._version()
        try:
            with death_at(step):
                self._write(key)
        except (InvalidInputError, InvalidTableStateError):
            return
        if self._version() > before:
            assert key not in rows
            self._now([*rows, key])
            self.recorded.add(key)
        if any((self.location / folder_of(digest(key))).glob(f"{before + 1}-*")):
            self.dead.add((key, before + 1))

    @has_rows
    @rule()
    def append_by_another_client(self) -> None:
        self.append_elsewhere(pa.table({"key": [OTHERS_ROW]}))
        self._now([*self._rows(), OTHERS_ROW])

    @has_rows
    @rule()
    def compact(self) -> None:
        self.dataset().optimize.compact_files()
        self._now(self._rows())

    @has_rows
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        kept = sorted(int(one["version"]) for one in self.dataset().version_refs())
        wanted = data.draw(st.sampled_from(kept))
        restore_version(self.namespace, self.table, wanted)
        self._now(self.versions[wanted])

    @has_rows
    @rule(data=st.data())
    def restore_by_another_client(self, data: st.DataObject) -> None:
        dataset = self.dataset()
        wanted = data.draw(st.sampled_from(sorted(int(one["version"]) for one in dataset.version_refs())))
        dataset.checkout_version(wanted).restore()
        self._now(self.versions[wanted])

    @has_rows
    @rule(data=st.data(), step=st.integers(1, LAST_STEP))
    def die_in_a_restore_and_repeat_it(self, data: st.DataObject, step: int) -> None:
        kept = sorted(int(one["version"]) for one in self.dataset().version_refs())
        wanted, before, key = data.draw(st.sampled_from(kept)), self._version(), self._new_key("restore")
        rows = self.versions[wanted]
        try:
            with death_at(step):
                restore_version(self.namespace, self.table, wanted, key=key, execution_id="1")
            restore_version(self.namespace, self.table, wanted, key=key, execution_id="1")
        except InvalidTableStateError:  # keys without records are refused
            assert self._version() == before
            return
        assert self._version() == before + 1
        self._now(rows)

    @has_rows
    @rule(part=parts, step=st.integers(1, LAST_STEP))
    def die_in_a_replacement_of_a_part_and_repeat_it(self, part: str, step: int) -> None:
        rows, before, key = self._rows(), self._version(), self._new_key("part")
        try:
            with death_at(step):
                self._replace_part(key, part)
            self._replace_part(key, part)
        except InvalidTableStateError:  # keys without records are refused
            assert self._version() == before
            return
        assert self._version() == before + 1
        self._now([*(row for row in rows if row != part), part])

    @has_rows
    @rule(data=st.data(), cleared=st.booleans())
    def clear_a_restore(self, data: st.DataObject, cleared: bool) -> None:
        """Restore under a key, let others write or not, and make the restore again."""
        kept = sorted(int(one["version"]) for one in self.dataset().version_refs())
        wanted, key = data.draw(st.sampled_from(kept)), self._new_key("restore")
        rows = self.versions[wanted]
        try:
            restore_version(self.namespace, self.table, wanted, key=key, execution_id="1")
        except InvalidTableStateError:  # keys without records are refused
            return
        self._now(rows)
        if cleared:
            restore_version(self.namespace, self.table, wanted, key=key, execution_id="2")
            self._now(rows)
            return
        self.append_by_another_client()
        with pytest.raises(InvalidInputError, match="others have changed rows since"):
            restore_version(self.namespace, self.table, wanted, key=key, execution_id="2")

    @has_rows
    @rule(expires=st.booleans())
    def clean_up(self, expires: bool) -> None:
        clean_up_versions(
            self.namespace, self.table, older_than=NOW, keys_older_than=NOW if expires else None
        )
        self._now(self._rows())
        if expires:
            self.ever_expired |= self.recorded | {key for key, _ in self.dead}

    @has_rows
    @rule(step=st.integers(1, LAST_STEP), expires=st.booleans())
    def die_in_a_clean_up_and_repeat_it(self, step: int, expires: bool) -> None:
        keys_older_than = NOW if expires else None
        with death_at(step):
            clean_up_versions(self.namespace, self.table, older_than=NOW, keys_older_than=keys_older_than)
        self._now(self._rows())
        self.clean_up(expires=expires)

    @has_rows
    @rule()
    def clean_up_by_another_client(self) -> None:
        self.dataset().cleanup_old_versions(older_than=NOW)
        self.is_unclear = True

    @has_rows
    @rule(count=st.integers(1, 3), with_keys=st.booleans())
    def lose_the_newest_versions(self, count: int, with_keys: bool) -> None:
        """As a rollback of the storage, with the records of keys or without them."""
        kept = sorted(int(one["version"]) for one in self.dataset().version_refs())
        lost = kept[max(1, len(kept) - count) :]
        for version in lost:
            Path(self.location, "_versions", f"{2**64 - 1 - version}.manifest").unlink()
        Path(self.location, "_versions", "latest_version_hint.json").unlink(missing_ok=True)
        self.versions = {one: rows for one, rows in self.versions.items() if one not in lost}
        newest = max(self.versions)
        if with_keys and newest in self.records_at:
            shutil.rmtree(self.location / "_lancens", ignore_errors=True)
            shutil.copytree(self.records_at[newest], self.location / "_lancens")
        self.records_at = {one: path for one, path in self.records_at.items() if one <= newest}
        self.after_a_loss()

    def after_a_loss(self) -> None:
        """Do what is to be done after the newest manifests were lost: nothing if the storage decides."""

    # Names have UUIDs, so which file is chosen isn't drawn of them.
    @has_rows
    @rule(number=st.integers(0, 9), key=keys, confirmed=st.booleans())
    def lose_one_of_two_objects_of_a_key(self, number: int, key: str, confirmed: bool) -> None:
        found = sorted((self.location / folder_of(digest(key))).glob("*.committed"))
        if found:
            confirmation = found[number % len(found)]
            record = confirmation.with_name(confirmation.name.removesuffix(".committed"))
            if record.exists():
                (confirmation if confirmed else record).unlink()
                self.is_unclear = True

    @has_rows
    @rule(number=st.integers(0, 99), tenths=st.integers(0, 9))
    def truncate_an_object(self, number: int, tenths: int) -> None:
        found = sorted(one for one in (self.location / "_lancens").rglob("*") if one.is_file())
        if found:
            chosen = found[number % len(found)]
            content = chosen.read_bytes()
            chosen.write_bytes(content[: len(content) * tenths // 10])
            self.is_unclear = True

    @has_rows
    @rule(key=keys)
    def lose_all_records(self, key: str) -> None:
        """Where a commit of this package is kept, which says that there were records, until it is read."""
        dataset = self.dataset()
        versions = [int(one["version"]) for one in dataset.version_refs()]
        kept = [read_transaction(dataset, version) for version in versions]
        if any(one is not None and LINEAGE in (one.transaction_properties or {}) for one in kept):
            shutil.rmtree(self.location / "_lancens", ignore_errors=True)
            self.is_unclear = True
            self.write(key)

    @has_rows
    @rule()
    def accept_that_records_were_lost(self) -> None:
        if not any(row in KEYS for row in self._rows()):
            with contextlib.suppress(InvalidInputError):
                accept_lost_keys(self.namespace, self.table)

    @has_rows
    @rule(leaves_keys=st.booleans())
    def remove_by_hand(self, leaves_keys: bool) -> None:
        for found in self.location.iterdir():
            if found.is_dir() and not (leaves_keys and found.name == "_lancens"):
                shutil.rmtree(found)
        self._forget()

    @invariant()
    def table_has_the_rows_of_the_model(self) -> None:
        assert self._rows_in_table() == sorted(self._rows())

    def _rows_in_table(self) -> list[str]:
        if not self._version():
            return []
        return sorted(self.dataset().to_table()["key"].to_pylist())

    def _write(self, key: str, on_existing_key: OnExistingKey = "skip", execution: str = "") -> bool:
        with resolved_table(self.namespace, self.table) as target:
            identity = WriteIdentity(key, None, on_existing_key, execution or None)
            lookup = look_up(target, identity)
            if lookup.earlier is not None:
                return False
            change = prepare(target, "append", pa.table({"key": [key]}))
            if lookup.replaced and lookup.latest is not None:
                kind = redo_change("append", lookup.latest, lookup.replaced, self.table)
                change = kind(change.table, change.base, change.schema, change.fragments)
            with acquire_lease(target.dataset).kept_alive(end=True) as lease:
                committer = Committer(target, lookup.write, Counts(1, 1, 1), lease=lease)
                return committer.commit(change, lookup.version).made_here

    def _replace_part(self, key: str, part: str) -> None:
        """Replace the rows of a part by one, once under a key."""
        with resolved_table(self.namespace, self.table) as target:
            lookup = look_up(target, WriteIdentity(key, execution_id="1"))
            if lookup.earlier is not None:
                return
            rows = prepare(target, "append", pa.table({"key": [part]}))
            condition = f"key = '{part}'"
            change = ReplaceWhereCommit(rows.table, rows.base, rows.schema, rows.fragments, condition)
            with acquire_lease(target.dataset).kept_alive(end=True) as lease:
                Committer(target, lookup.write, Counts(1, 1, 1), lease=lease).commit(change, lookup.version)

    def _new_key(self, of: str) -> str:
        self.used_keys += 1
        return f"{of} {self.used_keys}"

    def _do_what_is_said(self, key: str, message: str) -> None:
        """Look whether the rows are there, and do what the refusal says."""
        assert self.is_unclear, message
        self.refusals.append(key)
        rows = self._rows()
        if key not in rows:
            assert self._write(key, "write_again")
            self._now([*rows, key])
            self.recorded.add(key)
        elif "call confirm_write" in message:
            confirm_write(self.namespace, self.table, key)
            assert not self._write(key)

    def _forget(self) -> None:
        self.versions: dict[int, list[str]] = {}
        """The rows of each version."""
        self.records_at: dict[int, Path] = {}
        """Copies of the records when each version was the newest."""
        self.ever_expired: set[str] = set()
        self.recorded: set[str] = set()
        """The keys that may have records of commits."""
        self.dead: set[tuple[str, int]] = set()
        """The keys and versions of drivers that died about when they committed."""
        self.is_unclear = False
        """Whether something has happened after which it may be impossible to know what a key has written."""

    def _now(self, rows: list[str]) -> None:
        # A compaction may make two versions.
        for version in range(max(self.versions, default=0) + 1, self._version() + 1):
            self.versions[version] = rows
        newest = max(self.versions, default=0)
        if newest:
            copy = self.folder / "copies" / str(newest)
            shutil.rmtree(copy, ignore_errors=True)
            copy.mkdir(parents=True)
            if (self.location / "_lancens").exists():
                shutil.copytree(self.location / "_lancens", copy, dirs_exist_ok=True)
            self.records_at[newest] = copy

    def _rows(self) -> list[str]:
        return self.versions[max(self.versions)] if self.versions else []

    def _version(self) -> int:
        target: ResolvedTable
        with resolved_table(self.namespace, self.table) as target:
            return target.latest_version() or 0
