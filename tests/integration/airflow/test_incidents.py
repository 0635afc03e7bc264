"""The recipes of `docs/incidents.md`, played: each incident is caused, and what the page says is done."""
# ruff: noqa: T201  (the page prints)

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Literal

import lance
import pyarrow as pa
import pytest

from airflow_provider_lancens import LanceCatalog, Table, WriteIdentity
from airflow_provider_lancens.hooks import LanceHook
from airflow_provider_lancens.hooks.airflow_errors import AirflowException, AirflowFailException
from airflow_provider_lancens.namespace import Hive2Namespace

ORDERS = pa.table({"id": [1, 2, 3], "amount": [5.0, 7.5, 2.0]})


@pytest.fixture
def orders(lake: str, database: str) -> Table:
    """A table without data."""
    catalog = LanceHook(lake).catalog()
    catalog.create_namespace(database)
    return catalog.declare_table(f"{database}.orders")


@pytest.fixture
def managed_orders(lake: str, database: str) -> Table:
    """The same, whose versions the catalog decides."""
    catalog = LanceHook(lake).catalog()
    catalog.create_namespace(database)
    return catalog.declare_table(f"{database}.orders", version_authority="catalog")


def test_the_commit_that_made_the_number_of_rows_wrong_is_found_and_undone(
    orders: Table, capsys: pytest.CaptureFixture[str]
) -> None:
    orders.append(ORDERS, key="orders of 2026-11-01")
    orders.append(ORDERS, key="orders of 2026-11-02")
    orders.delete("TRUE")  # by mistake, and without a key
    table = orders
    # [START what_made_each_version]
    for one in table.history(limit=50):
        print(one.version, one.committed_at, one.operation, one.inserted, one.updated, one.deleted, one.key)
    # [END what_made_each_version]
    printed = [line.split(maxsplit=3) for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in printed] == ["3", "2", "1"]
    assert "delete" in printed[0][3]
    assert "once-" in printed[0][3]
    assert "orders of 2026-11-02" in printed[1][3]
    wrong = 3
    # [START undo_a_version]
    assert table.at(wrong).count_rows() < table.at(wrong - 1).count_rows()
    undone = table.restore(wrong - 1).undone
    # [END undo_a_version]
    assert [(one.version, one.deleted) for one in undone] == [(3, 6)]
    assert table.count_rows() == 6


def test_rows_that_two_runs_appended_are_there_once_again(orders: Table) -> None:
    orders.append(ORDERS, key="scheduled")
    orders.append(ORDERS, key="manual")
    orders.append(ORDERS.slice(0, 1), key="next day")
    table = orders
    # [START remove_duplicates]
    doubled = table.find_write("manual")
    undone = table.restore(doubled.version - 1).undone
    print([one.key for one in undone])  # clear the tasks of these, but for the one that is too many
    # [END remove_duplicates]
    assert [one.key for one in undone] == ["manual", "next day"]
    table.append(ORDERS.slice(0, 1), key="next day")
    assert table.count_rows() == 4


def test_rows_that_the_source_had_twice_are_replaced_when_the_task_is_cleared(orders: Table) -> None:
    orders.append(pa.concat_tables([ORDERS, ORDERS]), key=WriteIdentity("day", execution_id="first run"))
    orders.append(ORDERS, key="next day")
    assert orders.append(ORDERS, key=WriteIdentity("day", execution_id="cleared")).outcome == "done"
    assert orders.count_rows() == 6


def test_a_write_that_another_execution_made_is_found_by_its_key(orders: Table) -> None:
    first_run = "first run"
    first = orders.append(ORDERS, key=WriteIdentity("orders of 2026-11-01", execution_id=first_run))
    again = WriteIdentity("orders of 2026-11-01", on_existing_key="skip", execution_id="another run")
    assert orders.append(ORDERS, key=again).outcome == "skipped"
    assert orders.append(ORDERS, key=replace(again, execution_id=first_run)).outcome == "found"
    assert orders.append(ORDERS.slice(0, 0)).outcome == "unchanged"
    assert orders.append(ORDERS, stage=True).outcome == "staged"
    table = orders
    # [START find_a_write]
    written = table.find_write("orders of 2026-11-01")
    assert written is not None  # None: no version of the table has it, or a restore has undone it
    print(written.version, written.inserted, table.at(written.version).count_rows())
    # [END find_a_write]
    assert written.version == first.version

    table.overwrite(ORDERS.slice(0, 0))
    assert table.find_write("orders of 2026-11-01") is not None
    assert table.count_rows() == 0


