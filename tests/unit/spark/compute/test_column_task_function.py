"""How functions get to executors: in another process, which can't import the module of a DAG file."""

import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.spark.compute.column_task import ColumnFunction, InvalidResultError

BATCH = pa.RecordBatch.from_pydict({"id": [1, 2]})

_EXECUTOR = """
import pickle, sys
import pyarrow as pa
function = pickle.load(open(sys.argv[1], "rb"))
print(function.values(pa.RecordBatch.from_pydict({"id": [1, 2]}), None).to_pylist())
"""


def test_a_function_of_a_file_that_executors_lack_is_sent_with_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_here.py").write_text(
        "import pyarrow.compute as pc\nFACTOR = 3\n"
        "def load():\n    return FACTOR\n"
        "def triple(batch, factor):\n    return pc.multiply(batch['id'], factor)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    pickled = tmp_path / "function.pickle"
    pickled.write_bytes(pickle.dumps(ColumnFunction.of("n", "only_here.triple", "only_here.load")))

    printed = subprocess.run(
        [sys.executable, "-c", _EXECUTOR, str(pickled)], capture_output=True, text=True, check=True
    )

    assert printed.stdout == "[3, 6]\n"


def test_what_cannot_be_pickled_is_refused_on_the_driver(tmp_path: Path) -> None:
    with (
        (tmp_path / "open").open("w") as file,
        pytest.raises(InvalidInputError, match="cannot be pickled for Spark's executors; create what"),
    ):
        ColumnFunction.of("n", lambda batch: file.write(str(batch)), None)


@pytest.mark.parametrize(
    ("found", "expected", "values"),
    [
        (pa.array([[1.0, 2.0], None]), pa.list_(pa.float32(), 2), [[1.0, 2.0], None]),
        (pa.array([1, 2], pa.int8()), pa.int64(), [1, 2]),
        (pa.array([None, None]), pa.string(), [None, None]),
        (pa.array(["a", "b"], pa.large_string()), pa.string(), ["a", "b"]),
        (pa.chunked_array([[1], [2]]), pa.int64(), [1, 2]),
        (pa.RecordBatch.from_pydict({"n": [1, 2], "other": [3, 4]}), pa.int64(), [1, 2]),
        (pa.table({"any": [1, 2]}), pa.int64(), [1, 2]),
    ],
)
def test_results_of_the_same_kind_are_converted(
    found: pa.Array, expected: pa.DataType, values: list[object]
) -> None:
    array = ColumnFunction.of("n", lambda _: found, None).values(BATCH, expected)
    assert (array.type, array.to_pylist()) == (expected, values)


@pytest.mark.parametrize(
    ("found", "expected", "message"),
    [
        (pa.array([1, 300]), pa.int8(), "don't fit the column's type int8"),
        (pa.array([[1.0], [2.0]]), pa.list_(pa.float32(), 2), "don't fit the column's type fixed_size_list"),
        (pa.array([1, 2]), pa.float64(), "returned values of type int64, but the column is double"),
        (pa.array(["1", "2"]), pa.int64(), "returned values of type string, but the column is int64"),
        (
            pa.array([[1], [2]]),
            pa.int64(),
            "returned values of type list<item: int64>, but the column is int64",
        ),
        (
            pa.Array.from_buffers(pa.string(), 2, pa.array([b"a", b"\xff"], pa.binary()).buffers()),
            pa.string(),
            "returned text that isn't UTF-8",
        ),
    ],
)
def test_other_results_are_invalid(found: pa.Array, expected: pa.DataType, message: str) -> None:
    with pytest.raises(InvalidResultError, match=message):
        ColumnFunction.of("n", lambda _: found, None).values(BATCH, expected)
