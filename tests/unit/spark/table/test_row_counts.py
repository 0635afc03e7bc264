"""Rows of fragments are counted while other threads run."""

import subprocess
import sys
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from airflow_provider_lancens.spark.table.row_counts import matching_rows
from tests.support.repository import ROOT

IN_A_BUCKET_OF_THE_SAME_PROCESS = """
import lance
import pyarrow as pa
from airflow_provider_lancens.spark.table.row_counts import matching_rows
from tests.servers.s3_double import S3Double

with S3Double() as s3:
    lance.write_dataset(pa.table({"n": range(10)}), "s3://lake/t.lance", storage_options=s3.storage)
    dataset = lance.dataset("s3://lake/t.lance", storage_options=s3.storage, session=lance.Session())
    print(matching_rows(dataset.get_fragments()[0], "n > 3"))
"""


@pytest.mark.parametrize("index", [False, True], ids=["scan", "index"])
def test_deleted_rows_do_not_count(index: bool, tmp_path: Path) -> None:
    rows = pa.table({"n": [0, 1, 2, None, 4, 5]})
    dataset = lance.write_dataset(rows, tmp_path / "t.lance", max_rows_per_file=3)
    if index:
        dataset.create_scalar_index("n", "BTREE")
    dataset.delete("n = 2")

    conditions = ("n > 0", "n IS NULL", "TRUE", "n > 9")
    counts = [[matching_rows(one, condition) for condition in conditions] for one in dataset.get_fragments()]

    assert counts == [[1, 0, 2, 0], [2, 1, 3, 0]]


def test_another_thread_can_answer_the_reads_of_a_count() -> None:
    command = [sys.executable, "-c", IN_A_BUCKET_OF_THE_SAME_PROCESS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stdout.split()) == (0, ["6"]), done.stderr