def test_a_wait_for_what_was_committed_without_the_catalog_ends(managed_orders: Table, lake: str) -> None:
    table = managed_orders
    table.append(ORDERS)
    lance.write_dataset(ORDERS, table.location, mode="append")  # by path
    # [START why_does_a_wait_not_end]
    print(table.version)  # the version that sensors see
    print([(one.version, one.operation) for one in table.history(limit=10)])  # maintenance ends no wait
    print(table.indices())  # with `index=`: `unindexed_rows` must be 0
    print(table.check(if_inconsistent="report").verdict)  # `storage_ahead`: somebody wrote by path
    # [END why_does_a_wait_not_end]
    assert (table.version, table.check(if_inconsistent="report").verdict) == (1, "storage_ahead")
    # [START adopt]
    table.check(if_inconsistent="adopt")
    # [END adopt]
    assert table.version == 2
    assert table.check().verdict == "consistent"


def test_a_name_that_nobody_declared_is_recognized(orders: Table, lake: str, database: str) -> None:
    lake_of_the_sensor = LanceHook(lake).catalog()
    # [START is_the_name_right]
    print(lake_of_the_sensor.list_databases())
    print(lake_of_the_sensor.table_exists(f"{database}.order"))
    # [END is_the_name_right]
    assert not lake_of_the_sensor.table_exists(f"{database}.order")
    assert lake_of_the_sensor.list_tables(database) == [orders.name]


def test_a_table_that_another_client_dropped_is_registered_again(
    lake: str, tmp_path: Path, namespace: Hive2Namespace
) -> None:
    root = str(tmp_path)
    catalog = LanceHook(lake).catalog()
    catalog.create_namespace("incidents")
    lost = catalog.declare_table("incidents.orders")
    lost.append(ORDERS, key="orders of 2026-11-01")
    lost.tag("audited", 1)
    lost.dataset().create_branch("trial")  # its manifest is the newest one
    dropped = catalog.drop_namespace("incidents", cascade=True)
    assert dropped.is_done  # keeps the data, as another client's drop does
    with pytest.raises(AirflowFailException, match=r"code (1|4),"):
        lost.count_rows()
    hook = LanceHook(lake)
    # [START register_what_is_left]
    from pyarrow.fs import FileSelector, FileSystem

    store, folder = FileSystem.from_uri(f"{root}/incidents.db-lance")
    manifests = [
        one
        for one in store.get_file_info(FileSelector(folder, recursive=True))
        if "/orders-" in one.path and ".lance/_versions/" in one.path
    ]
    newest = max(manifests, key=lambda one: one.mtime).path.partition("/_versions/")[0]

    lake = hook.catalog()
    lake.create_namespace("incidents")
    table = lake.register_table("incidents.orders", newest)  # of a bucket: "s3://" + newest
    print(table.version, table.count_rows(), table.tags())
    # [END register_what_is_left]
    assert (table.version, table.count_rows()) == (1, 3)
    assert [one.name for one in table.tags()] == ["audited"]
    assert table.find_write("orders of 2026-11-01") is not None
    lake.drop_namespace("incidents", cascade=True)


def test_files_that_a_backup_brings_back_under_their_names_repair_the_table(
    orders: Table, tmp_path: Path
) -> None:
    orders.append(ORDERS)
    [lost] = orders.dataset().get_fragments()[0].data_files()
    file, backup = Path(orders.location) / "data" / lost.path, tmp_path / "backup"
    file.rename(backup)
    assert orders.check(if_inconsistent="report").verdict == "files_missing"
    with pytest.raises(AirflowFailException, match="code 19"):
        orders.to_arrow()
    shutil.copy(backup, file)
    assert orders.check().verdict == "consistent"
    assert orders.to_arrow().num_rows == 3


