"""A column of 8 bytes in rows of a kilobyte: computed beside the others, against a rewrite of the table."""

import shutil
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance_namespace import DeclareTableRequest
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.compute.compute_column import compute_column
from tests.integration.spark.compute.computing_process import CORES, noting, run_and_kill
from tests.support.benchmark_sizes import SCALE
from tests.support.reads import read_table
from tests.support.writes import write_table

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

ROWS = int(1_000_000 * SCALE)
ROW_BYTES, VALUE_BYTES = 1024, 8
FRAGMENTS = 40
KILLS = 20


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[NamespaceSpec, Path]]:
    """A table of random rows, and its folder."""
    root = tmp_path_factory.mktemp("wide")
    spec = NamespaceSpec("dir", {"root": str(root)})
    spec.connect().declare_table(DeclareTableRequest(id=["t"]))
    folder = root / "t.lance"
    schema = pa.schema([("id", pa.int64()), ("payload", pa.binary(ROW_BYTES))])
    rows = pa.RecordBatchReader.from_batches(schema, _random_rows(schema))
    lance.write_dataset(rows, folder, schema=schema, max_rows_per_file=ROWS // FRAGMENTS)
    yield spec, folder
    shutil.rmtree(root)


def _random_rows(schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    step = ROWS // FRAGMENTS
    for first in range(0, ROWS, step):
        content = pa.py_buffer(np.random.default_rng(first).bytes(step * ROW_BYTES))
        payload = pa.Array.from_buffers(pa.binary(ROW_BYTES), step, [None, content])
        ids = pa.array(np.arange(first, first + step))
        yield pa.RecordBatch.from_arrays([ids, payload], schema=schema)


def _written(folder: Path) -> dict[str, tuple[int, int]]:
    """The sizes and times of the data files."""
    return {path.name: (path.stat().st_size, path.stat().st_mtime_ns) for path in (folder / "data").iterdir()}


def test_a_column_costs_its_own_bytes(spark: SparkSession, wide: tuple[NamespaceSpec, Path]) -> None:
    spec, folder = wide
    before = _written(folder)
    spark.range(10).count()  # Spark is up

    started = time.monotonic()
    result = compute_column(
        spark, spec, "t", "m", lambda batch: pc.multiply(batch["id"], 2**40 + 1), ["id"], batch_rows=8192
    )
    computed = time.monotonic() - started
    after = _written(folder)

    started = time.monotonic()
    rewritten = read_table(spark, spec, "t").selectExpr("*", "id * 2 AS rewritten")
    write_table(rewritten, spec, "t", mode="overwrite", schema_mode="overwrite")
    overwritten = time.monotonic() - started

    new = sum(size for name, (size, _) in after.items() if name not in before)
    print(  # noqa: T201 for the one who measures
        f"\n{ROWS:,} rows of {ROW_BYTES} bytes: computed in {computed:.1f} s ({new / ROWS:.2f} bytes a row), "
        f"overwritten in {overwritten:.1f} s, {overwritten / computed:.1f} times as long"
    )
    assert {name: after[name] for name in before} == before
    assert result.computed == ROWS
    assert new == result.bytes <= 1.05 * ROWS * VALUE_BYTES
    assert computed < overwritten


def test_a_run_killed_again_and_again_is_completed(
    spark: SparkSession, wide: tuple[NamespaceSpec, Path], tmp_path: Path
) -> None:
    spec, folder = wide
    log, batch_rows = tmp_path / "begun", 2 * ROWS // FRAGMENTS
    fragments = len(lance.dataset(folder).get_fragments())

    for _ in range(KILLS):
        begun = len(log.read_text().split()) if log.exists() else 0
        run_and_kill(spec, "t", log, begun + CORES + 1, batch_rows)
    time.sleep(1)  # a worker of the killed driver may be at the end of its batch
    compute_column(spark, spec, "t", "n", noting(log, 0), ["id"], dtype="int64", batch_rows=batch_rows)

    table = lance.dataset(folder).to_table(columns=["id", "n"])
    times = Counter(log.read_text().split())
    print(f"\n{KILLS} kills: {times.total() - fragments} of {fragments} fragments repeated")  # noqa: T201
    assert table["n"].combine_chunks() == pc.multiply(table["id"].combine_chunks(), 2)
    assert len(times) == fragments
    assert times.total() - fragments <= KILLS * CORES
