"""All maintenance of a table by one task: what is due is done, once and in order."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from lance_namespace.errors import InvalidTableStateError

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.operators import LanceMaintainOperator
from airflow_provider_lancens.operators._spark.spark_operator import LanceSparkOperator
from airflow_provider_lancens.spark.maintenance import IndexSpec, Thresholds, maintain
from airflow_provider_lancens.spark.maintenance.maintain import maintain_table
from airflow_provider_lancens.spark.maintenance.maintenance_options import MaintenancePlan
from tests.integration.spark.maintenance.maintaining import no_spark, write
from tests.servers.glue_double import GlueDouble, StrictGlue
from tests.support.maintained_tables import Maintained, Run

BY_ID = {"column": "id", "index_type": "BTREE"}
NOW = timedelta(0)
NEVER = timedelta(days=9999)


def done_steps(did: dict[str, Any]) -> list[str]:
    """Return the steps of an XCom that changed the table."""
    return [name for name, step in did["steps"].items() if step["outcome"] == "done"]


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A task's id for each time that it opened Spark."""
    opened: list[str] = []
    genuine = LanceSparkOperator.spark

    def counted(task: LanceSparkOperator, place: Any) -> Any:
        opened.append(task.task_id)
        return genuine(task, place)

    monkeypatch.setattr(LanceSparkOperator, "spark", counted)
    return opened


def test_a_task_does_what_is_due_in_one_session_and_nothing_when_run_again(
    hive: Maintained, run: Run, sessions: list[str]
) -> None:
    write(hive, 0, 100, 10)
    indices = [BY_ID, {"column": "word", "index_type": "BITMAP"}]

    did, event = run(LanceMaintainOperator, indices=indices)
    again, no_event = run(LanceMaintainOperator, indices=indices)

    newest = hive.newest
    assert done_steps(did) == ["compact", "index.id_idx", "index.word_idx"]
    assert did["steps"]["compact"]["reason"].startswith(
        "10 of 10 fragments are small and can be merged (min_small"
    )
    assert did["steps"]["expire"]["reason"] == "no version can be removed"
    assert [did["steps"][f"index.{name}"]["rows"] for name in ("id_idx", "word_idx")] == [100, 100]
    versions = {"previous_version": 1, "version": did["version"]}
    assert event == {
        "table": hive.id,
        "location": hive.described.location,
        "operation": "maintain",
        **versions,
    }
    assert done_steps(again) == []
    indexed = [again["steps"][f"index.{name}"]["reason"] for name in ("id_idx", "word_idx")]
    assert [reason[:25] for reason in indexed] == ["0.0% of 100 rows are not "] * 2
    assert (again["version"], again["previous_version"]) == (did["version"], did["version"])
    assert no_event["version"] == no_event["previous_version"]
    assert len(newest.get_fragments()) == 1
    assert newest.version == hive.by_path.version == did["version"]
    assert sessions == ["maintain"]
    assert hive.ids() == list(range(100))


def test_a_vector_index_is_built_anew_by_the_run_whose_compaction_left_deleted_rows_in_it(
    hive: Maintained, run: Run
) -> None:
    indices = [{"column": "v", "index_type": "IVF_FLAT", "options": {"num_partitions": 1}}]
    write(hive, 0, 600, 2, enable_stable_row_ids=True)
    run(LanceMaintainOperator, indices=indices, min_small_fragments=9)
    hive.newest.delete("id % 3 = 0")

    did, _ = run(LanceMaintainOperator, indices=indices, min_small_fragments=9)
    again, _ = run(LanceMaintainOperator, indices=indices, min_small_fragments=9)

    assert done_steps(did) == ["compact", "index.v_idx"]
    assert (
        did["steps"]["index.v_idx"]["reason"]
        == "33.3% of the rows in the index are deleted (max_deleted_share=0.1)"
    )
    query = {"column": "v", "q": [0.0, 0.0], "k": 50}
    assert hive.newest.to_table(["id", "_distance"], nearest=query).num_rows == 50
    assert done_steps(again) == []


