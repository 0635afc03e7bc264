"""Columns that are followed through the commits between two versions."""

import random
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from airflow_provider_lancens.spark.table import column_history
from airflow_provider_lancens.spark.table.column_history import MatchedColumns, match_columns
from airflow_provider_lancens.spark.table.history import transactions_of


class Table:
    """A dataset whose columns change."""

    def __init__(self, path: Path) -> None:
        self.uri = str(path / "orders.lance")
        self.write({"id": [1, 2], "price": [1.5, 2.5]})

    @property
    def dataset(self) -> lance.LanceDataset:
        return lance.dataset(self.uri)

    def write(self, columns: dict[str, Any], mode: str = "append") -> None:
        lance.write_dataset(pa.table(columns), self.uri, mode=mode)

    def rename(self, name: str, new: str) -> None:
        self.dataset.alter_columns({"path": name, "name": new})

    def add(self, name: str) -> None:
        self.dataset.add_columns(pa.schema([(name, pa.float64())]))

    def compact(self) -> None:
        self.write({name: [3] if name == "id" else [3.5] for name in self.dataset.schema.names})
        self.dataset.optimize.compact_files()

    def restore(self, version: int) -> None:
        lance.dataset(self.uri, version=version).restore()

    def clean_up(self, kept: int = 1) -> None:
        """Remove all versions but the newest one and this one."""
        self.dataset.tags.create(f"keep-{kept}", kept)
        self.dataset.cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)

    def match(self, read: int = 1, wanted: int | None = None) -> MatchedColumns:
        newest = self.dataset
        return match_columns(
            newest.checkout_version(read), newest if wanted is None else newest.checkout_version(wanted)
        )


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


def swap(table: Table) -> None:
    table.add("tax")
    for name, new in [("price", "other"), ("tax", "price"), ("other", "tax")]:
        table.rename(name, new)


def drop_and_reuse_id(table: Table) -> None:
    table.dataset.drop_columns(["price"])
    table.compact()
    table.add("discount")


def rename_and_add_old_name(table: Table) -> None:
    table.rename("price", "price_old")
    table.add("price")


def rename_compact_and_add(table: Table) -> None:
    table.rename("price", "price_old")
    table.compact()
    table.add("price")


def overwrite_with_other_columns(table: Table) -> None:
    table.write({"id": [1, 2], "country": ["DE", "FR"]}, mode="overwrite")


def overwrite_in_another_order(table: Table) -> None:
    table.write({"price": [7.5], "id": [1]}, mode="overwrite")


def convert(table: Table) -> None:
    table.dataset.alter_columns({"path": "price", "data_type": pa.float32()})


def rename_and_convert_at_once(table: Table) -> None:
    table.dataset.alter_columns({"path": "price", "name": "amount", "data_type": pa.float32()})


def swap_and_convert_at_once(table: Table) -> None:
    table.add("tax")
    table.dataset.alter_columns(
        {"path": "price", "name": "other", "data_type": pa.float32()},
        {"path": "tax", "name": "price", "data_type": pa.float32()},
    )
    table.rename("other", "tax")


def rename_then_convert(table: Table) -> None:
    table.rename("price", "amount")
    table.dataset.alter_columns({"path": "amount", "data_type": pa.float32()})


def drop_and_reuse_id_for_another_type(table: Table) -> None:
    table.dataset.drop_columns(["price"])
    table.compact()
    table.dataset.add_columns(pa.schema([("price", pa.int64())]))


def restore_older_names(table: Table) -> None:
    table.rename("price", "amount")
    table.restore(1)
    table.add("discount")


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (swap, {"id": "id", "tax": "price"}),
        (drop_and_reuse_id, {"id": "id"}),
        (rename_and_add_old_name, {"id": "id", "price_old": "price"}),
        (rename_compact_and_add, {"id": "id", "price_old": "price"}),
        (overwrite_with_other_columns, {"id": "id"}),
        (overwrite_in_another_order, {"id": "id", "price": "price"}),
        (convert, {"id": "id", "price": "price"}),
        (rename_and_convert_at_once, {"id": "id", "amount": "price"}),
        (swap_and_convert_at_once, {"id": "id", "tax": "price"}),
        (rename_then_convert, {"id": "id", "amount": "price"}),
        (drop_and_reuse_id_for_another_type, {"id": "id"}),
        (restore_older_names, {"id": "id", "price": "price"}),
    ],
)
def test_columns_are_followed_in_both_directions(
    table: Table, change: Callable[[Table], None], names: dict[str, str]
) -> None:
    change(table)

    assert table.match() == MatchedColumns(names)
    newest = table.dataset.version
    assert table.match(newest, 1) == MatchedColumns({old: new for new, old in names.items()})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (pa.time32("s"), pa.time64("us")),
        (pa.date64(), pa.date32()),
        (pa.duration("s"), pa.duration("us")),
        (pa.binary(2), pa.binary()),
        (pa.dictionary(pa.int8(), pa.string()), pa.string()),
    ],
    ids=str,
)
def test_a_column_is_the_same_if_an_overwrite_gives_it_another_type_of_its_kind(
    table: Table, old: pa.DataType, new: pa.DataType
) -> None:
    table.write({"id": [1], "value": pa.array([None], old)}, mode="overwrite")
    table.write({"id": [1], "value": pa.array([None], new)}, mode="overwrite")

    assert table.match(read=2).names == {"id": "id", "value": "value"}


