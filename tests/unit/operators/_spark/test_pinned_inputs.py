"""Tables at a version, as they are passed from task to task."""

import pytest

from airflow_provider_lancens.operators._spark.pinned_inputs import PinnedTable
from airflow_provider_lancens.spark.publish import staged_nothing


@pytest.mark.parametrize(("outcome", "is_empty"), [("unchanged", True), ("staged", False), (None, False)])
def test_a_parsed_xcom_still_says_whether_its_task_had_rows_to_stage(
    outcome: str | None, is_empty: bool
) -> None:
    xcom = {"table": "db$t", "version": 3, "outcome": outcome, "location": "/lake/t", "seconds": 0.1}
    pinned = PinnedTable.parse("staged", xcom)

    assert staged_nothing(pinned) == staged_nothing(pinned.as_result()) == is_empty
    assert pinned.as_result().items() <= xcom.items()
