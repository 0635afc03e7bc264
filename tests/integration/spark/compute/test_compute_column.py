import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance_namespace.errors import (
    InvalidInputError,
    TableColumnNotFoundError,
    TableSchemaValidationError,
    TableVersionNotFoundError,
)

from airflow_provider_lancens.spark import ColumnFunctionError, TableLayout
from tests.support.computed_tables import compute, data_files, doubled, expected, fill, folder, values
from tests.support.maintained_tables import Maintained, rows

DIMENSION = 64


def vectors(batch: pa.RecordBatch) -> pa.Array:
    """Random vectors, which can't be compressed, by the ids."""
    made = [np.random.default_rng(number).random(DIMENSION, np.float32) for number in batch["id"].to_pylist()]
    return pa.FixedSizeListArray.from_arrays(
        pa.array(np.concatenate(made or [np.empty(0, np.float32)])), DIMENSION
    )


def test_a_column_is_added_and_computed_without_touching_other_files(
    table: Maintained, stable: TableLayout
) -> None:
    table.write(rows(table.spark, 0, 20_000, 2), options=stable)
    table.newest.delete("id % 7 = 3")
    before = data_files(table)

    result = compute(table, vectors, column="v")

    after = data_files(table)
    assert {name: after[name] for name in before} == before
    assert (result.computed, result.nulls, result.files, result.is_done) == (17_143, 0, 2, True)
    written = sum((folder(table) / "data" / name).stat().st_size for name in after.keys() - before.keys())
    assert written == result.bytes <= 1.05 * 20_000 * DIMENSION * 4
    found = table.newest.to_table(columns=["id", "v"])
    assert found["v"].combine_chunks() == vectors(found.combine_chunks().to_batches()[0])
    assert found.num_rows == 17_143
    table.newest.validate()
    assert (table.newest.version, table.by_path.version) == (result.version, result.version)


def test_the_next_run_computes_only_rows_that_were_added(table: Maintained) -> None:
    fill(table)
    first = compute(table)
    again = compute(table)
    table.write(rows(table.spark, 40, 60, 2).selectExpr("*", "cast(null AS bigint) AS n"))
    before = data_files(table)

    later = compute(table, batch_rows=3)

    assert (first.computed, later.computed, later.files) == (40, 20, 2)
    assert (again.is_done, again.version, again.previous_version) == (False, first.version, first.version)
    assert len(data_files(table).keys() - before.keys()) == 2
    assert values(table) == expected(range(60))


def test_nothing_to_compute_starts_no_spark(stored: Maintained) -> None:
    fill(stored)
    compute(stored)

    def refused() -> Any:
        raise AssertionError("Spark was started")

    result = compute(Maintained(refused, stored.spec, stored.id))  # type: ignore[arg-type]

    assert not result.is_done


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_rows_that_have_a_value_keep_it(stored: Maintained, stable: TableLayout, version: str) -> None:
    options = TableLayout(stable_row_ids=stable.stable_row_ids, data_storage_version=version)
    own = "if(id % 3 = 0, NULL, array(named_struct('x', id, 'y', 'own'))) AS n"
    stored.write(rows(stored.spark, 0, 50, 1).selectExpr("*", own), options=options)
    stored.newest.delete("id IN (0, 1, 7, 8, 9, 48, 49)")

    def structs(batch: pa.RecordBatch) -> pa.Array:
        kind = pa.list_(pa.struct([("x", pa.int64()), ("y", pa.string())]))
        return pa.array([[{"x": number, "y": "made"}] for number in batch["id"].to_pylist()], kind)

    result = compute(stored, structs, batch_rows=4)

    kept = [number for number in range(50) if number not in (0, 1, 7, 8, 9, 48, 49)]
    assert result.computed == len([number for number in kept if number % 3 == 0])
    assert values(stored) == {
        number: [{"x": number, "y": "made" if number % 3 == 0 else "own"}] for number in kept
    }
    stored.newest.validate()


def test_rows_that_match_a_condition_are_computed_again(stored: Maintained) -> None:
    fill(stored)
    compute(stored)
    stored.write(rows(stored.spark, 40, 50).selectExpr("*", "cast(null AS bigint) AS n"))

    stale = compute(
        stored, lambda batch: pc.multiply(batch["id"], 3), where="id BETWEEN 5 AND 14 OR n IS NULL"
    )
    exact = compute(
        stored,
        lambda batch: pc.multiply(batch["id"], 4),
        where="n IS NOT NULL AND id < 2",
    )

    times = {number: 3 if 5 <= number < 15 or number >= 40 else 2 for number in range(50)} | {0: 4, 1: 4}
    assert (stale.computed, stale.files, exact.computed) == (20, 3, 2)
    assert values(stored) == {number: number * factor for number, factor in times.items()}


def test_all_rows_are_computed_again_once_per_execution(stored: Maintained) -> None:
    fill(stored)
    compute(stored)

    first = compute(stored, lambda batch: batch["id"], where="TRUE", execution_id="monday")
    retry = compute(stored, lambda batch: batch["id"], where="TRUE", execution_id="monday")
    another = compute(stored, doubled, where="TRUE", execution_id="tuesday")

    assert (first.computed, retry.computed, retry.is_done, another.computed) == (40, 0, False, 40)
    assert values(stored) == expected(range(40))
    (file,) = [file for file in stored.newest.get_fragments()[0].metadata.files if -2 in file.fields] or [
        None
    ]
    assert file is None, "a file whose column was replaced is still referred to"