def test_below_the_thresholds_no_spark_is_started_and_nothing_is_committed(
    hive: Maintained, run: Run, sessions: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    write(hive, 0, 950)
    run(LanceMaintainOperator, indices=[BY_ID])
    write(hive, 0, 50, 5)
    sessions.clear()

    did, event = run(LanceMaintainOperator, indices=[BY_ID], min_small_fragments=6)

    assert done_steps(did) == []
    assert event["version"] == event["previous_version"]
    assert did["steps"]["compact"]["reason"] == (
        "5 of 6 fragments are small and can be merged (min_small_fragments=6), "
        "0.0% of the rows are deleted (max_deleted_share=0.1)"
    )
    assert (
        "index 'id_idx' is not due at version 3: 5.0% of 1,000 rows are not indexed (max_unindexed_share=0.1)"
    ) in caplog.text
    assert (sessions, hive.newest.version) == ([], 3)


IDLE = """
import sys
from pathlib import Path
from airflow_provider_lancens.operators import LanceMaintainOperator
task = LanceMaintainOperator(task_id="maintain", table=sys.argv[1], lance_conn_id="lake")
did = task.execute({})
children = Path("/proc/self/task").glob("*/children")
found = did["steps"]["compact"]["outcome"]
print(found, "pyspark" in sys.modules, "py4j" in sys.modules, *(c.read_text() for c in children))
"""


@pytest.mark.long
def test_a_process_that_has_nothing_to_do_loads_no_spark_and_starts_no_java(
    hive: Maintained, connect: Callable[..., str]
) -> None:
    write(hive, 0, 30, 3)
    connect(host=hive.spec.properties["uri"], extra={"root": hive.spec.properties["root"]})

    said = subprocess.run([sys.executable, "-c", IDLE, hive.id], check=True, capture_output=True, text=True)

    assert said.stdout.splitlines()[-1].split() == ["unchanged", "False", "False"]


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Each request to Glue and to S3."""
    seen: list[str] = []
    genuine = StrictGlue.__call__

    def noted(double: StrictGlue, environ: Any, start_response: Any) -> Any:
        target = environ.get("HTTP_X_AMZ_TARGET") or environ["PATH_INFO"].rpartition("/")[2]
        seen.append(f"{environ['REQUEST_METHOD']} {target}")
        return genuine(double, environ, start_response)

    monkeypatch.setattr(StrictGlue, "__call__", noted)
    return seen


@pytest.mark.usefixtures("glue")
def test_a_decision_costs_a_dozen_requests_at_any_size(
    on_glue: Maintained, requests: list[str], glue: GlueDouble
) -> None:
    plan = MaintenancePlan(indices=(IndexSpec("id", "BTREE"),), thresholds=Thresholds(max_unindexed_share=1))
    write(on_glue, 0, 10, 1)
    maintain_table(on_glue.spark, on_glue.spec, on_glue.id, plan)
    for count in (1, 8):
        for _ in range(count):
            write(on_glue, 0, 20, 2)
        requests.clear()

        unlimited = MaintenancePlan(
            indices=plan.indices, thresholds=Thresholds(99, max_unindexed_share=1), older_than=NEVER
        )
        maintain_table(no_spark, on_glue.spec, on_glue.id, unlimited)

        assert len([one for one in requests if "AWSGlue" in one]) == 2
        assert len(requests) <= 12
        assert {one.partition(" ")[0] for one in requests} <= {"POST", "GET", "HEAD"}


class Killed(BaseException):
    """As the end of the process, which no handler of an Exception sees."""


@pytest.mark.parametrize(
    ("step", "left"),
    [
        pytest.param("compact_table", ["compact", "index.id_idx", "expire"], marks=pytest.mark.long),
        ("build_index", ["index.id_idx", "expire"]),
        pytest.param("clean_up_versions", ["expire"], marks=pytest.mark.long),
    ],
)
def test_a_task_that_was_killed_before_a_step_does_what_is_left(
    hive: Maintained, monkeypatch: pytest.MonkeyPatch, step: str, left: list[str]
) -> None:
    plan = MaintenancePlan(indices=(IndexSpec("id", "BTREE"),), older_than=NOW, thresholds=Thresholds())
    write(hive, 0, 50, 5)
    write(hive, 0, 50, 5)

    def die(*_: Any, **__: Any) -> Any:
        raise Killed

    monkeypatch.setattr(maintain, step, die)
    with pytest.raises(Killed):
        maintain_table(hive.spark, hive.spec, hive.id, plan)
    monkeypatch.undo()
    retried = maintain_table(hive.spark, hive.spec, hive.id, plan)
    again = maintain_table(no_spark, hive.spec, hive.id, plan)

    assert retried.done_steps == left
    assert not {"compact", "index.id_idx"} & {*again.done_steps}
    assert hive.newest.version == hive.by_path.version
    assert hive.ids() == sorted([*range(50), *range(50)])


def test_an_error_names_its_step_and_the_other_steps_are_made(hive: Maintained, run: Run) -> None:
    write(hive, 0, 50, 5)
    write(hive, 50, 100, 5)

    with pytest.raises(
        AirflowFailException,
        match=r"maintaining table 'db_\w+\$t' .*: index 'nope_idx' failed \(compaction committed version 4, "
        r"clean-up removed 3 versions\): table .*column='nope' does not exist.*code 12",
    ):
        run(
            LanceMaintainOperator,
            indices=[{"column": "nope", "index_type": "BTREE"}],
            older_than=NOW,
            min_removable_versions=1,
        )

    assert (hive.newest.version, len(hive.newest.get_fragments())) == (4, 1)
    assert done_steps(run(LanceMaintainOperator)[0]) == []


def test_orphans_are_removed_also_if_the_clean_up_fails(
    hive: Maintained, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(hive, 0, 10)
    write(hive, 10, 20)
    orphan = Path(hive.by_path.uri.removeprefix("file://"), "data", "orphan.lance")
    orphan.write_bytes(b"x")
    long_ago = orphan.stat().st_mtime - timedelta(days=30).total_seconds()
    os.utime(orphan, (long_ago, long_ago))
    monkeypatch.setattr(maintain, "clean_up_versions", lambda *_, **__: Path("/no such folder").stat())
    plan = MaintenancePlan(
        older_than=NOW,
        orphans_older_than=timedelta(days=7),
        thresholds=Thresholds(min_small_fragments=1_000, min_removable_versions=1),
    )

    with pytest.raises(FileNotFoundError):
        maintain_table(no_spark, hive.spec, hive.id, plan)

    assert not orphan.exists()
    assert hive.ids() == list(range(20))


def test_a_table_whose_metastore_was_bypassed_is_refused(hive: Maintained) -> None:
    write(hive, 0, 20, 2)
    hive.append_directly(100)

    with pytest.raises(InvalidTableStateError, match="was bypassed"):
        maintain_table(no_spark, hive.spec, hive.id)
