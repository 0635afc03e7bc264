"""An index and a change of its column at the same time, in both orders: no index of a column that is gone."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    TableColumnNotFoundError,
)

from airflow_provider_lancens.spark.commit.schema_commits import SchemaCommits
from airflow_provider_lancens.spark.maintenance import IndexSpec
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
from airflow_provider_lancens.spark.maintenance.indexed_column import IndexedColumn
from airflow_provider_lancens.spark.maintenance.maintain import maintain_table
from airflow_provider_lancens.spark.maintenance.maintenance_options import MaintenancePlan
from airflow_provider_lancens.spark.maintenance.table_state import MaintainedTable
from airflow_provider_lancens.spark.observed import AttemptLost, Event, observe
from airflow_provider_lancens.spark.schema import add_columns, alter_columns, drop_columns
from tests.support.indices import build_index
from tests.support.writes import write_table
from tests.unit.spark.every_verb import NAME, SPARK, Lake, LocalFrame

Change = Callable[[Lake], object]
Build = Callable[[Lake], Any]


def rows(ids: range, **more: list[int]) -> LocalFrame:
    columns = {name: pa.array(values, pa.int32()) for name, values in more.items()}
    return LocalFrame(SPARK, [pa.table({"id": ids, "n": pa.array(range(len(ids)), pa.int32()), **columns})])


@pytest.fixture(params=["storage", "impl"])
def lake(tmp_path: Path, request: pytest.FixtureRequest) -> Lake:
    """A table of two fragments, whose column `computed` lies in files of its own."""
    lake = Lake(str(tmp_path), request.param)
    lake.namespace.declare_table({"id": NAME.split("$")})
    write_table(rows(range(20)), lake.namespace, NAME)
    write_table(rows(range(20, 40)), lake.namespace, NAME)
    add_columns(lake.namespace, NAME, expressions={"computed": "n * 2"})
    return lake


def opened(lake: Lake) -> lance.LanceDataset:
    return lance.dataset(lake.location, session=lance.Session())


def ids(lake: Lake) -> dict[str, int]:
    return {field.name(): field.id() for field in opened(lake).lance_schema.fields()}


def once(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, change: Callable[[], object]) -> None:
    """Make a change right before the first call of a method."""
    genuine, pending = getattr(owner, name), [change]

    def called(*arguments: object, **named: object) -> object:
        while pending:
            pending.pop()()
        return genuine(*arguments, **named)

    monkeypatch.setattr(owner, name, called)


def build(column: str, **how: Any) -> Build:
    return lambda lake: build_index(SPARK, lake.namespace, NAME, column, "BTREE", name="ix", **how)


def drop(column: str, **how: Any) -> Change:
    return lambda lake: drop_columns(lake.namespace, NAME, [column], **how)


def widen(column: str, **how: Any) -> Change:
    return lambda lake: alter_columns(lake.namespace, NAME, types={column: "int64"}, **how)


def replace(column: str, dtype: str) -> Change:
    """Drop a column, and add another one with its name."""

    def change(lake: Lake) -> None:
        drop(column, drop_indices=True)(lake)
        add_columns(lake.namespace, NAME, {column: dtype})

    return change


CHANGES = {
    "drop": ("n", drop("n", drop_indices=True)),
    "widen": ("n", widen("n", drop_indices=True)),
    "replace": ("n", replace("n", "int32")),
    "replace by another type": ("n", replace("n", "string")),
    "replace in its own file": ("computed", replace("computed", "int32")),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("if_exists", ["skip", "extend", "replace"])
def test_an_index_of_a_column_that_is_gone_is_not_committed(
    lake: Lake, change: str, if_exists: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    column, apply = CHANGES[change]
    if if_exists != "skip":
        build(column)(lake)
        write_table(rows(range(5), computed=[0] * 5), lake.namespace, NAME)
    events: list[Event] = []
    observe(lake.namespace, events.append)
    once(monkeypatch, MaintainedTable, "committing", lambda: apply(lake))

    with pytest.raises(ConcurrentModificationError) as refused:
        build(column, if_exists=if_exists)(lake)

    dataset = opened(lake)
    assert dataset.describe_indices() == []
    assert dataset.count_rows("id = 3") == (1 if if_exists == "skip" else 2)
    [lost] = [event for event in events if isinstance(event, AttemptLost)]
    assert (lost.operation, lost.is_conflict) == ("create_index", True)
    left = [path.name for path in Path(lake.location, "_versions").iterdir() if "manifest-" in path.name]
    assert left == []
    if if_exists == "skip":  # otherwise Lance itself may refuse it, since the index was dropped
        assert f"column '{column}' was converted, dropped or replaced since version" in str(refused.value)


def test_a_column_that_replaces_one_in_files_of_its_own_gets_its_id(lake: Lake) -> None:
    """An index of the former column could be told from one of the new column only by the commits."""
    before = ids(lake)["computed"]
    replace("computed", "int32")(lake)
    assert ids(lake)["computed"] == before


def after_each_check(monkeypatch: pytest.MonkeyPatch, act: Callable[[list[int]], object]) -> list[int]:
    """Let an act follow each check of the column; return the checked versions, which the act gets too."""
    genuine = IndexedColumn.check_kept
    checked: list[int] = []

    def check(column: IndexedColumn, version: int) -> None:
        genuine(column, version)
        checked.append(version)
        act(checked)

    monkeypatch.setattr(IndexedColumn, "check_kept", check)
    return checked


def test_a_change_between_the_check_and_the_commit_is_seen(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = after_each_check(monkeypatch, lambda _: drop("n")(lake))

    with pytest.raises(ConcurrentModificationError):
        build("n")(lake)
    assert len(checked) == 1
    assert opened(lake).describe_indices() == []


def test_an_append_between_the_check_and_the_commit_is_checked_too(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def append(checked: list[int]) -> None:
        if len(checked) < 3:
            write_table(rows(range(5), computed=[0] * 5), lake.namespace, NAME)

    checked = after_each_check(monkeypatch, append)

    assert build("n")(lake).version == checked[-1] + 1
    assert checked == [3, 4, 5]


def test_a_change_is_seen_though_the_versions_before_it_were_cleaned_up(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change() -> None:
        replace("n", "int32")(lake)
        clean_up_versions(lake.namespace, NAME, older_than=timedelta(0), keep_versions=1)

    once(monkeypatch, MaintainedTable, "committing", change)

    with pytest.raises(ConcurrentModificationError, match="column 'n' was converted, dropped or replaced"):
        build("n")(lake)


def test_an_index_is_committed_though_the_version_that_it_is_of_was_cleaned_up(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change() -> None:
        add_columns(lake.namespace, NAME, {"more": "string"})
        clean_up_versions(lake.namespace, NAME, older_than=timedelta(0), keep_versions=1)

    once(monkeypatch, MaintainedTable, "committing", change)

    assert build("n")(lake).rows == 40
    assert opened(lake).count_rows("n = 3") == 2


def test_an_index_of_a_column_that_is_renamed_meanwhile_is_committed(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change() -> None:
        alter_columns(lake.namespace, NAME, rename={"n": "m"})
        add_columns(lake.namespace, NAME, {"n": "int32"})

    once(monkeypatch, MaintainedTable, "committing", change)

    assert build("n")(lake).is_done
    dataset = opened(lake)
    [index] = dataset.describe_indices()
    assert index.field_names == ["m"]
    assert (dataset.count_rows("m = 3"), dataset.count_rows("n IS NULL")) == (2, 40)


def test_a_retry_tells_of_the_dropped_column_or_indexes_the_new_one(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    once(monkeypatch, MaintainedTable, "committing", lambda: drop("n")(lake))
    with pytest.raises(ConcurrentModificationError):
        build("n")(lake)
    with pytest.raises(TableColumnNotFoundError, match="column='n' does not exist"):
        build("n")(lake)

    once(monkeypatch, MaintainedTable, "committing", lambda: widen("computed")(lake))
    with pytest.raises(ConcurrentModificationError):
        build("computed")(lake)
    assert build("computed")(lake).rows == 40
    assert opened(lake).count_rows("computed = 6") == 2


def test_maintenance_commits_no_index_of_a_column_that_is_gone(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    build("n")(lake)
    write_table(rows(range(20), computed=[0] * 20), lake.namespace, NAME)
    once(monkeypatch, MaintainedTable, "committing", lambda: drop("n", drop_indices=True)(lake))

    with pytest.raises(ConcurrentModificationError, match=r"index 'ix' failed.*column 'n' was converted"):
        maintain_table(SPARK, lake.namespace, NAME, MaintenancePlan(indices=(IndexSpec("n", "BTREE", "ix"),)))
    assert opened(lake).describe_indices() == []


@pytest.mark.parametrize("change", [drop, widen])
def test_a_column_that_is_indexed_meanwhile_is_not_changed_without_leave(
    lake: Lake, change: Callable[..., Change], monkeypatch: pytest.MonkeyPatch
) -> None:
    once(monkeypatch, SchemaCommits, "_commit", lambda: build("n")(lake))
    with pytest.raises(InvalidInputError, match=r"would drop the indices ix \(n\)"):
        change("n")(lake)
    assert opened(lake).schema.field("n").type == pa.int32()
    assert opened(lake).count_rows("n = 3") == 2

    once(monkeypatch, SchemaCommits, "_commit", lambda: build("n", if_exists="replace")(lake))
    change("n", drop_indices=True)(lake)
    assert opened(lake).describe_indices() == []
    assert opened(lake).count_rows("id = 3") == 1


def test_a_column_that_is_indexed_meanwhile_is_renamed_with_its_index(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    once(monkeypatch, SchemaCommits, "_commit", lambda: build("n")(lake))

    alter_columns(lake.namespace, NAME, rename={"n": "m"})

    [index] = opened(lake).describe_indices()
    assert (index.field_names, opened(lake).count_rows("m = 3")) == (["m"], 2)


def rewrite(lake: Lake) -> None:
    """Replace the values of a column in place, in the first fragment."""
    dataset = opened(lake)
    fragment = dataset.get_fragments()[0]
    read = fragment.scanner(columns=["id"], with_row_id=True).to_table()
    values = pa.table({"_rowid": read["_rowid"], "n": pa.array([99] * read.num_rows, pa.int32())})
    updated, modified = fragment.update_columns(values, left_on="_rowid", right_on="_rowid")
    operation = lance.LanceOperation.Update(
        updated_fragments=[updated], fields_modified=modified, update_mode="rewrite_columns"
    )
    lance.LanceDataset.commit(dataset, operation, read_version=dataset.version)


@pytest.mark.parametrize("lake", ["storage"], indirect=True)
@pytest.mark.parametrize("is_kept", [True, False])
def test_values_that_are_rewritten_in_place_are_not_found_by_their_old_index(
    lake: Lake, is_kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change() -> None:
        rewrite(lake)
        add_columns(lake.namespace, NAME, {"more": "string"})
        if not is_kept:  # the version by which Lance knows that the index lacks the fragment
            clean_up_versions(lake.namespace, NAME, older_than=timedelta(0))

    once(monkeypatch, MaintainedTable, "committing", change)
    if is_kept:
        build("n")(lake)
    else:
        with pytest.raises(ConcurrentModificationError, match="values of column 'n' were rewritten"):
            build("n")(lake)
        assert opened(lake).describe_indices() == []
        build("n")(lake)

    assert opened(lake).count_rows("n = 99") == 20
    assert opened(lake).count_rows("n = 3") == 1
