from datetime import UTC, datetime, timedelta

import lance
import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.namespace.storage.table_files import TableFiles
from airflow_provider_lancens.spark.keys.key_expiry import maintain_keys
from airflow_provider_lancens.spark.keys.key_records import KEYS, ExpiredKeys, digest
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from tests.unit.spark.keys.keyed import Attempt, commit, files_of, find, touch

FUTURE = datetime.now(UTC) + timedelta(days=1)
PAST = datetime.now(UTC) - timedelta(days=1)


def maintain(target: ResolvedTable, before: datetime | None = None) -> int:
    latest = target.open_latest()
    assert latest is not None
    return maintain_keys(target, latest, before)


def clean_up(target: ResolvedTable) -> None:
    lance.dataset(target.dataset.location).cleanup_old_versions(older_than=timedelta(0))


def records(target: ResolvedTable) -> list[str]:
    return sorted(file.path for page in files_of(target).all_below(KEYS) for file in page)


def test_attempts_are_settled_before_their_versions_are_removed(target: ResolvedTable) -> None:
    commit(target, "january")
    Attempt(target, "february").announce().commit()
    Attempt(target, "march").announce()  # its driver is killed before the commit
    commit(target, "april")
    assert find(target, "other") is None

    maintain(target)
    clean_up(target)

    found = [find(target, key) for key in ("january", "february", "march", "april")]
    assert found == [1, 2, None, 3]
    assert not any(digest("march") in path for path in records(target))


def test_a_running_attempt_keeps_its_record(target: ResolvedTable) -> None:
    commit(target, "january")
    running = Attempt(target, "february").announce()

    maintain(target, before=FUTURE)
    running.commit()

    assert find(target, "february") == 2


def test_an_expired_key_is_refused(target: ResolvedTable) -> None:
    for key in ("january", "february"):
        commit(target, key)

    assert maintain(target, before=PAST) == 0
    assert [find(target, key) for key in ("january", "february")] == [1, 2]
    assert maintain(target, before=FUTURE) == 2

    for key in ("january", "february"):
        with pytest.raises(InvalidInputError, match=f"'{key}' was committed, and has expired.*write_again"):
            find(target, key)
    assert find(target, "march") is None
    assert records(target) == []


def test_an_attempt_that_was_never_committed_does_not_expire(target: ResolvedTable) -> None:
    commit(target, "january")
    Attempt(target, "february").announce()
    touch(target)

    maintain(target, before=FUTURE)

    assert find(target, "february") is None


def test_a_key_that_was_written_again_after_it_expired_is_found(target: ResolvedTable) -> None:
    commit(target, "january")
    maintain(target, before=FUTURE)

    commit(target, "january")

    assert find(target, "january") == 2


def test_expired_keys_accumulate_in_one_file(target: ResolvedTable) -> None:
    keys = ExpiredKeys(files_of(target))
    commit(target, "january")
    keys.add("ab", {"ab1", "ab2"})
    keys.add("ab", {"ab3", "ab2"})

    assert [keys.contain(one) for one in ("ab1", "ab2", "ab3", "ab4", "cd1")] == [True] * 3 + [False] * 2
    assert len(files_of(target).below("_lancens/expired-keys/ab")) == 1


@pytest.mark.parametrize("step", range(1, 6))
def test_an_expiry_killed_at_any_step_loses_no_key(
    target: ResolvedTable, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    for key in ("january", "february"):
        commit(target, key)
    assert find(target, "march") is None
    with monkeypatch.context() as patch:
        killed_at_change(patch, step)
        with pytest.raises(KeyboardInterrupt):
            maintain(target, before=FUTURE)

    for key in ("january", "february"):
        assert is_known(target, key)
    maintain(target, before=FUTURE)
    for key in ("january", "february"):
        with pytest.raises(InvalidInputError, match="has expired"):
            find(target, key)


def is_known(target: ResolvedTable, key: str) -> bool:
    try:
        return find(target, key) is not None
    except InvalidInputError:
        return True


def killed_at_change(patch: pytest.MonkeyPatch, number: int) -> None:
    """Kill the driver at the n-th change of the storage, and at each further one."""
    changes: list[str] = []

    def counted(name: str) -> object:
        real = getattr(TableFiles, name)

        def change(self: TableFiles, *arguments: object) -> object:
            changes.append(name)
            if len(changes) >= number:
                raise KeyboardInterrupt
            return real(self, *arguments)

        return change

    for name in ("put", "remove"):
        patch.setattr(TableFiles, name, counted(name))
