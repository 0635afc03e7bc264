"""Commits of columns: beside other writers, without a reply, and beside appends of rows."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    ServiceUnavailableError,
)

from airflow_provider_lancens.spark.commit.committer import Committer
from airflow_provider_lancens.spark.commit.schema_commits import SchemaCommits, SchemaStep
from airflow_provider_lancens.spark.keys import Counts, KeyedWrite
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from airflow_provider_lancens.spark.table.storage_versions import StorageVersions
from tests.support.prepared_tables import ROWS, prepare


@pytest.fixture
def orders(target: ResolvedTable) -> ResolvedTable:
    """A table of one column, `n`, at version 1."""
    lance.write_dataset(ROWS, target.dataset.location)
    return target


def opened(target: ResolvedTable) -> lance.LanceDataset:
    return lance.dataset(target.dataset.location)


def adding(name: str) -> Callable[[lance.LanceDataset], SchemaStep | None]:
    column = pa.schema([(name, pa.int64())])
    step = SchemaStep(f"adds {name}", lambda dataset: dataset.add_columns(column))
    return lambda latest: None if name in latest.schema.names else step


def run(target: ResolvedTable, name: str) -> SchemaCommits:
    commits = SchemaCommits(target)
    latest = target.open_latest()
    assert latest is not None
    assert name in commits.run(adding(name), latest).schema.names
    return commits


def test_a_step_is_committed_once_and_leaves_no_lease(orders: ResolvedTable) -> None:
    assert run(orders, "m").made == [(2, "adds m")]
    assert run(orders, "m").made == []
    assert opened(orders).version == 2
    assert list(orders.dataset.manifests.below("_lancens/writes")) == []


def test_a_version_of_another_writer_is_kept(orders: ResolvedTable) -> None:
    stale = opened(orders)
    lance.write_dataset(ROWS, orders.dataset.location, mode="append")
    commits = SchemaCommits(orders)

    commits.run(adding("m"), stale)

    assert commits.made == [(3, "adds m")]
    assert opened(orders).count_rows() == 4


def test_a_commit_without_a_reply_is_found(orders: ResolvedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    real = StorageVersions.create_if

    def lose(*arguments: object) -> None:
        real(*arguments)  # type: ignore[arg-type]
        raise ServiceUnavailableError("no reply")

    monkeypatch.setattr(StorageVersions, "create_if", lose)

    assert run(orders, "m").made == [(2, "adds m")]
    assert opened(orders).version == 2


def test_a_storage_that_fails_is_reported(orders: ResolvedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise ServiceUnavailableError("no reply")

    monkeypatch.setattr(StorageVersions, "create_if", fail)

    with pytest.raises(ServiceUnavailableError, match="no reply"):
        run(orders, "m")
    assert opened(orders).version == 1


def test_what_lance_refuses_is_invalid_and_names_no_source_line(orders: ResolvedTable) -> None:
    step = SchemaStep("adds m (n +)", lambda dataset: dataset.add_columns({"m": "n +"}))

    with pytest.raises(InvalidInputError, match=r"refuses a change that adds m \(n \+\): .*n \+$"):
        SchemaCommits(orders).run(lambda _: step, opened(orders))


def test_concurrent_writers_add_each_column_once(orders: ResolvedTable) -> None:
    def add(number: int) -> list[tuple[int, str]]:
        return [*run(orders, "shared").made, *run(orders, f"own_{number}").made]

    with ThreadPoolExecutor(4) as pool:
        made = [version for versions in pool.map(add, range(4)) for version, _ in versions]

    names = ["n", "shared", *(f"own_{number}" for number in range(4))]
    assert sorted(opened(orders).schema.names) == sorted(names)
    assert sorted(made) == [2, 3, 4, 5, 6]


def convert(dataset: lance.LanceDataset) -> None:
    dataset.alter_columns({"path": "n", "data_type": pa.int32()})


def exchange(dataset: lance.LanceDataset) -> None:
    """Drop a column, and add another one with its name and type."""
    dataset.add_columns(pa.schema([("m", pa.int8())]))
    dataset.drop_columns(["n"])
    dataset.add_columns(pa.schema([("n", pa.int64())]))


def require(dataset: lance.LanceDataset) -> None:
    dataset.add_columns({"m": "1"})


@pytest.mark.parametrize("change", [convert, exchange, require])
def test_an_append_is_refused_if_its_columns_were_replaced_meanwhile(
    orders: ResolvedTable, change: Callable[[lance.LanceDataset], None]
) -> None:
    """Lance would read null for the values of their files."""
    append = prepare(orders, "append")
    change(opened(orders))

    with pytest.raises(ConcurrentModificationError, match="changed its columns"):
        Committer(orders, KeyedWrite("january"), Counts()).commit(append)


def test_an_append_goes_on_if_a_column_was_added_or_renamed_meanwhile(orders: ResolvedTable) -> None:
    append = prepare(orders, "append")
    run(orders, "m")
    opened(orders).alter_columns({"path": "n", "name": "number"})

    Committer(orders, KeyedWrite("january"), Counts()).commit(append)

    assert opened(orders).to_table().to_pylist() == [{"number": n, "m": None} for n in (1, 2, 1, 2)]
