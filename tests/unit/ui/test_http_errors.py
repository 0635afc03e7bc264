"""Errors of reads become responses whose text says what happened, without secrets."""

import pytest
from fastapi import HTTPException
from lance_namespace.errors import (
    InternalError,
    PermissionDeniedError,
    ServiceUnavailableError,
    TableNotFoundError,
)

from airflow_provider_lancens.hooks.airflow_errors import (
    AirflowFailException,
    AirflowNotFoundException,
    LanceRetryableError,
)
from airflow_provider_lancens.identifiers import InvalidIdentifierError
from airflow_provider_lancens.ui.http_errors import http_errors
from airflow_provider_lancens.ui.reader_threads import TooManyReadsError


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (TableNotFoundError("no table"), 404),
        (PermissionDeniedError("denied"), 403),
        (ServiceUnavailableError("down"), 503),
        (InternalError("broken"), 502),
        (InvalidIdentifierError("'' is empty"), 400),
        (AirflowNotFoundException("no connection"), 404),
        (AirflowFailException("wrong field"), 400),
        (LanceRetryableError("down"), 503),
        (TimeoutError(), 504),
        (TooManyReadsError(), 503),
        (HTTPException(403, "not yours"), 403),
        (RuntimeError("a defect"), 500),
    ],
)
def test_an_error_has_a_status_and_a_message(error: Exception, status: int) -> None:
    with pytest.raises(HTTPException) as raised, http_errors():
        raise error
    assert raised.value.status_code == status
    assert raised.value.detail


@pytest.mark.parametrize("kind", [ServiceUnavailableError, AirflowFailException, RuntimeError])
def test_no_secret_is_shown_or_logged(kind: type[Exception], caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(HTTPException) as raised, http_errors():
        raise kind("cannot read s3://key:hush-hush@bucket/table?X-Amz-Signature=hush-hush")
    assert "hush-hush" not in raised.value.detail + caplog.text
