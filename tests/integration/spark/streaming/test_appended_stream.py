"""Where micro-batches end, and what they read: each appended row once, for any limit and any history."""
# ruff: noqa: E402 an older PySpark is sorted out before what it can't import

import pickle
import random
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import DeclareTableRequest
from lance_namespace.errors import InvalidInputError, InvalidTableStateError, TableVersionNotFoundError

from tests.pyspark_versions import need_data_sources

need_data_sources()

from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.changes.appended_rows import VersionReader
from airflow_provider_lancens.spark.datasource.source_options import StreamReadConfig
from airflow_provider_lancens.spark.datasource.stream_source import plan_stream, stream_reader
from airflow_provider_lancens.spark.streaming.appended_stream import AppendedStream, StreamOffset
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable, resolved_table


@pytest.fixture
def spec(tmp_path: Path) -> NamespaceSpec:
    return NamespaceSpec("dir", {"root": str(tmp_path)})


class History:
    """A table with a history, and the rows that were appended to it."""

    def __init__(self, spec: NamespaceSpec) -> None:
        answer = spec.connect().declare_table(DeclareTableRequest(id=["orders"]))
        self.spec, self.location = spec, str(answer.location)
        self.rows = 0

    def append(self, rows: int, per_file: int = 10) -> None:
        numbers = pa.table({"id": range(self.rows, self.rows + rows)})
        lance.write_dataset(numbers, self.location, mode="append", max_rows_per_file=per_file)
        self.rows += rows

    def write(self, **columns: list[object]) -> None:
        lance.write_dataset(pa.table(columns), self.location, mode="append")

    def alter(self, change: dict[str, str]) -> None:
        lance.dataset(self.location).alter_columns(change)

    def clean_up(self) -> None:
        lance.dataset(self.location).cleanup_old_versions(older_than=timedelta(0))

    def compact(self) -> None:
        lance.dataset(self.location).optimize.compact_files()

    def widen(self) -> None:
        dataset = lance.dataset(self.location)
        dataset.add_columns({f"c{dataset.version}": "id * 2"})

    def index(self) -> None:
        lance.dataset(self.location).create_scalar_index("id", "BTREE", replace=True)


class Reader:
    """Reads a table as Spark would, with the columns that it had when the DataFrame was created."""

    def __init__(self, spec: NamespaceSpec, **options: str) -> None:
        config = StreamReadConfig.of({"table": "orders", **options})
        self.opened: Any = stream_reader(spec, config, *plan_stream(spec, config))
        self.start = self.opened.initialOffset()

    def read(self, end: int) -> list[tuple[Any, ...]]:
        """Read up to a version."""
        offset = StreamOffset(end).as_dict()
        partitions = self.opened.partitions(self.start, offset)
        self.start = offset
        executor = pickle.loads(pickle.dumps(self.opened))
        batches = [batch for one in partitions for batch in executor.read(pickle.loads(pickle.dumps(one)))]
        return sorted((tuple(row.values()) for batch in batches for row in batch.to_pylist()), key=repr)


def read(target: ResolvedTable, stream: AppendedStream, start: StreamOffset, end: StreamOffset) -> list[int]:
    reader = VersionReader(target.dataset, pa.schema([("id", pa.int64())]), None)
    groups = stream.batch(start, end).groups
    return [
        one
        for group in groups
        for part in group
        for batch in reader.read(part)
        for one in batch["id"].to_pylist()
    ]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("start", ["snapshot", "beginning"])
def test_every_row_is_read_once_through_any_history(spec: NamespaceSpec, start: str, seed: int) -> None:
    chance = random.Random(seed)
    history = History(spec)
    history.append(chance.randrange(1, 50))
    found: list[int] = []
    with resolved_table(spec, "orders") as target:
        stream = AppendedStream(target)
        offset = stream.start(None if start == "snapshot" else 0)
        for _ in range(25):
            change = chance.choice(
                [history.append, history.append, history.compact, history.index, history.widen]
            )
            change(chance.randrange(1, 60)) if change == history.append else change()  # type: ignore[call-arg]
            newest = target.latest_version() or 0
            end = stream.advance(offset, newest, chance.choice([None, 1, 10, 25, 100]))
            # As Spark keeps them: also the end of a batch that is repeated.
            offset, end = (StreamOffset.parse(one.as_dict()) for one in (offset, end))
            batch = read(target, stream, offset, end)
            assert batch == read(target, stream, offset, end)
            found, offset = found + batch, end
        last = stream.advance(offset, target.latest_version() or 0)
        found += read(target, stream, offset, last)
    assert sorted(found) == list(range(history.rows))


