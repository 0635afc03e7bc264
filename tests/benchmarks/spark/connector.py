"""The JVM connector compared with our ways to write; run by `test_connector.py`.

In a separate process, since the connector's jar and threads belong to the JVM from its start.
"""

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from airflow_provider_lancens.spark.session import spark_session
from tests.benchmarks.spark.worker_probes import fresh_workers
from tests.benchmarks.spark.write_variants import Ways, Work
from tests.benchmarks.timing import Measure, interleaved

THREADS = ("TOKIO_WORKER_THREADS", "LANCE_CPU_THREADS")
JVM_THREADS = dict.fromkeys(THREADS, "8")
"""With a thread a core, the connector's writers wait for each other for good."""
CATALOG = "jvm"


@dataclass(frozen=True)
class WaysBesideConnector(Ways):
    """The same with the connector, and the disk space that each way uses."""

    sizes: dict[str, int] = field(default_factory=dict)

    def connector(self, name: str) -> None:
        self.spark.read.parquet(str(self.source)).writeTo(f"{CATALOG}.default.{name}_by_jvm").create()

    def measured(self, work: Work) -> Measure:
        def weighed(name: str) -> None:
            work(name)
            self.sizes[work.__name__] = sum(file.stat().st_size for file in self.folder.rglob("*"))

        return super().measured(weighed)


def settings(jar: str, root: str) -> dict[str, str]:
    catalog = f"spark.sql.catalog.{CATALOG}"
    return {
        "spark.master": "local[2]",
        "spark.driver.memory": "4g",
        "spark.jars": jar,
        catalog: "com.lancedb.lance.spark.LanceNamespaceSparkCatalog",
        f"{catalog}.impl": "dir",
        f"{catalog}.root": root,
    }


def main() -> None:
    jar, source, folder, rounds = sys.argv[1:]
    with spark_session("benchmark", settings(jar, folder)) as spark:
        spark.sparkContext.setLogLevel("OFF")
        ways = WaysBesideConnector(spark, Path(source), Path(folder))
        works = (ways.direct, ways.frame, ways.connector, ways.parquet)
        measures = {work.__name__: ways.measured(work) for work in works}
        with fresh_workers(spark, folder, **dict.fromkeys(THREADS, str(os.cpu_count()))):
            times = interleaved(int(rounds), measures, warm_up=1)
    sys.stdout.write(json.dumps({"seconds": times.rounds, "bytes": ways.sizes}) + "\n")


if __name__ == "__main__":
    main()
