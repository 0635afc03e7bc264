"""Errors as HTTP responses with a message for the page."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from fastapi import HTTPException
from lance_namespace.errors import ErrorCode, LanceNamespaceError

from airflow_provider_lancens.hooks.airflow_errors import (
    AirflowException,
    AirflowNotFoundException,
    LanceRetryableError,
)
from airflow_provider_lancens.redaction import redact
from airflow_provider_lancens.ui.reader_threads import TooManyReadsError

log = logging.getLogger(__name__)

_STATUS = {
    ErrorCode.NAMESPACE_NOT_FOUND: 404,
    ErrorCode.TABLE_NOT_FOUND: 404,
    ErrorCode.TABLE_VERSION_NOT_FOUND: 404,
    ErrorCode.INVALID_INPUT: 400,
    ErrorCode.PERMISSION_DENIED: 403,
    ErrorCode.INVALID_TABLE_STATE: 409,
    ErrorCode.CONCURRENT_MODIFICATION: 503,
    ErrorCode.SERVICE_UNAVAILABLE: 503,
    ErrorCode.THROTTLING: 503,
}


@contextmanager
def http_errors() -> Iterator[None]:
    """Convert the errors of a read.

    Raises:
        HTTPException: its detail is a message without secrets.
    """
    try:
        yield
    except LanceNamespaceError as error:
        # A hook's message ends with the code.
        code = "" if isinstance(error, AirflowException) else f" (code {int(error.code)}, {error.code.name})"
        raise HTTPException(_STATUS.get(error.code, 502), redact(f"{error}{code}")) from None
    except (AirflowException, ValueError) as error:
        raise HTTPException(_status(error), redact(str(error))) from None
    except TimeoutError:
        raise HTTPException(504, "The metastore or the storage did not answer in time.") from None
    except TooManyReadsError:
        raise HTTPException(503, "Too many reads are under way. Try again in a moment.") from None
    except HTTPException:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, its text must be redacted
        # The cause may hold what must not be shown, such as the options of a store.
        log.error("The Lance page could not read: %s: %s", type(error).__name__, redact(str(error)))
        raise HTTPException(500, f"{type(error).__name__}; see the API server's log for details.") from None


def _status(error: AirflowException | ValueError) -> int:
    if isinstance(error, AirflowNotFoundException):
        return 404
    return 503 if isinstance(error, LanceRetryableError) else 400