def test_a_version_without_missing_files_is_restored(orders: Table) -> None:
    orders.append(ORDERS, key="orders of 2026-11-01")
    orders.append(ORDERS, key="orders of 2026-11-02")
    [lost] = orders.at(2).dataset().get_fragments()[1].data_files()
    (Path(orders.location) / "data" / lost.path).unlink()
    table = orders
    # [START restore_a_complete_version]
    found = table.check(if_inconsistent="report")
    print(found.missing_files)  # {version: paths}
    repaired = table.restore(found.complete_version)
    print([one.key for one in repaired.undone])  # clear the tasks that made these
    # [END restore_a_complete_version]
    assert (found.verdict, list(found.missing_files), found.complete_version) == ("files_missing", [2], 1)
    assert [one.key for one in repaired.undone] == ["orders of 2026-11-02"]
    assert table.append(ORDERS, key="orders of 2026-11-02").outcome == "done"
    assert table.count_rows() == 6


def first_orders(
    lake: str, database: str, authority: Literal["storage", "catalog"]
) -> tuple[LanceCatalog, Table]:
    """Declare a table of orders, with the rows of a day."""
    catalog = LanceHook(lake).catalog()
    catalog.create_namespace(database)
    table = catalog.declare_table(f"{database}.orders", version_authority=authority)
    table.append(ORDERS, key="orders of 2026-11-01")
    return catalog, table


@pytest.mark.parametrize("authority", ["storage", "catalog"])
def test_a_table_is_recovered_from_a_copy_of_its_folder(
    lake: str, database: str, tmp_path: Path, authority: Literal["storage", "catalog"]
) -> None:
    catalog, table = first_orders(lake, database, authority)
    backup = tmp_path / "backup" / "orders.lance"
    shutil.copytree(table.location, backup)
    table.append(ORDERS, key="orders of 2026-11-02")
    location = table.location
    catalog.drop_table(f"{database}.orders")
    assert not (Path(location) / "_versions").exists()
    name, lake_of_the_backup = f"{database}.orders", LanceHook(lake).catalog()
    # [START recover_from_a_copy]
    shutil.copytree(backup, location, dirs_exist_ok=True)
    recovered = lake_of_the_backup.register_table(name, location)
    recovered.set_version_authority(authority)
    assert recovered.check().verdict == "consistent"
    print([one.key for one in recovered.history()])  # what is there; clear the tasks of what isn't
    # [END recover_from_a_copy]
    assert recovered.count_rows() == 3
    assert recovered.append(ORDERS, key="orders of 2026-11-02").outcome == "done"
    assert recovered.find_write("orders of 2026-11-01") is not None
    assert (recovered.version, recovered.count_rows()) == (2, 6)


@pytest.mark.parametrize("authority", ["storage", "catalog"])
def test_a_copy_that_is_made_while_others_write_is_the_table_at_one_version(
    lake: str, database: str, tmp_path: Path, authority: Literal["storage", "catalog"]
) -> None:
    catalog, table = first_orders(lake, database, authority)
    table.move_bookmark("revenue", 1)
    folder, backup = Path(table.location), tmp_path / "backup"
    for first in ("_refs", "_versions"):
        shutil.copytree(folder / first, backup / first)
    table.append(ORDERS, key="orders of 2026-11-02")
    table.move_bookmark("revenue", 2)
    shutil.copytree(folder, backup, ignore=shutil.ignore_patterns("_refs", "_versions"), dirs_exist_ok=True)
    catalog.drop_table(table.name)

    shutil.copytree(backup, folder, dirs_exist_ok=True)
    recovered = catalog.register_table(table.name, str(folder))
    recovered.set_version_authority(authority)
    assert recovered.check().verdict == "consistent"
    assert recovered.append(ORDERS, key="orders of 2026-11-02").outcome == "done"
    unread = recovered.find_changes("revenue")
    assert (unread.previous_version, unread.version, recovered.count_rows()) == (1, 2, 6)


