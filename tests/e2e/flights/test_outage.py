"""The metastore dies in the middle of a run, and comes back."""

import pandas
import pytest

from tests.e2e.flights import expected
from tests.e2e.flights.conftest import Pipeline

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def test_a_run_ends_right_although_the_metastore_was_gone_for_a_while(pipeline: Pipeline) -> None:
    before = pipeline.versions()

    with pipeline.running(None) as run:  # as from the button: the first month that isn't done
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
