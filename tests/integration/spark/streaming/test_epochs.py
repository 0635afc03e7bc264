"""Epochs of a streaming query are written once, whatever became of its checkpoint."""

from pathlib import Path

import lance
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as sql

from airflow_provider_lancens.spark.commit.delete import delete_rows
from airflow_provider_lancens.spark.table.resolved_table import resolved_table
from tests.support.streams import Stream

pytestmark = pytest.mark.thorough
only_managed = pytest.mark.parametrize("managed_by", ["impl"], indirect=True)
mostly_managed = pytest.mark.parametrize(
    "managed_by", ["impl", pytest.param("storage", marks=pytest.mark.long)], indirect=True
)
mostly_by_function = pytest.mark.parametrize(
    "either", [pytest.param("format", marks=pytest.mark.long), "foreach_batch"], indirect=True
)


def version(stream: Stream) -> int:
    with resolved_table(stream.spec, stream.table) as target:
        return target.latest_version() or 0


@mostly_managed
@pytest.mark.parametrize("either", ["format", "foreach_batch"], indirect=True)
def test_each_file_is_an_epoch_that_commits_once(either: Stream, tmp_path: Path) -> None:
    either.add((1, 1.0), (2, 2.0))
    either.add((3, 3.0))
    either.run()
    assert (either.rows(), version(either)) == ([(1, 1.0), (2, 2.0), (3, 3.0)], 2)

    either.run()  # nothing is there, and nothing is committed
    either.add((4, 4.0))
    either.run()

    assert (either.rows(), version(either)) == ([(1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0)], 3)
    assert list(tmp_path.glob("**/_lancens/writes/*")) == []


@mostly_managed
def test_an_epoch_that_spark_repeats_is_found_in_the_table(either: Stream) -> None:
    for number in range(4):
        either.add((number, 0.0))
    either.run()
    either.forget(after=0)  # as if the driver had ended after each commit, before Spark wrote it down

    either.run()
    either.add((9, 9.0))
    either.run()

    assert [number for number, _ in either.rows()] == [0, 1, 2, 3, 9]
    assert version(either) == 5


@only_managed
@pytest.mark.long  # each run restarts killed queries, and refuses other rows
def test_a_checkpoint_that_is_older_than_the_table_writes_no_row_twice(either: Stream) -> None:
    for number in range(4):
        either.add((number, 0.0))
    either.run()
    either.forget(after=0, offsets=True)

    either.run()

    assert [number for number, _ in either.rows()] == [0, 1, 2, 3]


@only_managed
@mostly_by_function
@pytest.mark.parametrize("rows", [[(9, 9.0)], [(1, 0.0), (9, 9.0)]], ids=["as many", "more"])
def test_an_older_checkpoint_whose_epochs_have_other_rows_is_refused(
    either: Stream, rows: list[tuple[int, float]]
) -> None:
    for number in range(4):
        either.add((number, 0.0))
    either.run()
    either.forget(after=0, offsets=True)
    for file in sorted(either.files.glob("*.csv"))[1:]:
        file.unlink()
    either.add(*rows)

    with pytest.raises(
        PySparkException, match=r"version 2 was committed as epoch .*/1' with 1 rows, and the"
    ):
        either.run()

    assert [number for number, _ in either.rows()] == [0, 1, 2, 3]
    assert version(either) == 4


@only_managed
def test_epochs_of_which_an_upsert_chooses_rows_are_recognized_by_all_of_their_rows(stream: Stream) -> None:
    stream.sink = "foreach_batch"
    chosen = {"on": "id", "sequence_by": "amount"}
    stream.add((1, 1.0))
    stream.add((1, 3.0), (1, 2.0))  # one of which is written
    stream.run(**chosen)
    stream.forget(after=0)
    stream.run(**chosen)  # finds the epoch, also though the table has its row now
    assert (stream.rows(), version(stream)) == ([(1, 3.0)], 2)

    stream.forget(after=0, offsets=True)
    last = max(stream.files.glob("*.csv"))
    last.write_text("1,3.0\n2,2.0\n")

    with pytest.raises(PySparkException, match=r"was committed as epoch .*/1' with 1 rows, and"):
        stream.run(**chosen)
    assert (stream.rows(), version(stream)) == ([(1, 3.0)], 2)


