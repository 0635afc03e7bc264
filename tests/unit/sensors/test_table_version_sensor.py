"""What the sensor decides before the first poll."""

from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException, AirflowSensorTimeout
from airflow_provider_lancens.sensors.table_version_sensor import LanceTableVersionSensor

SOON = "2100-01-01T00:00:00+00:00"


def sensor(**arguments: Any) -> LanceTableVersionSensor:
    return LanceTableVersionSensor(task_id="wait", table="sales$orders", **arguments)


def test_the_argument_takes_precedence_over_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE", "true")
    assert not sensor(deferrable=False).deferrable


def test_an_impossible_wait_fails_without_retry() -> None:
    with pytest.raises(AirflowFailException, match="denied"):
        sensor().execute_complete({}, {"status": "error", "message": "denied"}, SOON)


def test_an_invalid_choice_is_refused_with_the_allowed_ones() -> None:
    with pytest.raises(ValueError, match="wait_for='most'; allowed: all, any"):
        sensor(wait_for="most")


@pytest.mark.parametrize("argument", ["after_version", "min_version"])
@pytest.mark.parametrize("deferrable", [True, False])
def test_an_invalid_version_fails_without_retry_by_name(argument: str, deferrable: bool) -> None:
    with pytest.raises(AirflowFailException, match=f"{argument}='soon': not a version"):
        sensor(deferrable=deferrable, **{argument: "soon"}).execute({})


def test_a_timeout_in_the_triggerer_is_a_sensors_timeout() -> None:
    waiting = sensor(timeout=timedelta(seconds=5))
    with pytest.raises(AirflowSensorTimeout):
        waiting.resume_execution("__fail__", {"error": "Trigger timeout"}, {})


def test_template_fields_are_those_documented() -> None:
    fields = {"table", "after_version", "min_version", "index", "lance_conn_id"}
    assert set(LanceTableVersionSensor.template_fields) == fields
