"""Errors of this provider, and which of them fail a task without retries.

Namespaces, catalogs and tables raise subclasses of ``LanceNamespaceError``, each with a code of the
specification. Operators, sensors and hooks make them Airflow's exceptions as well, by that code, and end the
message with it: ``(code 17, SERVICE_UNAVAILABLE)``. An error that may pass is then also a
``LanceRetryableError``, so that the task is retried and a wait goes on; any other error is also an
``AirflowFailException``, which fails the task without retries. So ``except TableNotFoundError`` works in a
task as it does in a job without Airflow, and ``error.code`` has the number::

    class                                   code  in a task
    Exception
    ├── LanceNamespaceError                  18   fails
    │   ├── UnsupportedOperationError         0   fails
    │   ├── NamespaceNotFoundError            1   fails
    │   ├── NamespaceAlreadyExistsError       2   fails
    │   ├── NamespaceNotEmptyError            3   fails
    │   ├── TableNotFoundError                4   fails
    │   ├── TableAlreadyExistsError           5   fails
    │   ├── TableIndexNotFoundError           6   fails
    │   ├── TableIndexAlreadyExistsError      7   fails
    │   ├── TableTagNotFoundError             8   fails
    │   ├── TableTagAlreadyExistsError        9   fails
    │   ├── TransactionNotFoundError         10   fails
    │   ├── TableVersionNotFoundError        11   fails
    │   ├── TableColumnNotFoundError         12   fails
    │   ├── InvalidInputError                13   fails
    │   │   └── DifferentDataError           13   fails: the key was committed with other data
    │   ├── ConcurrentModificationError      14   retried: another writer was first
    │   │   ├── StaleTableError              14   retried: the table was replaced or converted
    │   │   └── PassedVersionError           14   fails: the table is past the expected version
    │   ├── PermissionDeniedError            15   fails
    │   ├── UnauthenticatedError             16   fails
    │   ├── ServiceUnavailableError          17   retried: nobody answered, or the storage is full
    │   │   ├── LostReplyError               17   retried: it is unknown whether a change took effect
    │   │   ├── UnreadableTablesError        17   retried: no table of a database can be read
    │   │   └── MissingBucketError           17   retried: the bucket may be created
    │   ├── InternalError                    18   fails
    │   ├── InvalidTableStateError           19   fails
    │   ├── TableSchemaValidationError       20   fails
    │   ├── ThrottlingError                  21   retried: too many requests
    │   ├── TableBranchNotFoundError         22   fails
    │   └── TableBranchAlreadyExistsError    23   fails
    ├── AirflowException
    │   ├── AirflowFailException                  fails
    │   │   └── UnknownMappedItemError            fails: a mapped task has no default key
    │   └── LanceRetryableError                   retried
    ├── ValueError
    │   ├── InvalidIdentifierError                fails: a namespace raises InvalidInputError instead
    │   ├── InvalidResultError                    in no task: raised and caught on an executor
    │   ├── RowError                              in no task: an executor raises InvalidInputError instead
    │   └── CannotCompareError                    in no task: a condition raises InvalidInputError instead
    ├── RuntimeError
    │   ├── ColumnFunctionError                   retried: a function that computes a column failed
    │   ├── LancePanicError                   fails: Spark code and namespaces raise InternalError instead
    │   ├── TooManyReadsError                     in no task: raised by the Lance page of Airflow's UI
    │   └── EmbeddedMetastoreError                retried: raised by the embedded metastore alone
    │       ├── JavaUnsuitableError               retried
    │       ├── JarsMissingError                  retried
    │       ├── FolderInUseError                  retried
    │       └── MetastoreStartError               retried
    ├── SourceRowsError                           retried: rows that were passed ended with an error
    ├── FragmentsReplacedError                    in no task: the computation of a column plans anew
    ├── ClusterError                              in no task: a cluster didn't answer, which is logged
    ├── TException
    │   └── UnreadableReplyError                  fails: a namespace raises InternalError instead
    └── OSError
        └── ConnectionError
            └── ReplyMismatchError                retried: a namespace raises LostReplyError instead
    BaseException
    └── TaskKilled                                ends the task that was killed

The specification's classes are in ``lance_namespace.errors``, and Airflow's in
``airflow.sdk.exceptions``. Code 10 is part of the specification, and no operation of these
namespaces raises it. An operator's argument decides whether an object that exists or is
missing is an error at all: ``if_exists`` and ``if_missing``. Errors of other libraries are raised unchanged,
and Airflow retries the task, unless their text contains a secret: then they become a ``LanceRetryableError``
without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

try:  # Airflow 3.2 and newer; compatibility providers of older versions lack some of these names
    from airflow.sdk.exceptions import (
        AirflowException,
        AirflowFailException,
        AirflowNotFoundException,
        AirflowRescheduleException,
        AirflowSensorTimeout,
        AirflowSkipException,
        AirflowTaskTimeout,
    )
except ImportError:  # Airflow 3.1
    from airflow.exceptions import (  # type: ignore[attr-defined, no-redef]
        AirflowException,
        AirflowFailException,
        AirflowNotFoundException,
        AirflowRescheduleException,
        AirflowSensorTimeout,
        AirflowSkipException,
        AirflowTaskTimeout,
    )

if TYPE_CHECKING:
    from lance_namespace.errors import LanceNamespaceError

__all__ = [
    "AirflowException",
    "AirflowFailException",
    "AirflowNotFoundException",
    "AirflowRescheduleException",
    "AirflowSensorTimeout",
    "AirflowSkipException",
    "AirflowTaskTimeout",
    "LanceRetryableError",
    "airflow_error",
    "airflow_errors",
]

_TRANSIENT_CODES = frozenset({14, 17, 21})
"""Codes of transient errors: a lost compare-and-set, an unreachable server, throttling."""


_ADVICE = {
    1: "Check the name, or create the namespace first, with LanceCreateNamespaceOperator",
    4: "Check the name, or declare the table first, with LanceDeclareTableOperator, and create its database, "
    "if that doesn't exist, with LanceCreateNamespaceOperator",
}
"""What to do about errors that say only that something doesn't exist, by code."""


