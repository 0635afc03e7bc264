"""Idempotency keys of tables in a metastore, across clean-ups, drops and lost records."""

import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import lance_namespace
import pytest
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest, DropTableRequest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.spark.commit.committer import Committer
from airflow_provider_lancens.spark.keys import Counts, KeyAttempts, KeyedWrite
from airflow_provider_lancens.spark.keys.commit_lineage import Lineage
from airflow_provider_lancens.spark.keys.key_lookup import find_write
from airflow_provider_lancens.spark.keys.key_records import INDEX
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable, resolved_table
from tests.support.prepared_tables import prepare

SERVERS = {
    "hive": ("metastore", "Hive2Namespace"),
    "hive-4": ("hms4", "Hive2Namespace"),
    "glue": ("glue", "GlueNamespace"),
}
KINDS = [
    "hive/storage",
    "hive/impl",
    "glue/impl",
    pytest.param("glue/storage", marks=pytest.mark.long),
    pytest.param("hive-4/storage", marks=pytest.mark.long),
    pytest.param("hive-4/impl", marks=pytest.mark.long),
]
NOW = timedelta(0)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """A server, and the table's version authority."""
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
def declare(namespace: Any, database: str, kind: str) -> Any:
    """Return a function that declares the table."""
    namespace.create_namespace(CreateNamespaceRequest(id=[database]))

    def declare() -> str:
        properties = {"managed_by": kind.partition("/")[2]}
        namespace.declare_table(DeclareTableRequest(id=[database, "orders"], properties=properties))
        return f"{database}$orders"

    return declare


@pytest.fixture
def table(declare: Any) -> str:
    return str(declare())


@pytest.fixture
def target(namespace: Any, table: str) -> Iterator[ResolvedTable]:
    with resolved_table(namespace, table) as found:
        yield found


def write(target: ResolvedTable, key: str) -> int:
    """Commit two rows, and return the version."""
    committer = Committer(target, KeyedWrite(key), Counts(2, 1, 100))
    return committer.commit(prepare(target, "append")).commit.version


def test_a_key_is_found_after_its_version_was_cleaned_up(
    target: ResolvedTable, namespace: Any, table: str
) -> None:
    for key in ("january", "february", "march"):
        write(target, key)
    clean_up_versions(namespace, table, older_than=NOW)

    found = find_write(namespace, table, "january")

    assert found is not None
    assert (found.version, found.written, found.files, found.bytes) == (1, 2, 1, 100)
    assert not Committer(target, KeyedWrite("january"), Counts()).commit(prepare(target, "append")).made_here
    assert target.latest_version() == 3
    assert find_write(namespace, table, "april") is None


def test_concurrent_writers_commit_each_key_once(target: ResolvedTable, namespace: Any, table: str) -> None:
    write(target, "first")
    keys = ["second", "third", "second", "third"]
    threads = [threading.Thread(target=write, args=(target, key)) for key in keys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert lance.dataset(target.dataset.location).count_rows() == 6
    assert {write(target, key) for key in ("second", "third")} == {2, 3}
    assert target.latest_version() == 3


@pytest.mark.parametrize("kind", ["hive/storage", "hive/impl"], indirect=True)
def test_a_recreated_table_has_no_keys(
    target: ResolvedTable, namespace: Any, declare: Any, database: str
) -> None:
    for key in ("january", "february"):
        write(target, key)
    namespace.drop_table(DropTableRequest(id=[database, "orders"]))
    assert not Path(target.dataset.location).exists()

    table = declare()

    assert find_write(namespace, table, "february") is None
    with resolved_table(namespace, table) as again:
        assert write(again, "january") == 1


@pytest.mark.parametrize("kind", ["hive/impl"], indirect=True)
def test_expired_keys_are_refused_and_others_found(target: ResolvedTable, namespace: Any, table: str) -> None:
    for key in ("january", "february"):
        write(target, key)

    assert (
        clean_up_versions(namespace, table, older_than=NOW, keys_older_than=timedelta(days=1)).expired_keys
        == 0
    )
    assert (
        clean_up_versions(namespace, table, older_than=NOW, keys_older_than=NOW, dry_run=True).expired_keys
        == 0
    )
    assert find_write(namespace, table, "january") is not None
    assert clean_up_versions(namespace, table, older_than=NOW, keys_older_than=NOW).expired_keys == 2

    with pytest.raises(InvalidInputError, match="'january' was committed, and has expired"):
        find_write(namespace, table, "january")
    write(target, "march")
    assert find_write(namespace, table, "march") is not None
    assert find_write(namespace, table, "january", on_existing_key="write_again") is None


@pytest.mark.parametrize("kind", ["hive/storage", "hive/impl"], indirect=True)
def test_the_keys_of_kept_versions_are_found_without_their_records(
    target: ResolvedTable, namespace: Any, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Lineage, "text", lambda _: "")  # nothing else says that february was committed
        for key in ("january", "february", "march"):
            write(target, key)
    lance.dataset(target.dataset.location).cleanup_old_versions(older_than=NOW)
    forget_keys(Path(target.dataset.location))

    found = [find_write(namespace, table, key) for key in ("january", "february", "march")]

    assert [one and one.version for one in found] == [None, None, 3]


def test_an_announced_commit_that_was_never_made_is_not_found(
    target: ResolvedTable, namespace: Any, table: str
) -> None:
    write(target, "january")
    attempts = KeyAttempts(target, KeyedWrite("february"))
    attempts.announce(attempts.next_commit(2, Counts(2, 1, 100)))

    assert find_write(namespace, table, "february") is None
    assert write(target, "february") == 2
    found = find_write(namespace, table, "february")
    assert found is not None
    assert found.version == 2


def forget_keys(folder: Path) -> None:
    """Remove the records, as of a copy of the dataset alone."""
    for name in ("keys", INDEX.rpartition("/")[2]):
        for file in sorted((folder / "_lancens" / name).rglob("*"), reverse=True):
            file.unlink() if file.is_file() else file.rmdir()
