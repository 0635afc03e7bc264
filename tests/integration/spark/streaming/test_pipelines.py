"""The example of a declarative pipeline, run by Spark's own command: each reading is written once."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pyspark
import pytest
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.table.resolved_table import resolved_table
from tests.pyspark_versions import has_pipelines

# `test_pipeline_example` runs the pipeline, and `test_killed_queries` kills queries that write, in every run.
pytestmark = [pytest.mark.long, has_pipelines]

TREE = Path(__file__).parents[4]
EXAMPLE = TREE / "example_dags" / "pipelines" / "readings"
SPARK_HOME = Path(pyspark.__file__).parent


FILES = 9
"""Enough that a run is killed before it has read them all, also on a busy machine."""


class Pipeline:
    """A copy of the example with a folder and a database of its own, whose epochs have one file each."""

    def __init__(self, metastore: MetastoreServer, database: str, folder: Path) -> None:
        self.database, self.folder = database, folder
        self.project, self.files, self.log = folder / "project", folder / "files", folder / "log"
        shutil.copytree(EXAMPLE, self.project)
        self._change("spark-pipeline.yml", "/tmp/readings_pipeline", str(folder))
        self._change("transformations/readings.py", '"stations$', f'"{database}$')
        self._change("transformations/readings.py", '"maxFilesPerTrigger", 100', '"maxFilesPerTrigger", 1')
        self.files.mkdir()
        properties = {"uri": metastore.uri, "root": str(folder / "lake")}
        self.spec = NamespaceSpec("airflow_provider_lancens.namespace.Hive2Namespace", properties)
        with closing(Hive2Namespace(**properties)) as namespace:
            namespace.create_namespace(CreateNamespaceRequest(id=[database]))
            for table in ("readings", "refused"):
                namespace.declare_table(DeclareTableRequest(id=[database, table]))

    def _change(self, name: str, before: str, after: str) -> None:
        text = (self.project / name).read_text()
        assert before in text
        (self.project / name).write_text(text.replace(before, after))

    def add(self, *temperatures: float) -> None:
        """Add a file with these readings, and a damaged line."""
        number = len(list(self.files.iterdir()))
        rows = [
            {"station": f"station {number}", "time": f"2026-07-01T{hour:02}:00:00Z", "celsius": celsius}
            for hour, celsius in enumerate(temperatures)
        ]
        unfinished = self.folder / "unfinished"
        unfinished.write_text("\n".join([*map(json.dumps, rows), f"damaged {number}"]))
        unfinished.rename(self.files / f"{number}.json")

    def run(self, *arguments: str, until: Callable[[], bool] | None = None) -> None:
        """Run the command to its end, or kill it once something is true."""
        command = [SPARK_HOME / "bin" / "spark-pipelines", "run", "--spec", "spark-pipeline.yml", *arguments]
        with (
            self.log.open("ab") as log,
            subprocess.Popen(
                command,
                cwd=self.project,
                env={**os.environ, **self._environment()},
                stdout=log,
                stderr=log,
                start_new_session=True,
            ) as process,
        ):
            try:
                while process.poll() is None and not (until and until()):
                    time.sleep(0.2)
            finally:
                if process.poll() is None:  # also if the time of the test is over
                    os.killpg(process.pid, signal.SIGKILL)
        assert process.returncode == (-signal.SIGKILL if until else 0), self.log.read_text()[-5000:]

    def _environment(self) -> Mapping[str, str]:
        path = os.pathsep.join([str(self.project), str(TREE), os.environ.get("PYTHONPATH", "")])
        return {
            "PYTHONPATH": path,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "LAKE_URI": self.spec.properties["uri"],
            "LAKE_ROOT": self.spec.properties["root"],
            "READINGS_FOLDER": str(self.files),
        }

    def version(self) -> int:
        with resolved_table(self.spec, f"{self.database}$readings") as target:
            return target.latest_version() or 0

    def rows(self, table: str) -> list[dict[str, Any]]:
        with resolved_table(self.spec, f"{self.database}${table}") as target:
            dataset = target.open_latest()
            return [] if dataset is None else dataset.to_table().to_pylist()

    def stations(self) -> list[str]:
        """The station of each valid reading."""
        return sorted(row["station"] for row in self.rows("readings"))

    def damaged(self) -> list[str]:
        """The damaged lines that were refused."""
        return sorted(row["_corrupt_record"] for row in self.rows("refused") if row["_corrupt_record"])


@pytest.fixture
def pipeline(metastore: MetastoreServer, database: str, tmp_path: Path) -> Pipeline:
    return Pipeline(metastore, database, tmp_path)


def test_each_reading_is_written_once_after_a_run_that_was_killed(pipeline: Pipeline) -> None:
    for _ in range(FILES):
        pipeline.add(20.0)
    pipeline.run(until=lambda: pipeline.version() > 0)
    assert pipeline.version() < FILES

    pipeline.add(21.0, 999.0, 22.0)
    pipeline.run()

    last = f"station {FILES}"
    assert pipeline.stations() == sorted([*(f"station {number}" for number in range(FILES)), last, last])
    assert pipeline.damaged() == sorted(f"damaged {number}" for number in range(FILES + 1))
    assert [row["celsius"] for row in pipeline.rows("refused") if row["celsius"]] == [999.0]
    assert pipeline.version() <= FILES + 1


def test_a_full_refresh_writes_all_rows_again(pipeline: Pipeline) -> None:
    pipeline.add(20.0)
    pipeline.run()
    pipeline.run("--full-refresh-all")

    assert pipeline.stations() == ["station 0", "station 0"]
