"""Deletion by a condition: once, of the rows that are in the table when it is committed."""

from collections.abc import Callable

import lance
import pyarrow as pa
import pytest
from lance_namespace import LanceNamespace
from lance_namespace.errors import InvalidInputError, TableVersionNotFoundError

from airflow_provider_lancens.spark.commit.committer import Committer
from airflow_provider_lancens.spark.commit.delete import Deletion, delete_rows
from airflow_provider_lancens.spark.keys import Counts, KeyedWrite
from airflow_provider_lancens.spark.table.resolved_table import resolved_table

Append = Callable[..., None]


@pytest.fixture
def append(namespace: LanceNamespace) -> Append:
    def append(*numbers: int) -> None:
        rows = pa.table({"n": pa.array(numbers, pa.int64())})
        with resolved_table(namespace, "orders") as target:
            lance.write_dataset(rows, target.dataset.location, mode="append")

    return append


def numbers(namespace: LanceNamespace) -> list[int]:
    with resolved_table(namespace, "orders") as target:
        dataset = target.open_latest()
    assert dataset is not None
    return sorted(dataset.to_table()["n"].to_pylist())


def test_matching_rows_are_deleted_in_one_commit(namespace: LanceNamespace, append: Append) -> None:
    append(1, 2)
    append(3, 4)
    append(5, 6)

    result = delete_rows(namespace, "orders", "n >= 2 AND n < 5")

    assert (result.version, result.deleted, result.files, result.is_done) == (4, 3, 2, True)
    assert numbers(namespace) == [1, 5, 6]


def test_the_same_key_deletes_no_later_rows(namespace: LanceNamespace, append: Append) -> None:
    append(1, 2)
    first = delete_rows(namespace, "orders", "n = 1", key="january")
    append(1)

    again = delete_rows(namespace, "orders", "n = 1", key="january", on_existing_key="skip")

    assert (again.version, again.deleted, again.is_done) == (first.version, 1, False)
    assert numbers(namespace) == [1, 2]


def test_the_key_is_committed_even_if_no_row_matches(namespace: LanceNamespace, append: Append) -> None:
    append(2)
    first = delete_rows(namespace, "orders", "n = 1", key="january", execution_id="1")
    append(1)

    delete_rows(namespace, "orders", "n = 1", key="january", execution_id="1")

    assert (first.version, first.deleted) == (2, 0)
    assert numbers(namespace) == [1, 2]


@pytest.mark.parametrize("where", ["n = 1", "n = 2"])
def test_another_execution_deletes_what_matches_now(
    namespace: LanceNamespace, append: Append, where: str
) -> None:
    append(1, 2)
    delete_rows(namespace, "orders", "n = 1", key="january", execution_id="1")
    append(1)

    again = delete_rows(namespace, "orders", where, key="january", execution_id="2")

    assert (again.deleted, again.outcome) == (1, "done")
    assert numbers(namespace) == ([2] if where == "n = 1" else [1])


@pytest.mark.parametrize(("where", "left"), [("n = 1", [1, 2]), ("n = 2", [1])])
def test_a_deletion_is_repeated_if_its_condition_changed(
    namespace: LanceNamespace, append: Append, where: str, left: list[int]
) -> None:
    append(1, 2)
    delete_rows(namespace, "orders", "n = 1", key="january")
    append(1)

    again = delete_rows(namespace, "orders", where, key="january", on_existing_key="redo_if_changed")

    assert again.outcome == ("skipped" if where == "n = 1" else "done")
    assert numbers(namespace) == left


def test_the_same_key_with_another_condition_is_refused(namespace: LanceNamespace, append: Append) -> None:
    append(1, 2)
    delete_rows(namespace, "orders", "n = 1", key="january")

    with pytest.raises(InvalidInputError, match="different data"):
        delete_rows(namespace, "orders", "n = 2", key="january", on_existing_key="skip")
    assert numbers(namespace) == [2]


def test_rows_appended_meanwhile_are_deleted_too(namespace: LanceNamespace, append: Append) -> None:
    append(1, 2)
    with resolved_table(namespace, "orders") as target:
        change = Deletion("orders", 1, pa.schema({"n": pa.int64()}), [], "n = 1")
        append(1, 3)
        outcome = Committer(target, KeyedWrite("january"), Counts()).commit(change)

    assert outcome.commit.counts.deleted == 2
    assert numbers(namespace) == [2, 3]


@pytest.mark.parametrize("where", ["nope = 1", "n = ", "  ", "n > 1 adn n = 2", "n > 1; AND n = 2"])
def test_an_invalid_condition_is_refused(namespace: LanceNamespace, append: Append, where: str) -> None:
    append(1)

    with pytest.raises(InvalidInputError, match=r"filter|where"):
        delete_rows(namespace, "orders", where)
    assert numbers(namespace) == [1]


def test_a_table_without_data_is_named(namespace: LanceNamespace) -> None:
    with pytest.raises(TableVersionNotFoundError, match="orders is declared"):
        delete_rows(namespace, "orders", "n = 1")
