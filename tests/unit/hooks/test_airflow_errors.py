"""A namespace's errors fail a task without retries, or are retryable."""

import pytest
from lance_namespace.errors import ErrorCode, TableNotFoundError, from_error_code

from airflow_provider_lancens.hooks.airflow_errors import (
    AirflowException,
    AirflowFailException,
    LanceRetryableError,
    airflow_errors,
)

MAY_PASS = {ErrorCode.CONCURRENT_MODIFICATION, ErrorCode.SERVICE_UNAVAILABLE, ErrorCode.THROTTLING}


@pytest.mark.parametrize("code", sorted(MAY_PASS))
def test_transient_errors_are_retryable(code: ErrorCode) -> None:
    with pytest.raises(LanceRetryableError) as raised, airflow_errors("polling table 'a$b'"):
        raise from_error_code(code, "no reply")
    assert isinstance(raised.value, AirflowException)
    assert not isinstance(raised.value, AirflowFailException)


@pytest.mark.parametrize("code", sorted(set(ErrorCode) - MAY_PASS))
def test_permanent_errors_fail_without_retry(code: ErrorCode) -> None:
    with pytest.raises(AirflowFailException), airflow_errors("polling table 'a$b'"):
        raise from_error_code(code, "no")


def test_the_message_says_what_failed_and_why_and_the_cause_is_chained() -> None:
    cause = from_error_code(ErrorCode.TABLE_ALREADY_EXISTS, "table a$b exists")
    with pytest.raises(AirflowFailException) as raised, airflow_errors("declaring table 'a$b'"):
        raise cause
    assert str(raised.value) == "declaring table 'a$b': table a$b exists (code 5, TABLE_ALREADY_EXISTS)"
    assert raised.value.__cause__ is cause


@pytest.mark.parametrize(
    ("code", "operator"),
    [
        (ErrorCode.TABLE_NOT_FOUND, "declare the table first, with LanceDeclareTableOperator"),
        (ErrorCode.NAMESPACE_NOT_FOUND, "create the namespace first, with LanceCreateNamespaceOperator"),
    ],
)
def test_what_does_not_exist_is_told_with_the_operator_that_creates_it(
    code: ErrorCode, operator: str
) -> None:
    with pytest.raises(AirflowFailException, match=f"gone.*{operator}"), airflow_errors("reading"):
        raise from_error_code(code, "gone")


@pytest.mark.parametrize("code", sorted(ErrorCode))
def test_an_error_keeps_its_class_and_its_code(code: ErrorCode) -> None:
    raised_by_namespace = from_error_code(code, "no")
    with pytest.raises(type(raised_by_namespace)) as raised, airflow_errors("polling table 'a$b'"):
        raise raised_by_namespace
    assert raised.value.code == code
    assert isinstance(raised.value, AirflowException)


def test_an_inner_block_converts_an_error_once() -> None:
    with (
        pytest.raises(TableNotFoundError) as raised,
        airflow_errors("loading table 'a$b'"),
        airflow_errors("looking up table 'a$b'"),
    ):
        raise TableNotFoundError("gone")
    assert str(raised.value).startswith("looking up table 'a$b': gone (code 4")


def test_other_errors_are_not_converted() -> None:
    with pytest.raises(KeyError), airflow_errors("polling table 'a$b'"):
        raise KeyError("a bug")
