"""Mapping of Hive's exceptions to the specification's errors, by type.

The two sets of Thrift bindings declare the same exceptions as different classes, so types are matched
by name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from lance_namespace.errors import (
    ConcurrentModificationError,
    InternalError,
    InvalidInputError,
    LanceNamespaceError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from thrift.Thrift import TApplicationException, TException

from airflow_provider_lancens.redaction import redact, shareable_cause

ErrorMap = Mapping[str, type[LanceNamespaceError]]

_COMMON_ERRORS: ErrorMap = {
    "InvalidObjectException": InvalidInputError,
    "MetaException": InternalError,
    "InvalidOperationException": InternalError,
}
NAMESPACE_ERRORS: ErrorMap = {
    **_COMMON_ERRORS,
    "NoSuchObjectException": NamespaceNotFoundError,
    "UnknownDBException": NamespaceNotFoundError,
    "AlreadyExistsException": NamespaceAlreadyExistsError,
    "InvalidOperationException": NamespaceNotEmptyError,
}
TABLE_ERRORS: ErrorMap = {
    **_COMMON_ERRORS,
    "NoSuchObjectException": TableNotFoundError,
    "UnknownTableException": TableNotFoundError,
    "UnknownDBException": NamespaceNotFoundError,
    "AlreadyExistsException": TableAlreadyExistsError,
}
ALTER_ERRORS: ErrorMap = {**TABLE_ERRORS, "MetaException": ConcurrentModificationError}
# HIVE-26882's refusal is a plain MetaException: only its text, whose rest varies, distinguishes it.
_INVALID_LOCATION = "An external table's location should not be located"
"""What 4.x answers, as a MetaException, to a location in the folder that it keeps for managed tables."""
_REFUSED_ALTER = "The table has been modified. The parameter value for key"


@contextlib.contextmanager
def hive_errors(error_map: ErrorMap, attempt: str) -> Iterator[None]:
    """Translate Hive's exceptions to the specification's errors, whose message names the attempted call.

    Args:
        error_map: mapping of exception types to errors for this call.
        attempt: description of the call, such as "drop table db$t".
    """
    try:
        yield
    except TApplicationException as error:
        if error.type != TApplicationException.UNKNOWN_METHOD:
            raise InternalError(
                f"cannot {attempt}: the metastore failed: {redact(str(error))}"
            ) from shareable_cause(error)
        raise UnsupportedOperationError(
            f"cannot {attempt}: this metastore does not support the call ({redact(str(error))})"
        ) from shareable_cause(error)
    except TException as error:
        kind = error_map.get(type(error).__name__, InternalError)
        if kind is ConcurrentModificationError and not is_refused_alter(error):
            kind = InternalError
        if kind is InternalError and _message_of(error).startswith(_INVALID_LOCATION):
            raise InvalidInputError(
                f"cannot {attempt}: {redact(_message_of(error))}; set the location, or the property 'root', "
                "to one outside the metastore's warehouse of managed tables"
            ) from shareable_cause(error)
        # The server quotes stored values, which may include another client's location.
        raise kind(f"cannot {attempt}: {redact(_message_of(error))}") from shareable_cause(error)
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"cannot {attempt}: it contains text that is not valid Unicode: {error.reason}"
        ) from error


def is_refused_alter(error: TException) -> bool:
    """Whether an alter was refused because its expectation doesn't hold (HIVE-26882)."""
    return type(error).__name__ == "MetaException" and _message_of(error).startswith(_REFUSED_ALTER)


def _message_of(error: TException) -> str:
    message = getattr(error, "message", None) or str(error)
    return message.partition("\n")[0] or type(error).__name__
