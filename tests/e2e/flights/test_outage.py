"""The metastore is killed in the middle of a run, and restarted."""

import pandas
import pytest

from tests.e2e.flights import expected
from tests.support.flights import Pipeline

pytestmark = pytest.mark.long


def test_a_run_succeeds_despite_a_metastore_outage(pipeline: Pipeline) -> None:
    before = pipeline.versions()

    with pipeline.running(None) as run:  # as if triggered in the UI: the first month that isn't done
        run.wait_for("task_id=ingest_flights")
        pipeline.metastore.kill()
        run.wait_for("new_state=up_for_retry")
        pipeline.metastore.start()
        tasks = run.result()

    assert {task["state"] for task in tasks.values()} == {"success"}
    assert tasks["choose_month"]["xcom"] == "2013-03"
    assert pipeline.versions() == {name: version + 1 for name, version in before.items()}
    delays = pipeline.table("delays")
    of_month = delays[delays["month"] == 3].sort_values(expected.HOUR, ignore_index=True)
    right = expected.delays(3)
    pandas.testing.assert_frame_equal(of_month[right.columns], right, check_dtype=False, check_exact=True)
