"""Hive's exceptions as the specification's errors, by type.

The two sets of Thrift bindings declare the same exceptions as different classes, so a type goes
by its name.
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

Meanings = Mapping[str, type[LanceNamespaceError]]

_ALWAYS: Meanings = {
    "InvalidObjectException": InvalidInputError,
    "MetaException": InternalError,
    "InvalidOperationException": InternalError,
}
OF_NAMESPACE: Meanings = {
    **_ALWAYS,
    "NoSuchObjectException": NamespaceNotFoundError,
    "UnknownDBException": NamespaceNotFoundError,
    "AlreadyExistsException": NamespaceAlreadyExistsError,
    "InvalidOperationException": NamespaceNotEmptyError,
}
OF_TABLE: Meanings = {
    **_ALWAYS,
    "NoSuchObjectException": TableNotFoundError,
    "UnknownTableException": TableNotFoundError,
    "UnknownDBException": NamespaceNotFoundError,
    "AlreadyExistsException": TableAlreadyExistsError,
}
OF_ALTER: Meanings = {**OF_TABLE, "MetaException": ConcurrentModificationError}
# HIVE-26882's refusal is a plain MetaException: only its text, whose rest varies, tells it from others.
_REFUSED_ALTER = "The table has been modified. The parameter value for key"


@contextlib.contextmanager
def hive_errors(meanings: Meanings, attempt: str) -> Iterator[None]:
    """Raise the specification's error for Hive's, saying what was attempted on what.

    Args:
        meanings: what an exception's type means for this attempt.
        attempt: in words, as "drop table db$t".
    """
    try:
        yield
    except TApplicationException as error:
        if error.type != TApplicationException.UNKNOWN_METHOD:
            raise InternalError(f"cannot {attempt}: the metastore failed: {error}") from error
        raise UnsupportedOperationError(
            f"cannot {attempt}: this metastore does not know the call ({error})"
        ) from error
    except TException as error:
        kind = meanings.get(type(error).__name__, InternalError)
        if kind is ConcurrentModificationError and not is_refused_alter(error):
            kind = InternalError
        raise kind(f"cannot {attempt}: {_words(error)}") from error
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"cannot {attempt}: a text in it is no Unicode text: {error.reason}"
        ) from error


def is_refused_alter(error: TException) -> bool:
    """Whether this is the refusal of an alter whose expectation doesn't hold (HIVE-26882)."""
    return type(error).__name__ == "MetaException" and _words(error).startswith(_REFUSED_ALTER)


def _words(error: TException) -> str:
    message = getattr(error, "message", None) or str(error)
    return message.partition("\n")[0] or type(error).__name__
