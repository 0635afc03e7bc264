"""Classification of the Kerberos library's errors: permanent or transient."""

from __future__ import annotations

import importlib
import sys
from typing import Any

_PROTOCOL = -1765328384
"""The library's number for error 0 of RFC 4120; the next 127 numbers are responses of a KDC."""
_TRANSIENT_KDC_ERRORS = {
    29,  # the KDC is overloaded or starting
    32,  # the ticket expired, and may be renewed at any moment
    33,  # the ticket is not yet valid
    37,  # the clocks differ
    60,  # the KDC failed
}
_NO_CREDENTIALS = {
    -1765328243,  # KRB5_CC_NOTFOUND: no ticket cache, or no ticket in it
    -1765328190,  # KRB5_FCC_PERM: it may not be read
    -1765328189,  # KRB5_FCC_NOFILE
    -1765328203,  # KRB5_KT_NOTFOUND: no such key in the keytab
}
# While kinit writes a new cache, a reader may see a partial cache: the number stands for a missing cache.
_HALF_WRITTEN = ("End of credential cache", "Bad format in credentials cache")


def load_library() -> None:
    """Import the Kerberos library.

    Raises:
        ImportError: it isn't installed.
    """
    importlib.import_module("kerberos")


def library_errors() -> tuple[type[Exception], ...]:
    """Return the library's own error classes, which have no base class that thrift or pure-sasl know."""
    library: Any = sys.modules.get("kerberos")
    return (library.KrbError,) if library else ()


def is_transient(error: Exception) -> bool:
    """Whether a retry may succeed later, without a change of credentials or permissions.

    True if no KDC answered, or a ticket expired or is just being renewed. False if a KDC or the server
    refused, or there are no credentials at all.
    """
    text, number = _minor(error)
    if number is None:
        return False
    if 0 <= number - _PROTOCOL < 128:
        return number - _PROTOCOL in _TRANSIENT_KDC_ERRORS
    if number in _NO_CREDENTIALS:
        return any(phrase in text for phrase in _HALF_WRITTEN)
    return True


def reason(error: Exception) -> str:
    """Return an error in one line: for the library's errors the minor status, which is the specific one."""
    text, number = _minor(error)
    return text if number is not None and text else str(error)


def _minor(error: Exception) -> tuple[str, int | None]:
    # ((major text, major), (minor text, minor))
    match error.args:
        case ((str(), int()), (str() as text, int() as number)) if isinstance(error, library_errors()):
            return text, number
    return "", None
