"""Versions that are staged, read by their number, and then published once or discarded."""

import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pytest
from lance_namespace.errors import (
    InvalidInputError,
    InvalidTableStateError,
    TableVersionNotFoundError,
)

from airflow_provider_lancens.namespace.storage.object_store import is_detached
from airflow_provider_lancens.spark import publish as publishing
from airflow_provider_lancens.spark.maintenance import orphans
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
from airflow_provider_lancens.spark.maintenance.compact import compact_table
from airflow_provider_lancens.spark.maintenance.orphans import remove_orphans
from airflow_provider_lancens.spark.maintenance.restore import restore_version
from airflow_provider_lancens.spark.publish import discard_version, staged_versions
from airflow_provider_lancens.spark.table.resolved_table import resolved_table
from tests.integration.spark.publish.staging import publish, stage
from tests.support.maintained_tables import ON_LOCAL_FILES, Maintained, on, rows
from tests.support.results import number_of
from tests.support.writes import write_table

EVERYWHERE = on("hive", "on_glue")


@EVERYWHERE
def test_a_staged_version_is_seen_by_those_alone_who_have_its_number(table: Maintained) -> None:
    base = table.write(rows(table.spark, 0, 3))

    staged = stage(table, 3, 5)

    number = number_of(staged)
    assert (staged.version, staged.outcome, staged.written, staged.previous_version) == (
        None,
        "staged",
        2,
        base,
    )
    assert is_detached(number)
    assert table.ids() == [0, 1, 2]
    assert table.newest.version == base
    assert table.ids(number) == [0, 1, 2, 3, 4]


@EVERYWHERE
def test_it_becomes_the_next_version_without_copying_its_files(table: Maintained) -> None:
    base = table.write(rows(table.spark, 0, 3))
    staged = stage(table, 3, 5)
    files = {file.path for fragment in lance_fragments(table, number_of(staged)) for file in fragment.files}

    published = publish(table, staged)

    assert (published.version, published.previous_version) == (base + 1, base)
    assert (published.outcome, published.staged_version, published.written) == ("done", None, 2)
    assert table.ids() == [0, 1, 2, 3, 4]
    assert {f.path for fragment in table.newest.get_fragments() for f in fragment.metadata.files} == files


def lance_fragments(table: Maintained, version: int) -> list[Any]:
    location, options = table.described.location, table.described.storage_options
    staged = lance.dataset(location, version=version, storage_options=options)
    return [fragment.metadata for fragment in staged.get_fragments()]


@on("hive")
def test_it_is_published_once(table: Maintained) -> None:
    table.write(rows(table.spark, 0, 3))
    staged = stage(table, 3, 5)
    first = publish(table, staged)
    table.write(rows(table.spark, 5, 6))

    again = publish(table, staged)

    assert (again.version, again.is_done, again.written) == (first.version, False, 2)
    assert table.ids() == [0, 1, 2, 3, 4, 5]


@on("stored")
def test_a_rerun_of_the_write_finds_what_was_staged_and_what_was_published(table: Maintained) -> None:
    table.write(rows(table.spark, 0, 3))
    how = {"key": "day", "execution_id": "1"}
    staged = stage(table, 3, 5, **how)

    again = stage(table, 3, 5, **how)
    published = publish(table, again)
    afterwards = stage(table, 3, 5, **how)

    assert (again.staged_version, again.outcome) == (staged.staged_version, "found")
    assert (afterwards.version, afterwards.outcome) == (published.version, "found")
    assert publish(table, afterwards).version == published.version
    assert table.ids() == [0, 1, 2, 3, 4]


@on("stored")
def test_another_execution_stages_in_place_of_what_nobody_has_published(table: Maintained) -> None:
    table.write(rows(table.spark, 0, 3))
    first = stage(table, 3, 5, key="day", execution_id="1")

    second = stage(table, 3, 6, key="day", execution_id="2")

    with pytest.raises(TableVersionNotFoundError, match="it was discarded, or it has expired"):
        publish(table, first)
    publish(table, second)
    assert table.ids() == [0, 1, 2, 3, 4, 5]


