"""Where the specification's errors become Airflow's: which fail a task for good, which are tried again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

if TYPE_CHECKING:
    from lance_namespace.errors import LanceNamespaceError

_MAY_PASS = frozenset({14, 17, 21})
"""Codes of what goes away by itself: a lost compare-and-set, an unreachable server, throttling."""


class LanceRetryableError(AirflowException):
    """It failed this time and may work the next: Airflow retries the task, a wait goes on."""


def airflow_error(attempt: str, error: LanceNamespaceError) -> AirflowException:
    """Airflow's error for a namespace's, by its code.

    Args:
        attempt: what was tried on what, as the message begins: ``creating namespace 'sales'``.
        error: what the namespace answered.

    Returns:
        A LanceRetryableError for codes 14, 17 and 21, else an AirflowFailException.
    """
    kind = LanceRetryableError if error.code in _MAY_PASS else AirflowFailException
    return kind(f"{attempt}: {error} (code {int(error.code)}, {error.code.name})")


@contextmanager
def airflow_errors(attempt: str) -> Iterator[None]:
    """Turn a namespace's errors into Airflow's, with the cause chained.

    Args:
        attempt: what is being tried on what, as the message begins: ``creating namespace 'sales'``.

    Raises:
        LanceRetryableError: codes 14, 17 and 21.
        AirflowFailException: any other code; a retry would meet the same answer.
    """
    from lance_namespace.errors import LanceNamespaceError  # takes a second: only where a task runs

    try:
        yield
    except LanceNamespaceError as error:
        raise airflow_error(attempt, error) from error
