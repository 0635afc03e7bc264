"""An archive of Spark's classes, with which a driver of the tests starts in half the CPU time.

This is Java's class data sharing: `python -m tests.servers.spark_classes` makes the archive once per machine.
A driver with another class path or another Java ignores it.
"""

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.servers.cache import cached, made_once

_BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
"""Drivers run only briefly in tests: with only the first-tier compiler, they take a fifth less CPU time."""
_QUIET = "-Xlog:disable"
_OPTIONS = "SPARK_SUBMIT_OPTS"
_NAME = "classes.jsa"
_WORK = """
import sys
from lance_namespace import DeclareTableRequest
from pyspark import SparkContext
from airflow_provider_lancens.spark import NamespaceSpec, foreach_batch
from tests.support.reads import read_table
from tests.support.writes import write_table
from airflow_provider_lancens.spark.session import spark_session

folder = sys.argv[1]
spec = NamespaceSpec("dir", {"root": folder})
spec.connect().declare_table(DeclareTableRequest(id=["t"]))
with spark_session("classes", {"spark.master": "local[2]"}) as spark:
    spark.sparkContext.setLogLevel("OFF")
    write_table(spark.range(10), spec, "t")
    read_table(spark, spec, "t").groupBy("id").count().collect()
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    writer = rows.selectExpr("value AS id").writeStream.option("checkpointLocation", f"{folder}/checkpoint")
    query = writer.foreachBatch(foreach_batch(spec, "t")).start()
    while query.lastProgress is None:
        query.awaitTermination(1)
    query.stop()
    driver = SparkContext._gateway.proc
driver.stdin.close()
driver.wait(120)
"""
"""What drivers of tests do, until the JVM has ended and written the archive."""


def configure_drivers() -> None:
    """Have drivers compile little, unless other options are given."""
    os.environ.setdefault(_OPTIONS, _BRIEF)


def use_archive() -> None:
    """Have the drivers that are started from now on use the archive, if it is there."""
    if os.environ.get(_OPTIONS) == _BRIEF and (archive := cached(_folder()) / _NAME).is_file():
        os.environ[_OPTIONS] = f"{_BRIEF} -XX:SharedArchiveFile={archive} {_QUIET}"


@cache
def _folder() -> str:
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else shutil.which("java")
    spark = importlib.util.find_spec("pyspark")
    parts = (
        java and Path(java).resolve(),
        spark and spark.origin,
        importlib.metadata.version("pyspark"),
        _WORK,
    )
    return "spark-classes-" + hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def _make(folder: Path) -> None:
    folder.mkdir()
    options = f"{_BRIEF} -XX:ArchiveClassesAtExit={folder / _NAME} {_QUIET}"
    work = [sys.executable, "-c", _WORK, str(folder / "lake")]
    environment = {**os.environ, _OPTIONS: options}
    made = subprocess.run(work, env=environment, capture_output=True, text=True, timeout=300, check=False)
    if not (folder / _NAME).is_file():
        raise RuntimeError(f"Spark wrote no archive of its classes:\n{made.stderr[-3000:]}")
    shutil.rmtree(folder / "lake")


if __name__ == "__main__":
    made_once(_folder(), _make, lock="spark-classes-lock")
