"""What keys write after versions, or the records of keys, were lost."""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError, InvalidTableStateError

from airflow_provider_lancens import connect
from airflow_provider_lancens.namespace.storage.object_store import RECORDED
from airflow_provider_lancens.spark.commit.committer import CommitOutcome
from airflow_provider_lancens.spark.keys.key_expiry import maintain_keys
from airflow_provider_lancens.spark.keys.key_records import EXPIRED_KEYS, KeyIndex, digest, folder_of
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from tests.support.prepared_tables import ROWS
from tests.unit.spark.keys.keyed import files_of, find, touch

Write = Callable[..., CommitOutcome]


def lose_newest(target: ResolvedTable) -> None:
    version = target.latest_version() or 0
    versions = Path(target.dataset.location, "_versions")
    (versions / f"{2**64 - 1 - version}.manifest").unlink()
    (versions / "latest_version_hint.json").unlink(missing_ok=True)


def clean_up_by_others(target: ResolvedTable) -> None:
    lance.dataset(target.dataset.location).cleanup_old_versions(timedelta(0))


def clean_up(target: ResolvedTable) -> None:
    latest = target.open_latest()
    assert latest is not None
    maintain_keys(target, latest)
    clean_up_by_others(target)


@pytest.mark.parametrize("clean_up", [clean_up, clean_up_by_others])
def test_a_key_whose_version_was_lost_and_given_again_writes_again(
    target: ResolvedTable, write: Write, clean_up: Callable[[ResolvedTable], None]
) -> None:
    write("append", "january")
    write("append", "february")
    lose_newest(target)
    write("append", "march")
    write("append", "april")
    clean_up(target)

    assert find(target, "february") is None
    assert [find(target, key) for key in ("january", "march", "april")] == [1, 2, 3]


def test_a_key_whose_number_only_others_have_taken_is_refused_where_nothing_shows_it(
    target: ResolvedTable, write: Write
) -> None:
    write("append", "january")
    write("append", "february")
    lose_newest(target)
    touch(target, 2)
    clean_up_by_others(target)

    assert find(target, "january") == 1
    with pytest.raises(InvalidTableStateError, match=r"cannot determine.*'february'"):
        find(target, "february")


@pytest.mark.parametrize("clean_up", [clean_up, clean_up_by_others])
def test_a_lost_restore_has_undone_nothing(
    target: ResolvedTable, write: Write, clean_up: Callable[[ResolvedTable], None]
) -> None:
    for key in ("january", "february", "march"):
        write("append", key)
    target.open(1).restore()
    assert find(target, "february") is None
    clean = target.open_latest()
    assert clean is not None
    maintain_keys(target, clean)
    lose_newest(target)
    write("append", "april")
    write("append", "may")
    clean_up(target)

    assert [find(target, key) for key in ("january", "february", "march", "april")] == [1, 2, 3, 4]


@pytest.mark.parametrize("suffix", ["", ".committed"])
def test_one_object_of_a_key_suffices(target: ResolvedTable, write: Write, suffix: str) -> None:
    for key in ("january", "february", "march"):
        write("append", key)
    clean_up_by_others(target)
    folder = Path(target.dataset.location, folder_of(digest("february")))
    [lost] = [file for file in folder.iterdir() if file.name.endswith(".committed") == bool(suffix)]
    lost.unlink()

    assert find(target, "february") == 2


def test_after_a_loss_of_all_records_kept_versions_show_their_keys(
    target: ResolvedTable, write: Write
) -> None:
    for key in ("january", "february"):
        write("append", key)
    shutil.rmtree(Path(target.dataset.location, RECORDED))

    assert [find(target, key) for key in ("january", "february", "march")] == [1, 2, None]


def test_after_a_loss_of_all_records_and_versions_keys_are_refused_until_that_is_accepted(
    target: ResolvedTable, write: Write
) -> None:
    for key in ("january", "february"):
        write("append", key)
    clean_up_by_others(target)
    shutil.rmtree(Path(target.dataset.location, RECORDED))

    assert find(target, "february") == 2
    for key in ("january", "march"):
        with pytest.raises(InvalidTableStateError, match=r"records of keys.*were removed.*accept_lost_keys"):
            find(target, key)
    index = KeyIndex.of(files_of(target))
    assert index.has_lost
    index.accept_lost()
    assert find(target, "march") is None
    assert not KeyIndex.of(files_of(target)).has_lost


def test_a_key_without_records_cannot_be_confirmed_after_their_loss(tmp_path: Path) -> None:
    table = connect("dir", {"root": str(tmp_path)}).declare_table("orders")
    for key in ("january", "february"):
        table.append(pa.table({"id": [1]}), key=key)
    table.expire_versions(older_than=timedelta(0))
    shutil.rmtree(Path(table.location.removeprefix("file://"), RECORDED))

    with pytest.raises(InvalidTableStateError, match=r"cannot determine whether .*'january' was committed"):
        table.append(pa.table({"id": [1]}), key="january")
    with pytest.raises(
        InvalidInputError, match="'january' can't be confirmed, since no record of it is left"
    ):
        table.confirm_write("january")
    with pytest.raises(InvalidInputError, match="no write under idempotency key 'february' is in doubt"):
        table.confirm_write("february")


def test_a_table_that_never_had_records_isnt_taken_for_one_that_lost_them(
    target: ResolvedTable, write: Write
) -> None:
    lance.write_dataset(ROWS, target.dataset.location)
    touch(target)
    clean_up_by_others(target)
    write("append", "january")

    assert find(target, "february") is None


def test_a_damaged_list_of_expired_keys_refuses_the_keys_that_may_have_been_in_it(
    target: ResolvedTable, write: Write
) -> None:
    write("append", "january")
    latest = target.open_latest()
    assert latest is not None
    maintain_keys(target, latest, datetime.now(UTC) + timedelta(days=1))
    [shard] = Path(target.dataset.location, EXPIRED_KEYS).glob("*/*")
    with pytest.raises(InvalidInputError, match="has expired"):
        find(target, "january")
    shard.write_bytes(b"")

    with pytest.raises(InvalidTableStateError, match="has lost content"):
        find(target, "january")


def test_keys_are_known_after_a_clean_up_has_removed_the_segment_that_a_commit_refers_to(
    target: ResolvedTable, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_provider_lancens.spark.keys.key_attempts.LONG", 4)
    for number in range(6):
        write("append", f"day-{number}")
    lance.dataset(target.dataset.location).optimize.compact_files()
    write("append", "last")
    clean_up(target)
    write("append", "next")
    clean_up_by_others(target)

    assert [find(target, key) for key in ("day-0", "day-5", "new")] == [1, 6, None]
