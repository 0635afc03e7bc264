"""Sessions started by the library, each in a separate process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough

START = """
from airflow_provider_lancens.spark.session import spark_session

with spark_session("mine", {"spark.app.color": "blue"}) as spark:
    conf = spark.sparkContext.getConf()
    with spark_session("another") as same:
        assert same is spark
    assert spark.range(3).rdd.map(lambda row: __import__("lance").__name__).collect() == ["lance"] * 3
    names = ("spark.app.name", "spark.master", "spark.driver.host", "spark.ui.enabled", "spark.app.color")
    print([conf.get(name) for name in names], spark.conf.get("spark.sql.session.timeZone"))
print("stopped:", spark.sparkContext._jsc is None)
"""


def run(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if key != "PYSPARK_PYTHON"}
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**kept, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_new_session_is_local_quiet_and_stopped_with_the_block(tmp_path: Path) -> None:
    bare_python = tmp_path / "python3"
    bare_python.write_text("#!/bin/sh\nexit 1\n")
    bare_python.chmod(0o755)

    done = run(START, PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "['mine', 'local[2]', '127.0.0.1', 'false', 'blue'] UTC",
        "stopped: True",
    ]


def test_a_missing_java_is_reported_in_one_line(tmp_path: Path) -> None:
    done = run(START, PATH=str(tmp_path), JAVA_HOME="")

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("RuntimeError: Spark requires Java")


STRANGER = """
import socket, struct
from airflow_provider_lancens.spark.session import spark_session

with spark_session("mine", {"spark.master": "local[2]"}) as spark:
    assert spark.range(3).mapInArrow(lambda batches: batches, "id long").count() == 3
    port = int(spark.sparkContext.getConf().get("spark.driver.port"))
    # A request as Spark's own: its length, its kind, its number, and a body with a serialized object.
    body = b"\\0no Java object"
    request = struct.pack(">bqi", 3, 1, len(body)) + body
    with socket.create_connection(("127.0.0.1", port), 20) as stranger:
        stranger.sendall(struct.pack(">q", 8 + len(request)) + request)
        print(stranger.recv(4000).decode(errors="replace"))
"""


def test_a_local_driver_reads_no_object_of_a_stranger_on_the_machine() -> None:
    done = run(STRANGER)

    assert done.returncode == 0, done.stderr
    assert "Expected SaslMessage" in done.stdout
