"""Idempotency keys that the metastore remembers, when the versions that carried them were cleaned up."""

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import lance_namespace
import pytest
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest, DescribeTableRequest
from lance_namespace.errors import ServiceUnavailableError

from airflow_provider_lancens.namespace.writes import KEPT, Write, digest
from airflow_provider_lancens.spark import find_write
from airflow_provider_lancens.spark.commit import Committer
from airflow_provider_lancens.spark.history import Counts
from airflow_provider_lancens.spark.target import Target, described
from tests.unit.spark.conftest import prepare

WRITES = "lancens.writes"
SERVERS = {
    "hive": ("metastore", "Hive2Namespace"),
    "hive-without-compare-and-set": ("hms3", "Hive2Namespace"),
    "hive-4": ("hms4", "Hive2Namespace"),
    "glue": ("glue", "GlueNamespace"),
}
COMPARING = [
    "hive/storage",
    "hive/impl",
    "glue/storage",
    "glue/impl",
    pytest.param("hive-4/storage", marks=pytest.mark.slow),
    pytest.param("hive-4/impl", marks=pytest.mark.slow),
]
NOT_COMPARING = pytest.param("hive-without-compare-and-set/storage", marks=pytest.mark.slow)
KINDS = [*COMPARING, NOT_COMPARING]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """A server, and who decides the table's versions."""
    return str(request.param)


