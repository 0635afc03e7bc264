"""Answers of Spark's tasks: read without running anything that they contain."""

import json
import pickle
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.fragment import DataFile
from lance.optimize import Compaction, CompactionOptions

from airflow_provider_lancens.spark.compute.column_task import ColumnFile, FunctionFailure, TaskAnswer
from airflow_provider_lancens.spark.maintenance.parallel_tasks import decoded, encoded, run_in_parallel


class _Attack:
    """Pickled, it is a call of `Path.touch` wherever it is unpickled."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __reduce__(self) -> Any:
        return Path.touch, (self._file,)


class _HostileServer:
    """A session whose server answers each task with these bytes."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    def range(self, *_: int) -> "_HostileServer":
        return self

    def mapInArrow(self, *_: Any) -> "_HostileServer":  # noqa: N802 - Spark's name
        return self

    def collect(self) -> list[dict[str, Any]]:
        return [{"number": 0, "answer": self._answer}]


@pytest.mark.parametrize("wrapped", [False, True])
def test_an_answer_of_spark_runs_no_code(tmp_path: Path, wrapped: bool) -> None:
    touched = tmp_path / "touched"
    attack = pickle.dumps(_Attack(touched))
    answer = json.dumps({"kind": "bytes", "value": attack.hex()}).encode() if wrapped else attack
    server: Any = _HostileServer(answer)
    try:
        found: Any = run_in_parallel(server, [lambda: None])
    except RuntimeError as error:
        assert "no answer of a task" in str(error)  # noqa: PT017 - one of two outcomes
    else:
        assert isinstance(found[0], bytes)
    assert not touched.exists()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\xff",
        b'{"kind": "os.system", "value": "true"}',
        b'{"kind": "Path", "value": {}}',
        b'{"kind": ["x"], "value": {}}',
        b'{"kind": "ColumnFile", "value": {"surprise": 1}}',
        b'{"kind": "DataType", "value": "AAAA"}',
        b'{"kind": "RewriteResult", "value": "{}"}',
        b'{"kind": "datetime", "value": 1}',
        b'{"kind": "Bitmap", "value": ["x"]}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_answer_is_refused(answer: bytes) -> None:
    with pytest.raises(RuntimeError, match=r"Spark returned \d+ bytes that are no answer of a task"):
        decoded(answer)


def test_an_object_of_another_class_is_no_answer() -> None:
    with pytest.raises(TypeError, match="may not contain an object of the class _Attack"):
        encoded([_Attack(Path("x"))])


def test_what_tasks_answer_arrives_unchanged() -> None:
    file = DataFile("a.lance", [1, 2], [0, 1], 2, 1, 77)
    column = ColumnFile(
        3,
        file,
        frozenset({1, 2}),
        frozenset({(1, "old.lance")}),
        rows=5,
        nulls=1,
        offsets=b"\0\xff",
        deletions='{"id":7}',
        deleted=b"\xff",
    )
    kind = pa.struct(
        [pa.field("v", pa.list_(pa.float32(), 8), nullable=False), ("t", pa.timestamp("us", "UTC"))]
    )
    for answer in (
        (3, TaskAnswer(column)),
        TaskAnswer(kind),
        TaskAnswer(failure=FunctionFailure("it's \N{SNOWMAN}", is_invalid=True)),
        [None, True, 2**63, 0.5, "text", b"", {"a": (1, {2})}, datetime(2026, 11, 1, tzinfo=UTC)],
    ):
        assert decoded(encoded(answer)) == answer


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    """A dataset of two fragments."""
    for first in (0, 100):
        rows = pa.table({"id": range(first, first + 100)})
        dataset = lance.write_dataset(rows, tmp_path / "t.lance", mode="append" if first else "create")
    return dataset


def test_a_rewritten_fragment_arrives_unchanged(dataset: lance.LanceDataset) -> None:
    (task,) = Compaction.plan(dataset, CompactionOptions(target_rows_per_fragment=1000)).tasks

    Compaction.commit(dataset, [decoded(encoded(task.execute(dataset)))])

    assert len(lance.dataset(dataset.uri).get_fragments()) == 1


def test_a_segment_of_an_index_arrives_unchanged(dataset: lance.LanceDataset) -> None:
    built = dataset.create_index_uncommitted("id", "BTREE", name="ids", fragment_ids=[0])
    index = decoded(encoded(built))
    assert type(index) is type(built)
    assert str(index) == str(built)

    dataset.commit_existing_index_segments("ids", "id", [index])

    assert lance.dataset(dataset.uri).to_table(filter="id = 150").num_rows == 1