@on("stored")
@pytest.mark.parametrize("how", [{"mode": "overwrite", "where": "id >= 3"}, {"mode": "upsert", "on": ["id"]}])
def test_what_was_published_is_staged_and_published_again(table: Maintained, how: Any) -> None:
    table.write(rows(table.spark, 0, 3))
    first = publish(table, stage(table, 3, 5, key="day", execution_id="1", **how))

    staged = stage(table, 3, 6, key="day", execution_id="2", **how)
    assert table.ids() == [0, 1, 2, 3, 4]
    second, again = publish(table, staged), publish(table, staged)

    assert (second.version, second.is_done, again.version, again.is_done) == (
        first.version + 1,
        True,
        second.version,
        False,
    )
    assert table.ids() == [0, 1, 2, 3, 4, 5]


@on("stored")
def test_an_append_that_was_published_is_not_staged_again(table: Maintained) -> None:
    table.write(rows(table.spark, 0, 3))
    publish(table, stage(table, 3, 5, key="day", execution_id="1"))

    with pytest.raises(InvalidInputError, match="was published under idempotency key 'day', and an append"):
        stage(table, 3, 6, key="day", execution_id="2")
    added = publish(table, stage(table, 5, 6, key="day", execution_id="3", on_existing_key="write_again"))

    assert added.is_done
    assert table.ids() == [0, 1, 2, 3, 4, 5]


@on("stored")
def test_what_was_staged_before_another_execution_published_is_refused(table: Maintained) -> None:
    table.write(rows(table.spark, 0, 3))
    how = {"key": "day", "on_existing_key": "write_again"}
    first, second = (stage(table, 3, end, execution_id=str(end), **how) for end in (5, 6))
    publish(table, second)

    with pytest.raises(InvalidInputError, match="with other data; discard"):
        publish(table, first)
    assert table.ids() == [0, 1, 2, 3, 4, 5]


@on("stored")
def test_other_data_under_the_key_is_staged_beside(table: Maintained) -> None:
    table.write(rows(table.spark, 0, 3))
    how = {"key": "day", "on_existing_key": "skip"}
    first = stage(table, 3, 5, fingerprint="first", **how)
    second = stage(table, 3, 6, fingerprint="second", **how)
    publish(table, second)

    with pytest.raises(InvalidInputError, match="with other data; discard"):
        publish(table, first)

    assert table.ids() == [0, 1, 2, 3, 4, 5]


@EVERYWHERE
def test_a_discarded_version_is_gone_with_its_files(table: Maintained) -> None:
    table.write(rows(table.spark, 0, 3))
    before = files_of(table)
    staged = stage(table, 3, 5)

    assert discard_version(table.spec, table.id, number_of(staged))
    assert not discard_version(table.spec, table.id, number_of(staged))

    assert {file for file in files_of(table) if file.startswith("data/")} <= before
    with pytest.raises(TableVersionNotFoundError, match="it was discarded, or it has expired"):
        publish(table, staged)
    assert table.ids() == [0, 1, 2]


def files_of(table: Maintained) -> set[str]:
    with resolved_table(table.spec, table.id) as target:
        return {file.path for page in target.dataset.manifests.all_below("") for file in page}


@on("hive")
def test_the_rows_of_a_published_version_stay_when_it_is_discarded(table: Maintained) -> None:
    table.write(rows(table.spark, 0, 3))
    staged = stage(table, 3, 5)
    publish(table, staged)

    discard_version(table.spec, table.id, number_of(staged))

    assert table.ids() == [0, 1, 2, 3, 4]


@on("hive")
def test_maintenance_keeps_what_is_staged(table: Maintained) -> None:
    table.write(rows(table.spark, 0, 3))
    staged = stage(table, 3, 5)
    table.write(rows(table.spark, 5, 6))
    compact_table(table.spark, table.spec, table.id)

    clean_up_versions(table.spec, table.id, older_than=timedelta(0))
    remove_orphans(table.spec, table.id, older_than=timedelta(minutes=10))

    assert table.ids(number_of(staged)) == [0, 1, 2, 3, 4]
    publish(table, staged)
    assert table.ids() == [0, 1, 2, 3, 4, 5]
    assert not table.newest.tags.list()