@pytest.fixture
def namespace(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> Iterator[Any]:
    fixture, name = SERVERS[kind.partition("/")[0]]
    server = request.getfixturevalue(fixture)
    properties = server.properties if name == "GlueNamespace" else {"uri": server.uri}
    impl = f"airflow_provider_lancens.namespace.{name}"
    with closing(lance_namespace.connect(impl, {**properties, "root": str(tmp_path)})) as connected:
        yield connected


@pytest.fixture
def table(namespace: Any, database: str, kind: str) -> str:
    namespace.create_namespace(CreateNamespaceRequest(id=[database]))
    properties = {"managed_by": kind.partition("/")[2], "team": "search"}
    namespace.declare_table(DeclareTableRequest(id=[database, "orders"], properties=properties))
    return f"{database}$orders"


@pytest.fixture
def target(namespace: Any, table: str) -> Iterator[Target]:
    with described(namespace, table) as found:
        yield found


def write_side_by_side(target: Target, *keys: str) -> None:
    threads = [threading.Thread(target=write, args=(target, key)) for key in keys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def write(target: Target, key: str) -> int:
    """Two rows; the version that they made."""
    return Committer(target, key, Counts(2, 1, 100)).commit(prepare(target, "append")).commit.version


def clean_up(target: Target) -> None:
    """Leave the newest version alone."""
    lance.dataset(target.dataset.location).cleanup_old_versions(older_than=timedelta(0))


def parameters(target: Target) -> dict[str, str]:
    assert target.memory is not None
    asked = DescribeTableRequest(id=target.parts)
    return dict(target.memory.describe_table(asked).properties)  # type: ignore[attr-defined]


def remembered(target: Target) -> list[int]:
    return [fields[1] for fields in json.loads(parameters(target).get(WRITES, "[]"))]


def test_a_key_is_found_when_its_version_was_cleaned_up(target: Target, namespace: Any, table: str) -> None:
    for key in ("january", "february", "march"):
        write(target, key)
    clean_up(target)

    found = find_write(namespace, table, "january")

    assert found is not None
    assert (found.version, found.rows, found.files, found.bytes) == (1, 2, 1, 100)
    assert not Committer(target, "january", Counts()).commit(prepare(target, "append")).made_here
    assert target.latest_version() == 3
    assert find_write(namespace, table, "april") is None


def test_a_rerun_heals_what_died_between_commit_and_record(
    target: Target, namespace: Any, table: str
) -> None:
    write(replace(target, memory=None), "january")
    assert remembered(target) == []

    find_write(namespace, table, "january")

    assert remembered(target) == [1]


def test_the_newest_stay_within_what_a_database_holds(target: Target) -> None:
    assert target.memory is not None
    far = 10**19
    for number in range(KEPT + 4):
        note = Write(digest(f"k{number}"), far + number, "f" * 32, far, far, far)
        target.memory.note_write(target.parts, note)

    assert remembered(target) == [far + number for number in reversed(range(4, KEPT + 4))]
    assert len(parameters(target)[WRITES]) < 4000
    assert parameters(target)["team"] == "search"


def test_what_is_remembered_already_changes_nothing(target: Target) -> None:
    write(target, "january")
    before = parameters(target)

    write(target, "january")

    assert parameters(target) == before


@pytest.mark.parametrize("kind", ["hive/storage", "glue/storage", "glue/impl"], indirect=True)
def test_notes_at_the_same_time_all_stay(target: Target) -> None:
    assert target.memory is not None
    first, *others = [Write(digest(f"k{number}"), number) for number in range(2, 9)]
    target.memory.note_write(target.parts, first)
    threads = [threading.Thread(target=target.memory.note_write, args=(target.parts, n)) for n in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert remembered(target) == [8, 7, 6, 5, 4, 3, 2]


@pytest.mark.parametrize("kind", COMPARING, indirect=True)
def test_notes_and_commits_at_the_same_time_lose_nothing(target: Target) -> None:
    write(target, "first")

    write_side_by_side(target, "second", "third", "fourth", "fifth")

    assert lance.dataset(target.dataset.location).count_rows() == 10
    assert target.latest_version() == 5
    assert remembered(target) == [5, 4, 3, 2, 1]


@pytest.mark.parametrize("kind", [NOT_COMPARING], indirect=True)
def test_a_note_that_a_race_lost_without_compare_and_set_is_brought_back_by_a_rerun(target: Target) -> None:
    write(target, "first")
    keys = ["second", "third", "fourth", "fifth"]
    write_side_by_side(target, *keys)

    again = {write(target, key) for key in keys}

    assert lance.dataset(target.dataset.location).count_rows() == 10
    assert (target.latest_version(), again) == (5, {2, 3, 4, 5})
    assert remembered(target) == [5, 4, 3, 2, 1]


@pytest.mark.parametrize("kind", ["hive/storage"], indirect=True)
def test_what_a_restore_took_back_is_not_found_after_a_clean_up(
    target: Target, namespace: Any, table: str
) -> None:
    for key in ("january", "february"):
        write(target, key)
    target.open(1).restore()
    dataset = lance.dataset(target.dataset.location)
    dataset.tags.create("kept", 1)
    dataset.cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)

    assert find_write(namespace, table, "february") is None
    assert find_write(namespace, table, "january") is not None


@pytest.mark.parametrize("kind", ["hive/storage"], indirect=True)
def test_a_new_data_set_knows_nothing_of_the_one_before(target: Target, namespace: Any, table: str) -> None:
    for key in ("january", "february"):
        write(target, key)
    for file in sorted(Path(target.dataset.location).rglob("*"), reverse=True):
        file.unlink() if file.is_file() else file.rmdir()

    assert find_write(namespace, table, "february") is None
    assert write(target, "march") == 1
    assert remembered(target) == [1]


@pytest.mark.parametrize("kind", ["hive/storage"], indirect=True)
def test_properties_of_another_entry_bring_no_keys(target: Target, namespace: Any, database: str) -> None:
    write(target, "january")
    asked = DeclareTableRequest(id=[database, "copy"], properties=parameters(target))

    namespace.declare_table(asked)

    with described(namespace, f"{database}$copy") as copy:
        assert remembered(copy) == []


class Away:
    """A metastore that goes away once a commit is made."""

    def note_write(self, *_: object) -> None:
        raise ServiceUnavailableError("connection refused")

    def find_write(self, *_: object) -> None:
        return None


@pytest.mark.parametrize("kind", ["hive/storage", "hive/impl"], indirect=True)
def test_a_commit_stands_where_the_metastore_goes_away_after_it(
    target: Target, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    memory: Any = Away()

    assert write(replace(target, memory=memory), "january") == 1

    assert "version 1 is committed" in caplog.text
    # Where the metastore decides, the commit itself carries the key there.
    assert remembered(target) == ([1] if kind == "hive/impl" else [])
