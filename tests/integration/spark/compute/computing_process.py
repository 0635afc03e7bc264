"""A driver with two cores that computes a column slowly, and notes each fragment that it begins."""

import json
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_lancens.spark import NamespaceSpec, compute_column
from airflow_provider_lancens.spark.session.spark_session import spark_session

CORES = 2


def noting(log: Path, seconds: float) -> object:
    """A function that doubles ids, and appends the first one of each batch to a file."""

    def doubled(batch: pa.RecordBatch) -> pa.Array:
        with log.open("a") as file:
            file.write(f"{batch['id'][0].as_py()}\n")
        time.sleep(seconds)
        return pc.multiply(batch["id"], 2)

    return doubled


def main() -> None:
    job = json.loads(sys.argv[1])
    spec = NamespaceSpec(job["impl"], job["properties"])
    conf = {"spark.master": f"local[{CORES}]", "spark.driver.memory": "512m"}
    with spark_session("computing", conf) as spark:
        function = noting(Path(job["log"]), job["seconds"])
        compute_column(spark, spec, job["table"], "n", function, ["id"], dtype="int64")  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