def test_changed_rows_are_reported_with_stable_row_ids(stored: Maintained) -> None:
    stored.write(
        rows(stored.spark, 0, 20, 2).selectExpr("*", "if(id < 15, id, NULL) AS n"),
        options=TableLayout(stable_row_ids=True),
    )
    result = compute(stored)

    changed = stored.newest.to_table(
        columns=["id"],
        filter=f"_row_last_updated_at_version > 1 AND _row_last_updated_at_version <= {result.version}",
    )
    assert sorted(changed["id"].to_pylist()) == [15, 16, 17, 18, 19]


def test_a_null_of_the_function_is_computed_again_by_the_next_run(stored: Maintained) -> None:
    fill(stored)

    first = compute(stored, lambda batch: pc.if_else(pc.less(batch["id"], 5), None, batch["id"]))
    second = compute(stored)

    assert (first.computed, first.nulls, second.computed, second.nulls, second.files) == (40, 5, 5, 0, 1)
    assert [values(stored)[number] for number in (0, 4, 5)] == [0, 8, 5]


def test_setup_is_called_once_in_each_worker(stored: Maintained, tmp_path: Path) -> None:
    fill(stored, 6)
    calls = tmp_path / "calls"

    def load() -> int:
        with calls.open("a") as file:
            file.write(f"{os.getpid()}\n")
        return 2

    compute(stored, lambda batch, factor: pc.multiply(batch["id"], factor), setup=load, dtype="int64")

    assert values(stored) == expected(range(60))
    assert set(Counter(calls.read_text().split()).values()) == {1}


def test_a_function_is_found_by_its_path(stored: Maintained) -> None:
    fill(stored)

    compute(stored, "tests.support.computed_tables.doubled")

    assert values(stored) == expected(range(40))


def test_the_functions_error_names_column_and_fragment_and_keeps_what_is_committed(
    stored: Maintained,
) -> None:
    fill(stored, 6)

    def fails_once(batch: pa.RecordBatch) -> pa.Array:
        if batch.num_rows and batch["id"][0].as_py() >= 40:
            raise ZeroDivisionError("no such divisor")
        return doubled(batch)

    with pytest.raises(
        ColumnFunctionError,
        match=r"'n': the function failed on fragment [45]: ZeroDivisionError: no such divisor; \d fragments",
    ):
        compute(stored, fails_once)

    done = {number for number, value in values(stored).items() if value is not None}
    assert done >= set(range(30))
    assert compute(stored).computed == 60 - len(done)
    assert values(stored) == expected(range(60))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda batch: batch["id"].slice(1), "returned 9 values for a batch of 10 rows"),
        (lambda batch: batch["word"], "returned values of type string, but the column is int64"),
        (lambda _: [1], "returned a value of type list; expected a pyarrow.Array"),
        (lambda batch: batch, r"returned the columns \['id', 'word'\], but not 'n'"),
    ],
)
def test_an_invalid_result_is_an_error_at_once(stored: Maintained, function: Any, message: str) -> None:
    fill(stored, 1)
    with pytest.raises(InvalidInputError, match=f"column 'n': the function failed on fragment 0: {message}"):
        compute(stored, function, columns=["id", "word"], dtype="int64")
    assert set(values(stored).values()) == {None}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"columns": "id"}, InvalidInputError, "columns: expected a list of at least one column, got 'id'"),
        (
            {"columns": ["ix"]},
            TableColumnNotFoundError,
            r"expected names among \['id', 'word'\], got \['ix'\]",
        ),
        ({"column": "a.b"}, InvalidInputError, "the name contains a dot"),
        ({"dtype": "int63"}, InvalidInputError, "dtype: expected a type such as"),
        (
            {"column": "word", "dtype": "int64"},
            TableSchemaValidationError,
            "column 'word' is string, not int64",
        ),
        ({"where": " "}, InvalidInputError, "where: expected a condition, got blank text"),
        ({"column": "word", "where": "ix = 1"}, InvalidInputError, "where: no column 'ix'"),
        ({"where": "id > 1 adn id = 2"}, InvalidInputError, "where: unexpected 'adn'"),
        ({"batch_rows": 0}, InvalidInputError, "batch_rows: expected a whole number of at least 1, got 0"),
        ({"commit_every": 0}, InvalidInputError, "commit_every: expected a whole number"),
        ({"function": "nowhere.f"}, InvalidInputError, "function: expected a function or its path"),
        ({"function": 7}, InvalidInputError, "function: expected a function, got a int"),
        ({"setup": "os.nothing"}, InvalidInputError, "setup: expected a function or its path"),
    ],
)
def test_an_invalid_argument_is_refused_before_anything_is_written(
    stored: Maintained, arguments: Any, error: type[Exception], message: str
) -> None:
    fill(stored, 1)
    with pytest.raises(error, match=message):
        compute(stored, **arguments)
    assert (stored.newest.version, len(data_files(stored))) == (1, 1)


def test_a_table_without_data_is_refused(stored: Maintained) -> None:
    with pytest.raises(TableVersionNotFoundError, match="nothing has been written to it yet"):
        compute(stored)
