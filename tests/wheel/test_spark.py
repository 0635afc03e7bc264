"""`wheel[spark]`: the embedded metastore, an ingestion, a sensor and a pinned read, as users install it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.servers.daemon import Daemon
from tests.support.installed_packages import TREE, Installed, on_each_python

pytestmark = pytest.mark.slow

READ = """
import json, sys
from airflow_provider_lancens.namespace import Hive2Namespace
import lance
namespace = Hive2Namespace(uri=sys.argv[1], root=sys.argv[2])
found = {}
for name in ("readings", "means"):
    table = lance.dataset(namespace_client=namespace, table_id=["weather", name])
    found[name] = [table.version, table.to_table().to_pylist()]
print(json.dumps(found))
"""


@pytest.fixture
def metastore(installed: Installed, tmp_path: Path) -> Iterator[str]:
    """The embedded metastore, started as documented; yields its URI."""
    command = [
        installed.python,
        "-m",
        "airflow_provider_lancens.embedded",
        "--folder",
        tmp_path / "metastore",
    ]
    with Daemon(command, installed.environment()) as server:
        yield server.read(r"ready at (thrift://\S+)")


@on_each_python("spark", with_pip=True)
def test_a_dag_ingests_waits_and_reads_the_version(
    installed: Installed, metastore: str, connection: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    lake = connection(host=metastore, extra={"root": str(tmp_path / "lake")})
    example = TREE / "example_dags/spark_pinned_read.py"

    outcome, log = installed.run_dag(example, LANCE_EXAMPLE_POLL="1", **lake)

    version = outcome["ingest"]["xcom"]["version"]
    assert outcome["wait"]["xcom"]["version"] == version
    tables = json.loads(installed.run("-c", READ, metastore, str(tmp_path / "lake")).splitlines()[-1])
    rows_version, rows = tables["readings"]
    assert (rows_version, [row["hour"] for row in rows]) == (version, list(range(24)))
    _, [mean] = tables["means"]
    assert mean == {"day": rows[0]["day"], "celsius": 15.5}
    assert "pandas" not in log.lower()
