"""Where micro-batches end, and what they read: each appended row once, for any limit and any history."""

import random
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace import DeclareTableRequest
from lance_namespace.errors import InvalidInputError, TableVersionNotFoundError

from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.changes.appended_rows import VersionReader
from airflow_provider_lancens.spark.streaming.appended_stream import AppendedStream
from airflow_provider_lancens.spark.streaming.stream_offset import StreamOffset
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

    def compact(self) -> None:
        lance.dataset(self.location).optimize.compact_files()

    def rename(self) -> None:
        dataset = lance.dataset(self.location)
        name = dataset.schema.names[0]
        dataset.alter_columns({"path": name, "name": name + "_"})
        dataset.alter_columns({"path": name + "_", "name": name})

    def widen(self) -> None:
        dataset = lance.dataset(self.location)
        dataset.add_columns({f"c{dataset.version}": "id * 2"})

    def index(self) -> None:
        lance.dataset(self.location).create_scalar_index("id", "BTREE", replace=True)


def read(target: ResolvedTable, stream: AppendedStream, start: StreamOffset, end: StreamOffset) -> list[int]:
    newest = target.open_latest()
    assert newest is not None
    reader = VersionReader.of(target, newest, pa.schema([("id", pa.int64())]), None)
    groups = stream.groups(start, end)
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
                [history.append, history.append, history.compact, history.rename, history.widen]
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
    from datetime import timedelta

    history = History(spec)
    for _ in range(3):
        history.append(5)
    lance.dataset(history.location).cleanup_old_versions(older_than=timedelta(0))
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
    with pytest.raises(InvalidInputError, match="checkpointLocation"):
        StreamOffset.parse({"partition": 3})


def test_small_versions_are_read_together(spec: NamespaceSpec) -> None:
    history = History(spec)
    for _ in range(40):
        history.append(1)
    with resolved_table(spec, "orders") as target:
        groups = AppendedStream(target).groups(StreamOffset(0), StreamOffset(40))
        assert [len(group) for group in groups] == [31, 9]