@pytest.mark.parametrize("limit", [None, 1, 15, 25, 35])
def test_a_first_batch_that_is_repeated_has_the_same_rows(spec: NamespaceSpec, limit: int | None) -> None:
    history = History(spec)
    history.append(25)
    with resolved_table(spec, "orders") as target:
        start = AppendedStream(target).start(None)
        history.append(15)
        end = AppendedStream(target).advance(start, 2, limit)
        first = read(target, AppendedStream(target), start, end)
        history.append(5)
        history.compact()

        again = AppendedStream(target)
        repeated = read(target, again, again.start(None), end)  # Spark asks for the start again
        rest = read(target, again, end, again.advance(end, target.latest_version() or 0))

    assert sorted(repeated) == sorted(first)
    assert sorted(repeated + rest) == list(range(45))


def test_a_first_batch_of_an_empty_table_is_repeated(spec: NamespaceSpec) -> None:
    history = History(spec)
    with resolved_table(spec, "orders") as target:
        start = AppendedStream(target).start(None)
        history.append(25)
        ends = [AppendedStream(target).advance(start, 1, limit) for limit in (None, 10)]
        history.append(5)
        repeated = [
            read(target, stream, stream.start(None), end)
            for end in ends
            for stream in [AppendedStream(target)]
        ]

    assert [sorted(rows) for rows in repeated] == [list(range(25)), list(range(10))]


def test_a_first_batch_that_is_repeated_is_not_read_of_another_table(spec: NamespaceSpec) -> None:
    history = History(spec)
    history.append(25)
    with resolved_table(spec, "orders") as target:
        end = AppendedStream(target).advance(AppendedStream(target).start(None), 1)
        shutil.rmtree(history.location.removeprefix("file://"))
        for _ in range(2):
            history.append(25)

        again = AppendedStream(target)
        with pytest.raises(InvalidTableStateError, match="isn't the version that was read"):
            again.batch(again.start(None), end)


def test_a_limit_is_kept_unless_one_fragment_has_more_rows(spec: NamespaceSpec) -> None:
    history = History(spec)
    history.append(35, per_file=10)
    with resolved_table(spec, "orders") as target:
        stream = AppendedStream(target)
        offset, sizes = stream.start(0), []
        while (end := stream.advance(offset, 1, max_rows=20)) != offset:
            sizes.append(len(read(target, stream, offset, end)))
            offset = end
        assert sizes == [20, 15]
        assert (
            len(read(target, stream, stream.start(0), stream.advance(stream.start(0), 1, max_rows=1))) == 10
        )


def test_a_version_that_changed_rows_is_refused_or_passed_over(spec: NamespaceSpec) -> None:
    history = History(spec)
    history.append(10)
    lance.dataset(history.location).delete("id = 3")
    history.append(10)
    with resolved_table(spec, "orders") as target:
        with pytest.raises(
            InvalidInputError, match=r"version 2 isn't an append \(Delete\).*skip_change_commits=true"
        ):
            AppendedStream(target).advance(StreamOffset(1), 3)
        stream = AppendedStream(target, skip_change_commits=True)
        assert read(target, stream, StreamOffset(1), stream.advance(StreamOffset(1), 3)) == list(
            range(10, 20)
        )


def test_a_version_that_was_cleaned_up_is_refused(spec: NamespaceSpec) -> None:
    history = History(spec)
    for _ in range(3):
        history.append(5)
    history.clean_up()
    with resolved_table(spec, "orders") as target:
        stream = AppendedStream(target)
        with pytest.raises(TableVersionNotFoundError, match="version 2 was cleaned up before"):
            stream.advance(StreamOffset(1), 3)
        with pytest.raises(TableVersionNotFoundError, match="version 1 was cleaned up before"):
            stream.advance(StreamOffset(1, 1, snapshot=True), 3)


def test_a_start_after_the_newest_version_and_a_foreign_offset_are_refused(spec: NamespaceSpec) -> None:
    history = History(spec)
    history.append(5)
    with (
        resolved_table(spec, "orders") as target,
        pytest.raises(InvalidInputError, match="after_version: expected at most 1"),
    ):
        AppendedStream(target).start(2)
    with pytest.raises(InvalidInputError, match="use another checkpointLocation"):
        StreamOffset.parse({"partition": 3})


