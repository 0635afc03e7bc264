"""A shallow clone reads all its rows after its source was compacted, indexed anew and cleaned up."""

import os
import time
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pytest

from airflow_provider_lancens.namespace.operations import table_operations
from airflow_provider_lancens.operators import LanceMaintainOperator, LanceRemoveOrphansOperator
from airflow_provider_lancens.spark.maintenance.restore import check_files
from tests.integration.spark.maintenance.maintaining import write
from tests.support.maintained_tables import Maintained, Run
from tests.support.reads import read_table

pytestmark = pytest.mark.thorough

BY_ID = {"column": "id", "index_type": "BTREE"}
PLAN: dict[str, Any] = {
    "indices": [BY_ID],
    "older_than": timedelta(0),
    "min_small_fragments": 2,
    "min_removable_versions": 1,
}
LEFT = [one for one in range(100) if one % 10 != 3]


@pytest.fixture(params=["the same database", "another database"])
def clone(
    request: pytest.FixtureRequest,
    hive: Maintained,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Maintained:
    """A clone of a table with small files, deletions and an index."""
    monkeypatch.setattr(table_operations, "_SEARCHED", 100_000)  # the server has the tables of all tests
    write(hive, 0, 100, 10)
    run(LanceMaintainOperator, indices=[BY_ID], min_small_fragments=99)
    hive.newest.delete("id % 10 = 3")
    namespace = hive.spec.connect()
    database = hive.parts[0] if request.param == "the same database" else f"other_{uuid.uuid4().hex[:8]}"
    namespace.create_namespace({"id": [database], "mode": "exist_ok"})
    source, location = hive.by_path, str(tmp_path / "clone.lance")
    source.shallow_clone(location, source.version)
    namespace.register_table({"id": [database, "copy"], "location": location})
    return Maintained(hive.spark, hive.spec, f"{database}$copy")


def age(table: Maintained) -> None:
    then = time.time() - timedelta(days=30).total_seconds()
    for file in Path(table.by_path.uri).rglob("*"):
        os.utime(file, (then, then))


def check_readable(clone: Maintained) -> None:
    assert clone.ids() == LEFT
    found = lance.dataset(clone.by_path.uri, session=lance.Session())
    assert "ScalarIndexQuery" in found.scanner(filter="id = 7").explain_plan()
    assert found.to_table(filter="id = 7")["word"].to_pylist() == ["word 7"]
    assert not check_files(clone.spec, clone.id).missing


def test_the_maintenance_of_a_source_keeps_the_files_of_its_clones(
    hive: Maintained, clone: Maintained, run: Run
) -> None:
    compacted, _ = run(LanceMaintainOperator, **PLAN)
    check_readable(clone)
    write(hive, 0, 10, mode="overwrite")
    did, _ = run(LanceMaintainOperator, **PLAN)
    age(hive)
    orphans, _ = run(LanceRemoveOrphansOperator, older_than=timedelta(days=1))

    assert [compacted["steps"][name]["outcome"] for name in ("compact", "expire")] == ["done", "done"]
    assert did["steps"]["expire"]["outcome"] == "done"
    assert (
        compacted["steps"]["expire"]["clones"]
        == did["steps"]["expire"]["clones"]
        == orphans["clones"]
        == [clone.id]
    )
    assert len(list(hive.by_path.version_refs())) == 1
    assert hive.ids() == list(range(10))
    check_readable(clone)

    write(clone, 200, 210)
    assert clone.ids() == [*LEFT, *range(200, 210)]


def test_a_clone_that_is_written_anew_lets_go_of_the_files(
    hive: Maintained, clone: Maintained, run: Run
) -> None:
    write(hive, 0, 10, mode="overwrite")
    run(LanceMaintainOperator, **PLAN)
    before = len(list((Path(hive.by_path.uri) / "data").iterdir()))

    clone.write(read_table(clone.spark, clone.spec, clone.id), mode="overwrite")
    age(hive)
    orphans, _ = run(LanceRemoveOrphansOperator, older_than=timedelta(days=1))
    hive.spec.connect().drop_table({"id": hive.parts})

    assert (before, orphans["clones"]) == (11, [])
    assert orphans["files"] == 10 + 10  # with their deletions
    assert clone.ids() == LEFT
