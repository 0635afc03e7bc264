"""A driver process with two cores that computes a column slowly, and notes each fragment that it begins."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.compute.compute_column import compute_column
from airflow_provider_lancens.spark.session import spark_session
from tests.servers.spark import PRELOADED

CORES = 2
SECONDS = 300


def noting(log: Path, seconds: float) -> Callable[[pa.RecordBatch], pa.Array]:
    """A function that doubles ids, and appends the first one of each batch to a file."""

    def doubled(batch: pa.RecordBatch) -> pa.Array:
        with log.open("a") as file:
            file.write(f"{batch['id'][0].as_py()}\n")
        time.sleep(seconds)
        return pc.multiply(batch["id"], 2)

    return doubled


def run_and_kill(spec: NamespaceSpec, table: str, log: Path, begun: int, batch_rows: int = 1024) -> None:
    """Start a run, and kill it once so many fragments were begun in all."""
    job = {"impl": spec.impl, "properties": dict(spec.properties), "table": table, "batch_rows": batch_rows}
    command = [sys.executable, "-m", "tests.integration.spark.compute.computing_process"]
    with subprocess.Popen(
        [*command, json.dumps({**job, "log": str(log), "seconds": 0.3})],
        cwd=Path(__file__).parents[4],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        deadline = time.monotonic() + SECONDS
        while not log.exists() or len(log.read_text().split()) < begun:
            assert process.poll() is None, "the run ended before it could be killed"
            assert time.monotonic() < deadline, "the run didn't begin"
            time.sleep(0.02)
        process.kill()


def main() -> None:
    job = json.loads(sys.argv[1])
    spec = NamespaceSpec(job["impl"], job["properties"])
    conf = {"spark.master": f"local[{CORES}]", "spark.driver.memory": "512m", **PRELOADED}
    with spark_session("computing", conf) as spark:
        function = noting(Path(job["log"]), job["seconds"])
        arguments = {"dtype": "int64", "batch_rows": job["batch_rows"]}
        compute_column(spark, spec, job["table"], "n", function, ["id"], **arguments)


if __name__ == "__main__":
    main()