def test_small_versions_are_read_together(spec: NamespaceSpec) -> None:
    history = History(spec)
    for _ in range(40):
        history.append(1)
    with resolved_table(spec, "orders") as target:
        groups = AppendedStream(target).batch(StreamOffset(0), StreamOffset(40)).groups
        assert [len(group) for group in groups] == [31, 9]


def test_a_table_that_was_created_again_is_not_read_on(spec: NamespaceSpec) -> None:
    history = History(spec)
    for _ in range(4):
        history.append(20)
    with resolved_table(spec, "orders") as target:
        stream = AppendedStream(target)
        in_part, whole = (stream.advance(stream.start(0), 4, limit) for limit in (70, None))
    assert (in_part, whole) == (StreamOffset(3, 1), StreamOffset(4))
    shutil.rmtree(history.location.removeprefix("file://"))
    for version in range(1, 7):
        history.append(20)
        with resolved_table(spec, "orders") as target:
            for offset in (in_part, whole):
                stream = AppendedStream(target)
                with pytest.raises(InvalidTableStateError, match=r"created again.*checkpointLocation"):
                    stream.advance(offset, version)
                with pytest.raises(InvalidTableStateError, match="dropped and created again"):
                    stream.batch(offset, stream.end_at(version))


def test_a_table_that_is_created_again_while_a_query_waits_is_not_read_on(spec: NamespaceSpec) -> None:
    history = History(spec)
    history.append(20)
    with resolved_table(spec, "orders") as target:
        stream = AppendedStream(target)
        read_up_to = stream.advance(stream.start(0), 1)
        assert stream.advance(read_up_to, 1) == read_up_to
        shutil.rmtree(history.location.removeprefix("file://"))
        history.append(20)
        history.append(20)

        with pytest.raises(InvalidTableStateError, match=r"created again.*checkpointLocation"):
            stream.advance(read_up_to, 2)


@pytest.mark.parametrize("limit", [None, 30])
def test_a_first_batch_that_is_repeated_does_not_have_the_rows_of_a_table_that_was_created_again(
    spec: NamespaceSpec, limit: int | None
) -> None:
    history = History(spec)
    for _ in range(2):
        history.append(20)
    with resolved_table(spec, "orders") as target:
        stream = AppendedStream(target)
        end = stream.advance(stream.start(0), 2, limit)
    shutil.rmtree(history.location.removeprefix("file://"))
    for _ in range(3):
        history.append(20)

    with resolved_table(spec, "orders") as target:
        again = AppendedStream(target)
        with pytest.raises(InvalidTableStateError, match=r"created again.*checkpointLocation"):
            again.batch(again.start(0), end)


def test_a_planned_batch_of_a_table_that_was_created_again_is_refused(spec: NamespaceSpec) -> None:
    history = History(spec)
    history.append(5)
    with (
        resolved_table(spec, "orders") as target,
        pytest.raises(InvalidTableStateError, match="newest version"),
    ):
        AppendedStream(target).batch(StreamOffset(0), StreamOffset(3))


def test_an_offset_without_a_transaction_is_read_on(spec: NamespaceSpec) -> None:
    history = History(spec)
    history.append(5)
    history.append(5)
    with resolved_table(spec, "orders") as target:
        stream = AppendedStream(target)
        offset = StreamOffset.parse({"version": 1, "fragments": 0, "snapshot": False})
        assert len(read(target, stream, offset, stream.advance(offset, 2))) == 5


def test_rows_have_the_columns_of_the_data_frame_through_changes_of_the_table(spec: NamespaceSpec) -> None:
    history = History(spec)
    history.write(id=[1], amount=[1.5])
    reader = Reader(spec, after_version="0")
    assert reader.read(1) == [(1, 1.5)]

    history.alter({"path": "amount", "name": "euros"})
    lance.dataset(history.location).add_columns(pa.schema([("amount", pa.float64())]))
    history.write(id=[2], euros=[2.5], amount=[0.0])

    assert reader.read(4) == [(2, 2.5)]
    history.write(id=[3], euros=[3.5], amount=[0.0])
    assert reader.read(5) == [(3, 3.5)]
    assert Reader(spec, after_version="0").read(5) == [(1, 1.5, None), (2, 2.5, 0.0), (3, 3.5, 0.0)]
    assert Reader(spec, after_version="0", columns="amount").read(5) == [(0.0,), (0.0,), (None,)]


