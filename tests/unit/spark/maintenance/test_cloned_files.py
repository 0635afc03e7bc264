"""When registered clones are looked up before files are removed, what that costs, and what is refused."""

import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import PermissionDeniedError, ServiceUnavailableError, UnsupportedOperationError

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace.metastore_protocol import Namespace
from airflow_provider_lancens.namespace.storage.clones import Clones
from airflow_provider_lancens.namespace.storage.version_removals import REMOVALS
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
from airflow_provider_lancens.spark.maintenance.orphans import remove_orphans
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from tests.servers.s3_double import S3Double
from tests.unit.spark.commit.memory_lake import NAME, Lake
from tests.unit.spark.maintenance.ages import DAY

NOW = timedelta(0)
ROWS = pa.table({"row": [1, 2, 3]})


@pytest.fixture
def lake() -> Iterator[Lake]:
    """A table with two versions in a metastore with two databases."""
    with S3Double() as s3:
        lake = Lake(s3)
        for database in ("db", "web"):
            lake.metastore.create_namespace(Namespace(NamespaceId.parse(database)))
        lake.declare("storage")
        write(lake, "append")
        write(lake, "append")
        yield lake


def location(lake: Lake) -> str:
    return str(lake.namespace.describe_table({"id": ["db", "t"]}).location)


def dataset(lake: Lake) -> lance.LanceDataset:
    return lance.dataset(location(lake), storage_options=lake.s3.storage, session=lance.Session())


def write(lake: Lake, mode: Any) -> None:
    lance.write_dataset(ROWS, location(lake), mode=mode, storage_options=lake.s3.storage)


def clone(lake: Lake, name: str = "copy") -> str:
    """Register a clone in another database; return its location."""
    source, target = dataset(lake), f"s3://lake/{name}.lance"
    source.shallow_clone(target, source.version, storage_options=lake.s3.storage)
    lake.namespace.register_table({"id": ["web", name], "location": target})
    return target


def clean_up(lake: Lake, **arguments: Any) -> Any:
    return clean_up_versions(lake.namespace, NAME, **{"older_than": NOW, **arguments})


def requests(lake: Lake, **arguments: Any) -> int:
    with lake.s3.counted() as counted:
        clean_up(lake, **arguments)
    return sum(counted.values())


@pytest.mark.parametrize("dry_run", [False, True])
def test_no_clone_is_looked_up_if_no_file_is_removed(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, dry_run: bool
) -> None:
    clone(lake)
    monkeypatch.setattr(ResolvedTable, "clones", lambda _: pytest.fail("clones were looked up"))

    # The data of the older version is in the newer one, too: its manifest and transaction are removed.
    assert clean_up(lake, dry_run=dry_run).versions == 1
    assert clean_up(lake, dry_run=dry_run).files == 0
    assert remove_orphans(lake.namespace, NAME, older_than=DAY, dry_run=dry_run).paths == ()


def test_what_the_look_up_costs(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    write(lake, "overwrite")
    clean_up(lake, older_than=DAY)  # settles what later ones find settled
    nothing = requests(lake, older_than=DAY)
    dry_run = requests(lake, dry_run=True)
    with monkeypatch.context() as patched:
        patched.setattr(ResolvedTable, "clones", lambda _: Clones())
        assert requests(lake, older_than=DAY) == nothing
        assert requests(lake, dry_run=True) == dry_run  # there is no other table
    write(lake, "append")
    clone(lake)
    with monkeypatch.context() as patched:
        patched.setattr(ResolvedTable, "clones", lambda _: Clones())
        without = requests(lake, dry_run=True)
    assert 0 < requests(lake, dry_run=True) - without <= 3  # the newest manifest of the one other table


def test_files_are_removed_with_a_warning_if_no_table_may_be_listed(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def denied(*_: object, **__: object) -> None:
        raise PermissionDeniedError("glue:GetTables")

    monkeypatch.setattr(type(lake.metastore), "scan_tables", denied)
    monkeypatch.setattr(type(lake.metastore), "list_namespaces", denied)
    write(lake, "overwrite")
    caplog.set_level(logging.WARNING)

    assert clean_up(lake).files == 2
    assert (
        "a shallow clone may refer to files that are removed: the tables of db can't be listed" in caplog.text
    )
    assert "the databases can't be listed: glue:GetTables" in caplog.text


def test_nothing_is_removed_while_the_metastore_does_not_answer(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable(*_: object, **__: object) -> None:
        raise ServiceUnavailableError("no answer")

    clone(lake)
    write(lake, "overwrite")
    with monkeypatch.context() as patched:
        patched.setattr(type(lake.metastore), "scan_tables", unavailable)
        with pytest.raises(ServiceUnavailableError, match="no answer"):
            clean_up(lake)

    keys = [key for key in lake.s3.bucket.objects if REMOVALS in key]
    assert (keys, len(dataset(lake).version_refs())) == ([], 3)
    removed = clean_up(lake)
    assert (removed.versions, removed.files, removed.clones) == (2, 0, ("web$copy",))


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_table_with_branches_and_clones_is_not_cleaned_up(lake: Lake, dry_run: bool) -> None:
    target = clone(lake)
    dataset(lake).create_branch("experiment", 2)
    write(lake, "overwrite")

    with pytest.raises(UnsupportedOperationError, match=r"table web\$copy is a shallow clone that refers to"):
        clean_up(lake, dry_run=dry_run)

    assert len(dataset(lake).version_refs()) == 3
    lake.namespace.drop_table({"id": ["web", "copy"]})
    assert clean_up(lake, dry_run=dry_run).clones == ()
    assert not [key for key in lake.s3.bucket.objects if Path(target).name in key]


def test_a_dry_run_counts_what_the_clean_up_then_removes(lake: Lake) -> None:
    clone(lake)
    write(lake, "overwrite")
    write(lake, "overwrite")

    planned, removed = clean_up(lake, dry_run=True), clean_up(lake)

    counts = [(one.versions, one.files, one.bytes, one.clones) for one in (planned, removed)]
    assert counts[0] == counts[1]
    assert counts[0][:2] == (3, 1)
    assert counts[0][3] == ("web$copy",)
    copy = lance.dataset("s3://lake/copy.lance", storage_options=lake.s3.storage, session=lance.Session())
    assert copy.to_table()["row"].to_pylist() == [1, 2, 3] * 2
