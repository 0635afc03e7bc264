"""A task that writes rows in memory, and reads, runs where PySpark isn't installed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

STEPS = [
    "assert table.append(pa.table({'id': [3], 'name': ['c']})).inserted == 1",
    "table.append(pa.table({'id': [3], 'name': ['c'], 'more': [1.5]}), schema_mode='merge')",
    "assert table.overwrite(pa.table({'id': [3], 'name': ['c']})).deleted == 2",
    "assert table.overwrite(pa.table({'id': [1], 'name': ['c']}), where='id = 1').deleted == 1",
    "assert table.overwrite(pa.table({'id': [2], 'name': ['c']}), on=['id']).deleted == 1",
    "assert table.upsert(pa.table({'id': [2, 3], 'name': ['c', 'd']}), on=['id']).updated == 1",
    "table.upsert(pa.table({'id': [2], 'name': ['c'], 'n': [1]}), on=['id'], schema_mode='merge')",
    "assert table.delete('id = 1').deleted == 1",
    "table.publish(table.append(pa.table({'id': [3], 'name': ['c']}), stage=True).as_dict())",
    "table.discard(table.append(pa.table({'id': [3], 'name': ['c']}), stage=True).as_dict())",
    "table.restore(1)",
    "table.add_columns({'n': 'bigint'})",
    "table.drop_columns(['name'])",
    "table.tag('audited')",
    "assert table.to_pandas(filter='id = 1').name.tolist() == ['a']",
    "assert table.at(2).count_rows() == 2",
    "assert table.history() and table.stats() and table.check()",
    "table.expire_versions()",
    "table.remove_orphans()",
]
WITHOUT_PYSPARK = """
import json
import sys
import traceback
from importlib.abc import MetaPathFinder


class NotInstalled(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


sys.meta_path.insert(0, NotInstalled())

import pyarrow as pa

from airflow_provider_lancens.spark import connect

lake = connect("dir", {"root": sys.argv[1]})
errors = {}
for number, step in enumerate(json.load(sys.stdin)):
    lake.declare_table(f"t{number}", schema=pa.schema([("id", pa.int64()), ("name", pa.string())]))
    table = lake.table(f"t{number}")
    table.append(pa.table({"id": [1, 2], "name": ["a", "b"]}))
    try:
        exec(step)
    except Exception:
        errors[step] = traceback.format_exc()
print(json.dumps(errors))
"""


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The tracebacks of steps that failed, each on a table of its own, in a process without PySpark."""
    folder: Path = tmp_path_factory.mktemp("lake")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYSPARK, str(folder)],
        input=json.dumps(STEPS),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("step", STEPS)
def test_a_verb_needs_no_pyspark(errors: dict[str, str], step: str) -> None:
    assert step not in errors, errors[step]