class LanceRetryableError(AirflowException):
    """A transient error: Airflow retries the task, and a sensor or trigger keeps waiting."""


def airflow_error(attempt: str, error: LanceNamespaceError) -> AirflowException:
    """Return Airflow's error for a namespace's error, by its code.

    Args:
        attempt: the action, which the message begins with: ``creating namespace 'sales'``.
        error: the namespace's error.

    Returns:
        A LanceRetryableError for codes 14, 17 and 21, except for a PassedVersionError, else an
        AirflowFailException; it is of the class of `error` too, with its ``code``.
    """
    from airflow_provider_lancens.redaction import redact

    advice = f". {_ADVICE[error.code]}" if error.code in _ADVICE else ""
    text = redact(f"{attempt}: {error} (code {int(error.code)}, {error.code.name}){advice}")
    return _airflow_class(type(error))(text)


def _airflow_class(kind: type[LanceNamespaceError]) -> type[AirflowException]:
    """Return a subclass of an error's class and of the class by which Airflow decides on a retry."""
    may_pass = getattr(kind, "may_pass", kind.code in _TRANSIENT_CODES)
    airflow_kind = LanceRetryableError if may_pass else AirflowFailException
    return type(kind.__name__, (airflow_kind, kind), {"__module__": kind.__module__, "__doc__": kind.__doc__})


@contextmanager
def airflow_errors(attempt: str) -> Iterator[None]:
    """Make a namespace's errors Airflow's too, and chain the cause if its text contains no secret.

    Args:
        attempt: the action, which messages begin with: ``creating namespace 'sales'``.

    Raises:
        LanceRetryableError: for codes 14, 17 and 21; or for a library's error whose text contained a secret,
            without the secret. Other errors of libraries are raised unchanged.
        AirflowFailException: for any other code, and for a table that is past an expected version; a retry
            would fail in the same way.
    """
    from lance_namespace.errors import LanceNamespaceError  # takes a second: only where a task runs

    from airflow_provider_lancens.redaction import redact, shareable_cause

    try:
        yield
    except AirflowException:  # also the errors that an inner block has converted
        raise
    except LanceNamespaceError as error:
        raise airflow_error(attempt, error) from shareable_cause(error)
    except Exception as error:  # whatever a library raises, Airflow logs its text and its causes' texts
        if shareable_cause(error) is error:
            raise
        raise LanceRetryableError(f"{attempt}: {type(error).__name__}: {redact(str(error))}") from None
