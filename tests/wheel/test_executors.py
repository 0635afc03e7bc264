"""Executors with the packages that `docs/executors.md` lists: neither Airflow nor a metastore's client."""

import re
import shlex
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support.installed_packages import TREE, install_with_uv, run_command

pytestmark = pytest.mark.thorough

PROGRAM = """
import os, sys
executors, folder, tree = sys.argv[1:]
sys.path.insert(0, tree)
from pathlib import Path
from pyspark.sql import SparkSession
from airflow_provider_lancens import connect
from airflow_provider_lancens.spark import FileSource

def twice(batch):
    import pyarrow.compute as pc
    return pc.multiply(batch.column("price"), 2)

os.environ["PYSPARK_PYTHON"] = executors  # as `spark.pyspark.python` of an operator does
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = spark.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
where = spark.sparkContext.parallelize([0], 1).map(lambda _: __import__("sys").executable).first()
assert Path(where) == Path(executors), where

lake = connect("dir", {"root": folder}, spark=spark)
table = lake.declare_table("orders")
rows = spark.range(100).selectExpr("id", "int(id % 5) AS day", "double(id) AS price")
table.append(rows)
table.overwrite(rows.where("day = 1"), where="day = 1")
deletions = rows.where("day = 2").withColumn("op", rows.day)
table.upsert(deletions, on=["id"], sequence_by="price", delete_when="op = 2")
table.upsert(rows.where("day = 3"), on=["id"])
before = table.version
rows.write.parquet(f"{folder}/files")
table.append(FileSource("parquet", [f"{folder}/files"], filter="id < 7"))
assert table.read(filter="day = 1 AND price > 3").count() == 20
assert table.changes(after_version=before).read().count() == 7
table.compact()
table.create_index("day", "BTREE")
table.compute_column("doubled", twice, ["price"], dtype="double")
print("rows", table.count_rows(filter="doubled >= 0"))
"""


def test_executors_need_only_the_packages_that_the_page_lists(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)  # executors would inherit it
    page = (TREE / "docs/executors.md").read_text()
    [listed] = re.findall(r"^executors/bin/pip install (pylance .+)$", page, re.MULTILINE)
    names = [Requirement(one).name for one in shlex.split(listed)]
    venv = tmp_path / "executors"
    install_with_uv(sys.executable, venv, *[f"{name}=={version(name)}" for name in names])
    install = (sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", venv / "bin/python")
    run_command(*install, "--no-deps", wheel)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)

    run_command(sys.executable, program, venv / "bin/python", tmp_path / "lake", TREE)
