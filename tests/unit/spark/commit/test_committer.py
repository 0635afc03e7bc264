import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import (
    ConcurrentModificationError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
)

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.commit import committer
from airflow_provider_lancens.spark.commit.committer import CommitOutcome, Committer
from airflow_provider_lancens.spark.keys import Counts, KeyedWrite
from airflow_provider_lancens.spark.keys.key_search import list_records
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from airflow_provider_lancens.spark.table.storage_versions import StorageVersions
from tests.support.prepared_tables import ROWS, prepare

Write = Callable[..., CommitOutcome]


def commit(target: ResolvedTable, change: Any, key: str) -> CommitOutcome:
    return Committer(target, KeyedWrite(key), Counts()).commit(change)


def rows(target: ResolvedTable) -> list[int]:
    """Read by path, as other clients do."""
    return sorted(lance.dataset(target.dataset.location).to_table()["n"].to_pylist())


def staged_manifests(target: ResolvedTable) -> list[str]:
    folder = Path(target.dataset.location, "_versions")
    return [file.name for file in folder.iterdir() if ".manifest-" in file.name]


@pytest.mark.parametrize("mode", ["append", "overwrite", "create"])
def test_the_first_write_commits_version_1(target: ResolvedTable, write: Write, mode: str) -> None:
    outcome = write(mode, "january")

    assert (outcome.commit.version, outcome.made_here) == (1, True)
    assert rows(target) == [1, 2]


def test_the_same_key_is_committed_once(target: ResolvedTable, write: Write) -> None:
    first = write("append", "january")
    again = write("append", "january")

    assert again.commit == first.commit
    assert not again.made_here
    assert rows(target) == [1, 2]


def test_two_drivers_under_one_key_make_one_commit(target: ResolvedTable) -> None:
    slow, fast = prepare(target, "append"), prepare(target, "append")

    assert commit(target, fast, "january").made_here
    assert not commit(target, slow, "january").made_here
    assert rows(target) == [1, 2]


def test_concurrent_appends_are_both_kept(target: ResolvedTable, write: Write) -> None:
    write("append", "january")
    slow, fast = prepare(target, "append"), prepare(target, "append")

    assert commit(target, fast, "march").commit.version == 2
    assert commit(target, slow, "february").commit.version == 3
    assert rows(target) == [1, 1, 1, 2, 2, 2]


def test_concurrent_first_appends_are_both_kept(target: ResolvedTable) -> None:
    slow, fast = prepare(target, "append"), prepare(target, "append")

    assert commit(target, fast, "february").commit.version == 1
    assert commit(target, slow, "january").commit.version == 2
    assert rows(target) == [1, 1, 2, 2]


def test_concurrent_first_appends_with_different_schemas_are_refused(target: ResolvedTable) -> None:
    other = prepare(target, "append", pa.table({"other": ["x"]}))
    commit(target, prepare(target, "append"), "january")

    with pytest.raises(ConcurrentModificationError, match="another schema"):
        commit(target, other, "february")
    assert rows(target) == [1, 2]


def test_the_second_of_two_concurrent_creates_is_refused(target: ResolvedTable) -> None:
    slow, fast = prepare(target, "create"), prepare(target, "create", pa.table({"n": [7]}))
    commit(target, fast, "fast")

    with pytest.raises(TableAlreadyExistsError):
        commit(target, slow, "slow")
    assert rows(target) == [7]


def test_an_overwrite_is_refused_after_a_concurrent_append_to_the_table(
    target: ResolvedTable, write: Write
) -> None:
    write("append", "january")
    overwrite = prepare(target, "overwrite")
    write("append", "february")

    with pytest.raises(ConcurrentModificationError, match="run it again"):
        commit(target, overwrite, "replacement")
    assert rows(target) == [1, 1, 2, 2]


def test_an_overwrite_succeeds_despite_concurrent_maintenance(target: ResolvedTable, write: Write) -> None:
    write("append", "january")
    overwrite = prepare(target, "overwrite", pa.table({"n": [7]}))
    lance.dataset(target.dataset.location).update_config({"touched": "yes"})

    assert commit(target, overwrite, "replacement").commit.version == 3
    assert rows(target) == [7]


def test_an_append_is_refused_after_a_concurrent_overwrite(target: ResolvedTable, write: Write) -> None:
    write("append", "january")
    append = prepare(target, "append")
    write("overwrite", "replacement", pa.table({"n": [7]}))

    with pytest.raises(ConcurrentModificationError, match="nothing was committed"):
        commit(target, append, "february")
    assert rows(target) == [7]


def test_a_commit_leaves_no_staged_manifest(target: ResolvedTable, write: Write) -> None:
    write("append", "january")
    write("append", "february")

    assert staged_manifests(target) == []


@pytest.mark.parametrize("folder", ["with blank", "50%25", "ünïcode", "a#b?c", "db$t"])
def test_a_location_may_have_any_name(tmp_path: Path, folder: str) -> None:
    dataset = DatasetRef(str(tmp_path / folder / "orders.lance"))
    target = ResolvedTable(TableId.parse("orders"), dataset, StorageVersions(dataset))

    commit(target, prepare(target, "append"), "january")
    commit(target, prepare(target, "append"), "february")

    assert rows(target) == [1, 1, 2, 2]