def test_a_time_of_day_that_is_widened_is_the_same_column(table: Table) -> None:
    table.write({"id": [1], "opens": pa.array([5], pa.time32("s"))}, mode="overwrite")
    table.dataset.alter_columns({"path": "opens", "data_type": pa.time64("us")})

    assert table.match(read=2).names == {"id": "id", "opens": "opens"}


def test_a_restore_of_a_version_before_both_is_followed(table: Table) -> None:
    table.rename("price", "amount")
    table.restore(1)
    table.rename("price", "cost")

    assert table.match(read=2) == MatchedColumns({"id": "id", "cost": "amount"})


def test_each_commit_is_read_once_however_often_versions_were_restored(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in range(1, 13):
        table.rename(table.dataset.schema.names[1], f"c{version}")
        table.restore(version)
    read: list[int] = []

    def noting(opened: lance.LanceDataset, after: int) -> Any:
        for version, transaction in transactions_of(opened, after):
            read.append(version)
            yield version, transaction

    monkeypatch.setattr(column_history, "transactions_of", noting)
    newest = table.dataset
    match_columns(newest.checkout_version(23), newest)

    assert len(read) == len(set(read)) <= newest.version


@pytest.mark.parametrize(
    ("change", "names", "unknown"),
    [
        (swap, {"id": "id", "tax": "price"}, set()),
        (rename_and_add_old_name, {"id": "id", "price_old": "price"}, set()),
        (drop_and_reuse_id, {"id": "id"}, {"discount"}),
        (drop_and_reuse_id_for_another_type, {"id": "id"}, {"price"}),
        (rename_then_convert, {"id": "id"}, {"amount"}),
        (overwrite_with_other_columns, {"id": "id"}, set()),
        (overwrite_in_another_order, {}, {"id", "price"}),
        (rename_compact_and_add, {"id": "id"}, {"price", "price_old"}),
    ],
)
def test_without_versions_in_between_data_files_of_both_tell_or_the_column_is_unknown(
    table: Table, change: Callable[[Table], None], names: dict[str, str], unknown: set[str]
) -> None:
    change(table)
    table.dataset.update_config({"note": "a version that is kept"})
    table.clean_up()

    assert table.match() == MatchedColumns(names, frozenset(unknown))


def change_at_random(table: Table, chance: random.Random, number: int) -> None:
    names = [name for name in table.dataset.schema.names if name != "id"]
    action = chance.choice(["rename", "add", "drop", "compact", "restore"])
    if action == "add":
        table.dataset.add_columns({f"c{number}": f"{number}.25"})
    elif action == "restore":
        table.restore(chance.randint(2, table.dataset.version))
    elif action == "compact":
        table.dataset.delete("id = 0")
        table.dataset.optimize.compact_files()
    elif names and action == "rename":
        table.rename(chance.choice(names), f"c{number}")
    elif names:
        table.dataset.drop_columns([chance.choice(names)])


@pytest.mark.parametrize("seed", range(8))
def test_values_of_followed_columns_stay_through_random_changes(table: Table, seed: int) -> None:
    """Each column's value is its identity, which no change of columns alters."""
    chance = random.Random(seed)
    table.write({"id": [1], "price": [0.5]}, mode="overwrite")
    for number in range(10):
        change_at_random(table, chance, number)

    versions = [table.dataset.checkout_version(number) for number in range(2, table.dataset.version + 1)]
    rows = [one.to_table().to_pylist()[0] for one in versions]
    for read, here in zip(versions, rows, strict=True):
        values = {value: name for name, value in here.items()}
        for wanted, there in zip(versions, rows, strict=True):
            same = {name: values[value] for name, value in there.items() if value in values}
            assert match_columns(read, wanted) == MatchedColumns(same), (here, there)
