"""The log of a run, split by task and try."""

import json
from pathlib import Path

from quickstart.task_logs import write_task_logs

RUN = """\
2026-11-23T07:17:40.541463Z [info     ] Filling up the DagBag [airflow.dagbag] loc=dagbag.py:460
2026-11-23T07:17:40.541463Z [info     ] [DAG TEST] starting task_id=land map_index=-1 [dag]
2026-11-23T07:17:41.000000Z [info     ] landed 27,004 rows [nycflights.landing]
2026-11-23T07:17:41.541463Z [info     ] [DAG TEST] end task task_id=land map_index=-1 [dag]
2026-11-23T07:17:42.541463Z [info     ] [DAG TEST] starting task_id=ingest map_index=-1 [dag]
2026-11-23T07:17:43.000000Z [error    ] the metastore is unreachable [airflow.task]
Traceback (most recent call last):
2026-11-23T07:17:44.541463Z [info     ] [DAG TEST] end task task_id=ingest map_index=-1 [dag]
2026-11-23T07:17:45.541463Z [info     ] [DAG TEST] starting task_id=ingest map_index=-1 [dag]
2026-11-23T07:17:46.000000Z [info     ] committed version 1 [airflow.task]
"""


def test_each_try_of_a_task_has_its_log(tmp_path: Path) -> None:
    write_task_logs(RUN.splitlines(keepends=True), tmp_path)

    found = {str(file.relative_to(tmp_path)): events(file) for file in tmp_path.rglob("*.log")}
    assert found == {
        "task_id=land/attempt=1.log": ["landed 27,004 rows [nycflights.landing]"],
        "task_id=ingest/attempt=1.log": [
            "the metastore is unreachable [airflow.task]",
            "Traceback (most recent call last):",
        ],
        "task_id=ingest/attempt=2.log": ["committed version 1 [airflow.task]"],
    }


def test_a_line_keeps_its_time_and_level(tmp_path: Path) -> None:
    write_task_logs(RUN.splitlines(), tmp_path)

    [failed, _] = (tmp_path / "task_id=ingest" / "attempt=1.log").read_text().splitlines()
    assert json.loads(failed) == {
        "timestamp": "2026-11-23T07:17:43.000000Z",
        "level": "error",
        "event": "the metastore is unreachable [airflow.task]",
    }


def events(file: Path) -> list[str]:
    return [json.loads(line)["event"] for line in file.read_text().splitlines()]