@only_managed
@pytest.mark.long
def test_the_complete_output_replaces_the_rows(either: Stream) -> None:
    totals = either.frame().groupBy().agg(sql.sum("amount").alias("total"))
    either.add((1, 1.0))
    either.run(totals, mode="complete")
    either.add((2, 2.5))
    either.run(totals, mode="complete")

    assert either.rows() == [(3.5,)]


@only_managed
def test_an_upsert_replaces_rows_by_key(either: Stream) -> None:
    either.add((1, 1.0), (2, 2.0))
    either.add((2, 2.5), (3, 3.0))
    either.run(on="id")

    assert either.rows() == [(1, 1.0), (2, 2.5), (3, 3.0)]


@only_managed
def test_new_columns_are_merged(stream: Stream) -> None:
    stream.add((1, 1.0))
    stream.run()
    stream.add((2, 2.0))
    stream.run(stream.frame().withColumn("note", sql.lit("new")), schema_mode="merge")

    assert stream.rows() == [(1, 1.0, None), (2, 2.0, "new")]


@only_managed
def test_an_epoch_is_found_whose_dates_are_times_in_a_column_of_other_case(stream: Stream) -> None:
    stream.sink = "foreach_batch"
    first, others = (
        stream.frame().selectExpr("id", f"cast(date_from_unix_date(cast(amount as int)) as {kind}) AS {name}")
        for kind, name in (("timestamp", "seen"), ("date", "Seen"))
    )
    stream.add((1, 1.0))
    stream.run(first)
    stream.add((2, 2.0))
    stream.run(others, schema_mode="merge")
    stream.forget(after=0)
    stream.run(others, schema_mode="merge")

    assert ([number for number, _ in stream.rows()], version(stream)) == ([1, 2], 2)


@only_managed
def test_two_queries_have_keys_of_their_own(stream: Stream) -> None:
    stream.add((1, 1.0))
    stream.run()
    other = Stream(stream.spark, stream.spec, stream.table, stream.folder / "other")
    other.folder.mkdir()
    other.add((2, 2.0))
    other.run()

    assert [number for number, _ in stream.rows()] == [1, 2]


@only_managed
def test_a_named_query_is_known_with_a_new_checkpoint(either: Stream) -> None:
    either.add((1, 1.0))
    either.run(query_id="orders")
    either.checkpoint.rename(either.folder / "lost")
    either.run(query_id="orders")

    assert either.rows() == [(1, 1.0)]


@only_managed
def test_invalid_options_are_refused_before_anything_is_written(stream: Stream) -> None:
    stream.add((1, 1.0))
    with pytest.raises(PySparkException, match="key: not allowed for a stream"):
        stream.run(key="a")
    with pytest.raises(PySparkException, match=r"options: expected .*, got of"):
        stream.run(of="a")


@only_managed
@pytest.mark.long
def test_columns_that_do_not_fit_fail_the_query(either: Stream) -> None:
    either.add((1, 1.0))
    either.run()
    either.add((2, 2.0))
    with pytest.raises(PySparkException, match="more"):
        either.run(either.frame().withColumn("more", sql.lit(1)))
    either.run()

    assert [number for number, _ in either.rows()] == [1, 2]


@only_managed
def test_rows_that_others_deleted_do_not_come_back(stream: Stream) -> None:
    stream.add((1, 1.0), (2, 2.0))
    stream.run()
    delete_rows(stream.spec, stream.table, "id = 1")
    stream.forget(after=-1)
    stream.run()

    assert [number for number, _ in stream.rows()] == [2]


@pytest.mark.parametrize("managed_by", ["storage"], indirect=True)
def test_epochs_beside_a_compaction_and_another_writer(stream: Stream, tmp_path: Path) -> None:
    for number in range(6):
        stream.add((number, 0.0))
    query = stream.start()
    while not (manifests := list(tmp_path.glob("**/_versions/*.manifest"))):
        assert query.isActive
    lance.dataset(str(manifests[0].parent.parent)).optimize.compact_files()
    query.awaitTermination()

    assert [number for number, _ in stream.rows()] == list(range(6))