def test_a_location_may_contain_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    dataset = DatasetRef(str(tmp_path / "link" / "orders.lance"))
    target = ResolvedTable(TableId.parse("orders"), dataset, StorageVersions(dataset))

    commit(target, prepare(target, "append"), "january")
    commit(target, prepare(target, "append"), "february")

    assert rows(target) == [1, 1, 2, 2]


def test_a_data_set_keeps_the_older_naming_scheme(target: ResolvedTable) -> None:
    lance.write_dataset(ROWS, target.dataset.location, enable_v2_manifest_paths=False)

    commit(target, prepare(target, "append"), "january")

    assert rows(target) == [1, 1, 2, 2]
    names = {file.name for file in Path(target.dataset.location, "_versions").glob("*.manifest")}
    assert names == {"1.manifest", "2.manifest"}


class LostResponse(StorageVersions):
    """A store that creates the version, or doesn't, and then fails to respond."""

    def __init__(self, dataset: DatasetRef, creates: bool) -> None:
        super().__init__(dataset)
        self.creates = creates

    def create_table_version(self, request: Mapping[str, Any]) -> Any:
        if self.creates:
            super().create_table_version(request)
        raise ServiceUnavailableError("connection reset")


@pytest.mark.parametrize("creates", [True, False])
def test_an_unknown_result_is_verified_by_reading_back(
    target: ResolvedTable, write: Write, creates: bool
) -> None:
    write("append", "january")
    flaky = ResolvedTable(target.id, target.dataset, LostResponse(target.dataset, creates))
    change = prepare(target, "append")

    if creates:
        assert commit(flaky, change, "february").made_here
        assert rows(target) == [1, 1, 2, 2]
    else:
        with pytest.raises(ServiceUnavailableError):
            commit(flaky, change, "february")
        assert rows(target) == [1, 2]
        assert commit(target, change, "february").made_here


def test_a_commit_whose_reply_was_lost_is_confirmed(target: ResolvedTable) -> None:
    flaky = ResolvedTable(target.id, target.dataset, LostResponse(target.dataset, creates=True))

    made = commit(flaky, prepare(target, "append"), "january")

    records, index = list_records(target.dataset.manifests, "january")
    assert [(one.version, one.confirmed) for one in records] == [(made.commit.version, True)]
    assert index.is_complete


@pytest.mark.parametrize("creates", [True, False])
def test_the_result_of_the_last_attempt_is_verified_too(
    target: ResolvedTable, write: Write, monkeypatch: pytest.MonkeyPatch, creates: bool
) -> None:
    write("append", "january")
    monkeypatch.setattr(committer, "_ATTEMPTS", 1)
    flaky = ResolvedTable(target.id, target.dataset, LostResponse(target.dataset, creates))

    if creates:
        assert commit(flaky, prepare(target, "append"), "february").made_here
    else:
        with pytest.raises(ServiceUnavailableError):
            commit(flaky, prepare(target, "append"), "february")
    assert rows(target) == ([1, 1, 2, 2] if creates else [1, 2])


class Interrupted:
    """Forwards everything; before the first call of a method, another writer commits."""

    def __init__(self, inner: Any, method: str, interruption: Callable[[], object]) -> None:
        self._inner, self._method, self._interruptions = inner, method, [interruption]

    def __getattr__(self, name: str) -> Any:
        if name == self._method and self._interruptions:
            self._interruptions.pop()()
        return getattr(self._inner, name)


@pytest.mark.parametrize("first_write", [True, False], ids=["on-first-write", "on-append"])
@pytest.mark.parametrize("moment", ["apply_to", "create_table_version"])
def test_a_commit_is_retried_after_a_conflict(
    target: ResolvedTable, write: Write, first_write: bool, moment: str
) -> None:
    before = [] if first_write else [1, 2]
    if before:
        write("append", "december")
    other = prepare(target, "append", pa.table({"n": [7]}))
    commit_other = functools.partial(commit, target, other, "january")
    versions = Interrupted(StorageVersions(target.dataset), moment, commit_other)
    change = Interrupted(prepare(target, "append"), moment, commit_other)

    outcome = commit(ResolvedTable(target.id, target.dataset, versions), change, "february")

    assert outcome.made_here
    assert outcome.commit.version == (2 if first_write else 3)
    assert rows(target) == sorted([*before, 1, 2, 7])
    assert staged_manifests(target) == []


def test_a_concurrent_commit_with_the_same_key_is_found(target: ResolvedTable, write: Write) -> None:
    write("append", "december")
    twin = prepare(target, "append")
    commit_other = functools.partial(commit, target, twin, "january")
    versions = Interrupted(StorageVersions(target.dataset), "create_table_version", commit_other)
    interrupted = ResolvedTable(target.id, target.dataset, versions)

    outcome = commit(interrupted, prepare(target, "append"), "january")

    assert (outcome.made_here, outcome.commit.version) == (False, 2)
    assert rows(target) == [1, 1, 2, 2]