def test_a_data_frame_that_is_loaded_before_changes_of_the_columns_has_the_former_ones(
    spec: NamespaceSpec,
) -> None:
    history = History(spec)
    history.write(a=[1], b=[10], c=[100])
    config = StreamReadConfig.of({"table": "orders", "after_version": "0", "filter": "a < 5"})
    plan = plan_stream(spec, config)
    for name, new in [("a", "d"), ("b", "a"), ("d", "b")]:
        history.alter({"path": name, "name": new})
    lance.dataset(history.location).drop_columns(["c"])
    history.write(a=[20], b=[2])

    reader: Any = stream_reader(spec, StreamReadConfig.of({"table": "orders"}), *plan)
    start = reader.initialOffset()
    parts = reader.partitions(start, StreamOffset(6).as_dict())
    rows = [row for one in parts for batch in reader.read(one) for row in batch.to_pylist()]

    assert start["snapshot"]
    assert rows == [{"a": 1, "b": 10, "c": None}, {"a": 2, "b": 20, "c": None}]
    with pytest.raises(InvalidInputError, match="replaced between versions"):
        stream_reader(spec, config, *plan).partitions(StreamOffset(0).as_dict(), StreamOffset(6).as_dict())


def test_a_data_frame_whose_version_was_cleaned_up_is_refused_once_the_columns_have_other_types(
    spec: NamespaceSpec,
) -> None:
    history = History(spec)
    history.write(a=[1], b=[10])
    config = StreamReadConfig.of({"table": "orders"})
    plan = plan_stream(spec, config)
    history.write(a=[2], b=[20])
    history.clean_up()
    assert stream_reader(spec, config, *plan).initialOffset()["version"] == 2

    lance.dataset(history.location).drop_columns(["b"])
    lance.dataset(history.location).add_columns({"b": "cast(a AS string)"})
    with pytest.raises(TableVersionNotFoundError, match="load the DataFrame again"):
        stream_reader(spec, config, *plan).initialOffset()


def test_swapped_columns_keep_their_values(spec: NamespaceSpec) -> None:
    history = History(spec)
    history.write(a=[1], b=[10])
    for name, new in [("a", "c"), ("b", "a"), ("c", "b")]:
        history.alter({"path": name, "name": new})
    history.write(a=[20], b=[2])

    reader = Reader(spec, after_version="0", columns="a,b")
    assert reader.read(5) == [(10, 1), (20, 2)]


def test_a_filter_is_refused_if_its_column_is_not_the_same_in_all_versions(spec: NamespaceSpec) -> None:
    history = History(spec)
    history.write(id=[1], n=[10])
    lance.dataset(history.location).add_columns(pa.schema([("country", pa.string())]))
    history.alter({"path": "n", "name": "m"})
    history.write(id=[2], m=[20], country=["DE"])

    assert Reader(spec, after_version="0", filter="id > 0").read(4) == [(1, 10, None), (2, 20, "DE")]
    for condition in ("country IS NULL", "m = 10"):
        reader = Reader(spec, after_version="0", filter=condition)
        with pytest.raises(InvalidInputError, match=r"between versions 1 and 4.*filter the DataFrame"):
            reader.read(4)
        assert len(Reader(spec, after_version="3", filter="m = 20").read(4)) == 1
        reader = Reader(spec, after_version="0", columns="id", filter=condition)
        with pytest.raises(InvalidInputError, match="replaced between versions 1 and 4"):
            reader.read(1)  # whose own columns are those of the table


def test_a_query_that_runs_for_long_follows_a_rename_after_clean_ups(spec: NamespaceSpec) -> None:
    history = History(spec)
    history.write(id=[0], price=[0.5])
    reader = Reader(spec, after_version="0")
    for number in range(1, 6):
        history.write(id=[number], price=[number + 0.5])
        history.compact()
        reader.read(lance.dataset(history.location).version)
        history.clean_up()
    history.alter({"path": "price", "name": "euros"})
    history.write(id=[6], euros=[6.5])

    assert reader.read(lance.dataset(history.location).version) == [(6, 6.5)]