def test_after_a_loss_of_all_records_a_person_decides_what_is_written_again(orders: Table) -> None:
    orders.append(ORDERS, key="orders of 2026-11-01")
    orders.append(ORDERS, key="orders of 2026-11-02")
    orders.expire_versions(older_than=timedelta(0))
    shutil.rmtree(Path(orders.location) / "_lancens")
    with pytest.raises(AirflowFailException, match="code 19"):
        orders.append(ORDERS, key="orders of 2026-11-03")
    table = orders
    # [START accept_lost_keys]
    print(table.count_rows(filter="id = 1"))  # are the rows of this key there? Then mark the task as success
    table.accept_lost_keys()  # otherwise: all keys without records may write again
    # [END accept_lost_keys]
    assert table.append(ORDERS, key="orders of 2026-11-03").outcome == "done"


def test_a_write_that_nobody_can_vouch_for_is_confirmed_or_made_again(orders: Table) -> None:
    orders.append(ORDERS, key="orders of 2026-11-01")
    for day in ("orders of 2026-11-02", "orders of 2026-11-03"):
        orders.append(ORDERS, key=day)
    # The processes were killed after their commits, and another client, which has no keys, has rewritten the
    # table and removed the versions: nothing shows whether the commits were made.
    for confirmed in Path(orders.location).glob("_lancens/keys/**/*.committed"):
        confirmed.unlink()
    kept = lance.dataset(orders.location).to_table()
    lance.write_dataset(kept.slice(0, 6), orders.location, mode="overwrite")  # the last day's rows are lost
    lance.dataset(orders.location).cleanup_old_versions(older_than=timedelta(0))
    table, key = orders, "orders of 2026-11-02"
    with pytest.raises(AirflowFailException, match=r"Table\.confirm_write.*code 19"):
        table.append(ORDERS, key=key)
    assert table.count_rows() == 6
    # [START confirm_a_write]
    print(table.count_rows(filter="id = 1"))  # are the rows of this key there?
    table.confirm_write(key)  # yes: the next try finds the write, and adds nothing
    # [END confirm_a_write]
    identity = WriteIdentity(key, on_existing_key="skip", execution_id="the next try")
    assert table.append(ORDERS, key=identity).outcome == "skipped"
    assert table.count_rows() == 6

    again = WriteIdentity("orders of 2026-11-03", on_existing_key="write_again", execution_id="the next try")
    assert table.append(ORDERS, key=again).outcome == "done"
    assert table.count_rows() == 9


def test_a_write_that_others_disturb_succeeds_once_they_follow_each_other(orders: Table) -> None:
    orders.append(ORDERS)
    table = orders

    def rows_while_another_writes() -> Iterator[pa.RecordBatch]:
        table.overwrite(pa.table({"id": [1], "amount": [6.0]}), where="id = 1")
        yield from pa.table({"id": [1], "amount": [9.0]}).to_batches()

    disturbed = pa.RecordBatchReader.from_batches(ORDERS.schema, rows_while_another_writes())
    with pytest.raises(AirflowException, match="code 14") as failed:
        table.overwrite(disturbed, where="id = 1", key="correction")
    assert not isinstance(failed.value, AirflowFailException)  # Airflow retries it

    assert table.overwrite(pa.table({"id": [1], "amount": [9.0]}), where="id = 1", key="correction").is_done
    assert sorted(table.to_arrow()["amount"].to_pylist()) == [2.0, 7.5, 9.0]


def test_a_wrong_argument_fails_in_each_try_until_it_is_corrected(orders: Table) -> None:
    orders.append(ORDERS)
    for _ in range(2):
        with pytest.raises(AirflowFailException, match=r"(?s)where: .*code 13"):
            orders.overwrite(ORDERS, where="no_such_column = 1", key="correction")
    assert orders.overwrite(ORDERS.slice(0, 1), where="id = 1", key="correction").is_done
    assert orders.count_rows() == 3


def test_columns_that_do_not_fit_are_all_listed(orders: Table) -> None:
    orders.append(ORDERS)
    other = pa.table({"id": ["4"], "amount": [1.0], "currency": ["EUR"]})
    with pytest.raises(AirflowFailException, match="code 20") as failed:
        orders.append(other, key="orders of 2026-11-02")
    assert "id" in str(failed.value)
    assert "currency" in str(failed.value)
    cast = other.set_column(0, "id", other["id"].cast(pa.int64()))
    assert orders.append(cast, schema_mode="merge", key="orders of 2026-11-02").is_done
    assert orders.to_arrow()["currency"].to_pylist() == [None, None, None, "EUR"]
