"""Tasks that stage, publish and discard, with the asset event that tells others."""

from collections.abc import Callable
from typing import Any

import pytest
from airflow.sdk import Asset
from airflow.sdk.execution_time.context import OutletEventAccessors

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.operators.ingest import LanceAppendOperator
from airflow_provider_lancens.operators.publish import LanceDiscardOperator, LancePublishOperator
from tests.integration.airflow.lifecycle import Attempt
from tests.support.maintained_tables import Maintained, rows

pytestmark = pytest.mark.thorough

Run = Callable[..., tuple[dict[str, Any], dict[str, Any]]]


def more(spark: Any) -> Any:
    return rows(spark, 3, 5)


@pytest.fixture
def run(hive: Maintained, connect: Callable[..., str]) -> Run:
    """Run an operator as a worker does; return its XCom and the extra of the table's asset event."""
    lake = connect(host=hive.spec.properties["uri"], extra={"root": hive.spec.properties["root"]})
    asset = Asset(uri=f"lance://{lake}/{hive.id.replace('$', '/')}")
    hive.write(rows(hive.spark, 0, 3))

    def run(
        operator: type[Any], *, try_number: int = 1, **arguments: Any
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        events = OutletEventAccessors()
        task = operator(task_id="task", lance_conn_id=lake, outlets=[asset], retries=2, **arguments)
        instance = Attempt()
        instance.try_number, instance.max_tries = try_number, 2
        context: Any = {"ti": instance, "task": task, "run_id": "manual__1", "outlet_events": events}
        answer = task.execute(context)
        return answer, dict(events[asset].extra) if task.outlets else {}

    return run


@pytest.fixture
def staged(run: Run, hive: Maintained) -> dict[str, Any]:
    given = {"table": hive.id, "source": more, "key": "day", "stage": True}
    result, event = run(LanceAppendOperator, **given)
    again, _ = run(LanceAppendOperator, **given)
    assert event == {}
    assert (again["staged_version"], again["outcome"]) == (result["staged_version"], "found")
    return result


def test_an_event_is_made_when_a_version_is_published(
    run: Run, hive: Maintained, staged: dict[str, Any]
) -> None:
    published, event = run(LancePublishOperator, staged=staged)
    again, _ = run(LancePublishOperator, staged=staged)

    rows_of_event = {"operation": "publish", "inserted": 2, "updated": 0, "deleted": 0}
    versions = {"version": 2, "previous_version": 1}
    assert event == {"table": hive.id, "location": hive.described.location, **versions, **rows_of_event}
    assert (published["version"], published["outcome"], published["staged_version"]) == (2, "done", None)
    assert (again["version"], again["outcome"] == "done") == (2, False)
    assert hive.ids() == [0, 1, 2, 3, 4]


def test_a_version_that_was_published_before_emits_no_event_after_newer_ones(
    run: Run, hive: Maintained, staged: dict[str, Any]
) -> None:
    _, event = run(LancePublishOperator, staged=staged)
    again, same = run(LancePublishOperator, staged=staged)
    hive.write(rows(hive.spark, 5, 6))

    cleared, none = run(LancePublishOperator, staged=staged)
    retried, after_a_retry = run(LancePublishOperator, staged=staged, try_number=2)

    assert (again["outcome"], same) == ("skipped", event)
    assert (cleared["version"], cleared["outcome"], none) == (2, "skipped", {})
    # The try before may have published it, without an event.
    assert (retried["outcome"] == "skipped", after_a_retry) == (False, event)


def test_the_event_has_the_partitions_that_were_published(run: Run, staged: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="event_partitions: not allowed with stage=True"):
        run(LanceAppendOperator, table="a$b", source=more, stage=True, event_partitions="id")

    _, event = run(LancePublishOperator, staged=staged, event_partitions="id")

    assert event["partitions"] == ["3", "4"]


def test_a_column_for_partitions_is_checked_before_anything_is_published(
    run: Run, hive: Maintained, staged: dict[str, Any]
) -> None:
    with pytest.raises(AirflowFailException, match="event_partitions: expected names among"):
        run(LancePublishOperator, staged=staged, event_partitions="day")
    assert hive.ids() == [0, 1, 2]


def test_an_ingestion_without_rows_has_no_partitions(run: Run, hive: Maintained) -> None:
    given = {"table": hive.id, "source": lambda spark: rows(spark, 0, 0), "key": "none"}
    staged, _ = run(LanceAppendOperator, **given, stage=True)

    _, event = run(LancePublishOperator, staged=staged, event_partitions="id")

    assert (event["version"], event["partitions"]) == (1, [])


def test_an_ingestion_without_rows_emits_no_version_of_others_as_published(
    run: Run, hive: Maintained
) -> None:
    hive.write(rows(hive.spark, 5, 7))
    given = {"table": hive.id, "source": lambda spark: rows(spark, 0, 0), "key": "none"}
    staged, _ = run(LanceAppendOperator, **given, stage=True)
    hive.write(rows(hive.spark, 7, 8))

    published, event = run(LancePublishOperator, staged=staged)

    assert (staged["version"], published["outcome"], published["version"]) == (2, "unchanged", 3)
    # Neither their rows once more, nor a version that is older than those of their events.
    assert (event["previous_version"], event["version"], event["inserted"]) == (3, 3, 0)


def test_a_discarded_version_is_not_published(run: Run, hive: Maintained, staged: dict[str, Any]) -> None:
    discarded, event = run(LanceDiscardOperator, staged=staged)
    with pytest.raises(AirflowFailException, match=r"staged version .* doesn't exist"):
        run(LanceDiscardOperator, staged=staged)
    again, _ = run(LanceDiscardOperator, staged=staged, if_missing="skip")
    retried, _ = run(LanceDiscardOperator, staged=staged, try_number=2)

    assert (discarded["outcome"], again["outcome"] == "done", event) == ("done", False, {})
    assert retried == again
    with pytest.raises(AirflowFailException, match="it was discarded, or it has expired"):
        run(LancePublishOperator, staged=staged)
    assert hive.ids() == [0, 1, 2]


def test_a_mapping_without_a_version_is_refused(run: Run) -> None:
    with pytest.raises(AirflowFailException, match=r"staged: expected a mapping with 'table' and 'version'"):
        run(LancePublishOperator, staged={"table": "a$b"})


def test_an_ingestion_without_rows_has_nothing_to_discard(run: Run, hive: Maintained) -> None:
    nothing, _ = run(
        LanceAppendOperator, table=hive.id, source=lambda spark: more(spark).limit(0), key="day", stage=True
    )

    discarded, _ = run(LanceDiscardOperator, staged=nothing)

    assert (nothing["outcome"], nothing["staged_version"]) == ("unchanged", None)
    assert discarded == {
        "table": hive.id,
        "operation": "discard",
        "outcome": "unchanged",
        "staged_version": None,
    }
    assert len(hive.ids()) == 3
