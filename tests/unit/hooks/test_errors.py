"""A namespace's errors fail a task for good, or let it be tried again."""

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException
from lance_namespace.errors import ErrorCode, from_error_code

from airflow_provider_lancens.hooks.errors import LanceRetryableError, airflow_errors

MAY_PASS = {ErrorCode.CONCURRENT_MODIFICATION, ErrorCode.SERVICE_UNAVAILABLE, ErrorCode.THROTTLING}


@pytest.mark.parametrize("code", sorted(MAY_PASS))
def test_what_may_pass_is_tried_again(code: ErrorCode) -> None:
    with pytest.raises(LanceRetryableError) as raised, airflow_errors("looking at table 'a$b'"):
        raise from_error_code(code, "nobody answered")
    assert isinstance(raised.value, AirflowException)
    assert not isinstance(raised.value, AirflowFailException)


@pytest.mark.parametrize("code", sorted(set(ErrorCode) - MAY_PASS))
def test_what_a_retry_would_meet_again_fails_for_good(code: ErrorCode) -> None:
    with pytest.raises(AirflowFailException), airflow_errors("looking at table 'a$b'"):
        raise from_error_code(code, "no")


def test_the_message_says_what_was_tried_and_why_it_failed_and_the_cause_is_chained() -> None:
    cause = from_error_code(ErrorCode.TABLE_NOT_FOUND, "table a$b does not exist")
    with pytest.raises(AirflowFailException) as raised, airflow_errors("deregistering table 'a$b'"):
        raise cause
    assert str(raised.value) == (
        "deregistering table 'a$b': table a$b does not exist (code 4, TABLE_NOT_FOUND)"
    )
    assert raised.value.__cause__ is cause


def test_an_error_that_is_not_the_namespaces_stays_what_it_is() -> None:
    with pytest.raises(KeyError), airflow_errors("looking at table 'a$b'"):
        raise KeyError("a bug")