@on("stored", of=ON_LOCAL_FILES)
def test_the_files_of_an_expired_version_are_removed(
    table: Maintained, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.write(rows(table.spark, 0, 3))
    staged = stage(table, 3, 5)
    kept = stage(table, 5, 7)
    location = Path(table.described.location)
    written = {f"data/{file.path}" for one in lance_fragments(table, number_of(staged)) for file in one.files}
    manifest = location / "_versions" / f"d{number_of(staged)}.manifest"
    eight_days_ago = time.time() - 8 * 86400
    tags = (location / "_refs" / "tags").iterdir()
    for file in [manifest, *tags, *(location / path for path in written)]:
        os.utime(file, (eight_days_ago, eight_days_ago))

    removed = remove_orphans(table.spec, table.id, older_than=timedelta(minutes=10))

    assert f"_versions/d{number_of(staged)}.manifest" in removed.paths
    assert {path for path in removed.paths if path.startswith("data/")} < written
    assert len(table.newest.tags.list()) == 1
    assert table.ids() == [0, 1, 2]
    publish(table, kept)
    assert table.ids() == [0, 1, 2, 5, 6]
    assert not table.newest.tags.list()


@on("stored")
def test_a_version_that_was_staged_too_long_ago_is_not_published(
    table: Maintained, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.write(rows(table.spark, 0, 3))
    staged = stage(table, 3, 5)
    monkeypatch.setattr(publishing, "EXPIRES_AFTER", timedelta(0))

    with pytest.raises(InvalidTableStateError, match="was written 0 days ago"):
        publish(table, staged)


@on("stored", of=ON_LOCAL_FILES)
def test_a_version_of_a_long_write_expires_by_its_oldest_file(table: Maintained) -> None:
    table.write(rows(table.spark, 0, 3))
    staged = stage(table, 3, 5)
    [file] = [file for one in lance_fragments(table, number_of(staged))[1:] for file in one.files]
    eight_days_ago = time.time() - 8 * 86400
    os.utime(Path(table.described.location) / "data" / file.path, (eight_days_ago, eight_days_ago))

    with pytest.raises(InvalidTableStateError, match=r"was written 8 days ago.*discard the version"):
        publish(table, staged)


@on("stored")
def test_orphans_are_removed_while_a_staged_version_is_discarded(
    table: Maintained, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.write(rows(table.spark, 0, 3))
    staged, kept = stage(table, 3, 5), stage(table, 5, 7)

    def discard_then_list(target: Any) -> Any:
        discard_version(table.spec, table.id, number_of(staged))
        return list(staged_versions(target))

    monkeypatch.setattr(orphans, "staged_versions", discard_then_list)
    remove_orphans(table.spec, table.id, older_than=timedelta(minutes=10))
    assert publish(table, kept).version == 2


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"mode": "create"}, "stage=True for a create"),
        ({"schema_mode": "merge"}, "stage=True contradicts schema_mode='merge'"),
        ({"stage": None}, "stage: expected True or False"),
    ],
)
def test_what_cannot_be_staged_is_refused(stored: Maintained, how: Any, message: str) -> None:
    stored.write(rows(stored.spark, 0, 3))

    with pytest.raises(InvalidInputError, match=message):
        write_table(rows(stored.spark, 3, 5), stored.spec, stored.id, **{"stage": True, **how})


def test_the_first_version_of_a_table_cannot_be_staged(stored: Maintained) -> None:
    with pytest.raises(InvalidInputError, match="its first version can't be staged"):
        stage(stored, 0, 3)


@on("hive")
def test_a_staged_version_is_not_restored(table: Maintained) -> None:
    table.write(rows(table.spark, 0, 3))
    staged = stage(table, 3, 5)
    with pytest.raises(InvalidInputError, match="is staged, so it was never a version of the table; publish"):
        restore_version(table.spec, table.id, number_of(staged))


def test_only_staged_versions_are_discarded(stored: Maintained) -> None:
    version = stored.write(rows(stored.spark, 0, 3))

    with pytest.raises(InvalidInputError, match=f"version={version}: isn't a staged version"):
        discard_version(stored.spec, stored.id, version)
