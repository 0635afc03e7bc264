"""The examples in the quickstart's Airflow can run there."""

import json
import os
import subprocess
import sys
from pathlib import Path

from quickstart.home import CONNECTION_IDS, DAGS, Home
from quickstart.shown import ELSEWHERE

LOOK = """
import json, runpy, sys
from airflow.sdk import DAG
from airflow.utils.file import list_py_file_paths

files = list_py_file_paths(sys.argv[1])
sys.path.insert(0, sys.argv[1])  # as Airflow does
dags = [value for file in files for value in runpy.run_path(file).values() if isinstance(value, DAG)]
names = {task.lance_conn_id for dag in dags for task in dag.tasks if hasattr(task, "lance_conn_id")}
print(json.dumps({"files": files, "connections": sorted(names)}))
"""


def test_only_examples_whose_connections_exist_are_shown(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOK, str(DAGS)],
        env={**os.environ, **Home(tmp_path).environment},
        cwd=DAGS.parent,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout.splitlines()[-1])

    names = {Path(file).name for file in shown["files"]}
    assert names == {file.name for file in DAGS.glob("*.py")} - set(ELSEWHERE)
    assert set(shown["connections"]) == set(CONNECTION_IDS)
