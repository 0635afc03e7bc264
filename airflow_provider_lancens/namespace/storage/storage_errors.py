"""Mapping of storage errors to the specification's: the object store's, Lance's, the file system's.

They have no common base class, and Lance keeps only the text of the operating system's error. No message
contains a secret, whatever the library quoted.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.locations import is_local, normalize, shown_location
from airflow_provider_lancens.namespace.storage import local_folder
from airflow_provider_lancens.redaction import redact

_OS_ERROR = re.compile(r"\(os error (\d+)\)")
_DEBUG = "\n\nDebug source:"
"""Begins what the object store adds to a message for its own developers."""
_INVALID_NAMES = (
    "Encountered object with invalid path",
    "Error parsing Path",
    "Failed to decode branch name",
)
"""What the object store and Lance say of a name with a line end, "..", or an empty folder in it."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_DENIED = frozenset({errno.EACCES, errno.EPERM})
_NO_LINK = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
"""What file systems without hard links answer to the request for one."""
_DENIED_KINDS = ("PermissionDeniedError", "PermissionError")
_UNAUTHENTICATED_KINDS = ("UnauthenticatedError",)
# The library has no kind of error for a denied listing, or for an object of a bulk delete.
_DENIED_WORDS = ("lacked the necessary privileges", "status code: 403", "(code: AccessDenied)")
_UNAUTHENTICATED_WORDS = ("lacked valid authentication credentials", "status code: 401")
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist")
"""What S3, Azure and Google answer where the bucket itself is missing; the library has no kind for it."""
_EXPIRED = ("ExpiredToken", "TokenRefreshRequired", "The provided token has expired")
"""What S3 answers, with the status 400, to credentials that were valid once."""
_REFUSED = re.compile(r"status code: (?:4(?!01|29)\d\d|501)\b|\(code: AccessDenied\)")
_BULK_DELETE = re.compile(r"POST \S+[?&]delete\b|DeleteObjects request failed")
_UNKNOWN_REQUEST = re.compile(r"status code: (?:405|501)\b")
_OPERATIONS = (
    (re.compile(r"list request"), "list objects (s3:ListBucket)"),
    (re.compile(rf"DELETE |{_BULK_DELETE.pattern}"), "delete objects (s3:DeleteObject)"),
    (re.compile(r"PUT |POST "), "write objects (s3:PutObject)"),
    (
        re.compile(r"GET |HEAD "),
        "read objects (s3:GetObject), and list them (s3:ListBucket), without which missing ones are denied",
    ),
)
"""What a request does, by its text in the library's message, and the right that it needs on S3."""
_VOLATILE = re.compile(
    r" in \d[\d.]*(?:n|µ|u|m)?s\b(?:, after \d+ retries, max_retries: \d+, retry_timeout: \S+)?"
    r"|<(RequestId|HostId)>[^<]*</\1>"
)
"""What differs each time in the library's message: a wait logs a reason again only if it is another."""
_LANCE_IO = "LanceError(IO)"
_SOURCE_LINE = re.compile(r",? ?(?:/\S*|[A-Za-z]:\\\S*)\.rs:\d+:\d+")
"""Source position in Lance's own code: a path of the machine that built it."""


def storage_error(
    error: BaseException, location: str, secrets: Collection[str] = ()
) -> spec_errors.LanceNamespaceError:
    """Return the specification's error for a storage error, with advice what to do.

    Args:
        error: an error of the object store or of Lance, or an OSError.
        location: the location that was read or written.
        secrets: values that must not be shown, see `redaction.redact`.

    Returns:
        An UnsupportedOperationError (0) where the storage lacks what is needed, a PermissionDeniedError (15)
        where access is denied or the file system read-only, an UnauthenticatedError (16) where the storage
        refused the credentials, an InvalidTableStateError (19) where a file has a name that none may have, a
        MissingBucketError (17) where there is no such bucket, else a ServiceUnavailableError (17): the
        storage is full, unreachable, or failed.
    """
    where, reason = f"storage at {redact(location, secrets)}", _reason(error, secrets)
    return (
        _invalid_name(error, where, secrets)
        or _file_system_error(error, location, where, reason)
        or _refusal(error, where, reason)
        or spec_errors.ServiceUnavailableError(f"{where} returned an unexpected response: {reason}")
    )


def _invalid_name(
    error: BaseException, where: str, secrets: Collection[str]
) -> spec_errors.LanceNamespaceError | None:
    if not is_invalid_name(error):
        return None
    return spec_errors.InvalidTableStateError(
        f"{where} has a file whose name no file of a table may have: "
        f"{shown_text(error, secrets)}; another client made it: remove or rename it"
    )


def _file_system_error(
    error: BaseException, location: str, where: str, reason: str
) -> spec_errors.LanceNamespaceError | None:
    number = _errno(error)
    if number in _FULL:
        return spec_errors.ServiceUnavailableError(
            f"{where} is full: {reason}; free up space there, or raise its quota, and run it again"
        )
    if number == errno.EROFS:
        return spec_errors.PermissionDeniedError(
            f"{where} is read-only: {reason}; mount it writable, or write elsewhere"
        )
    if number in _NO_LINK and is_local(location) and not local_folder.has_hard_links(normalize(location)):
        return spec_errors.UnsupportedOperationError(
            f"{where} is on a mount without hard links, by which exactly one writer creates a version; use "
            "a file system that has them, such as ext4, XFS or NFS, or an object store"
        )
    if number in _DENIED:
        return spec_errors.PermissionDeniedError(
            f"{where}: access denied: {reason}; grant it to the user that workers and executors run as"
        )
    return None


def _refusal(error: BaseException, where: str, reason: str) -> spec_errors.LanceNamespaceError | None:
    """Return the error for a request that an object store refused; None if it failed otherwise."""
    kind, text = type(error).__name__, str(error)
    if any(said in text for said in _NO_BUCKET):
        # Imported here, since the package of the specification's errors is loaded only for an error.
        from airflow_provider_lancens.namespace.error_types import MissingBucketError

        return MissingBucketError(f"{where}: its bucket does not exist; create it, or correct the location")
    if any(said in text for said in _EXPIRED):
        # Retried, unlike an UnauthenticatedError: the next try of a task gets new credentials from an `aws`
        # connection.
        return spec_errors.ServiceUnavailableError(
            f"{where}: the credentials have expired; a storage.session_token cannot be renewed while a task "
            "runs: set a new one, or give executors a role instead"
        )
    if kind == "NotImplementedError":
        return spec_errors.UnsupportedOperationError(
            f"{where}: {reason}; remove property storage.aws_conditional_put if it is set"
        )
    if _BULK_DELETE.search(reason) and _UNKNOWN_REQUEST.search(reason):
        return spec_errors.UnsupportedOperationError(
            f"{where} does not support bulk deletes; set property storage.aws_disable_bulk_delete=true"
        )
    if kind in _DENIED_KINDS or any(said in reason for said in _DENIED_WORDS):
        return spec_errors.PermissionDeniedError(
            f"{where}: access denied; check the storage.* properties{_needed_right(reason)}"
        )
    if kind in _UNAUTHENTICATED_KINDS or any(said in reason for said in _UNAUTHENTICATED_WORDS):
        return spec_errors.UnauthenticatedError(f"{where}: not authenticated; check the storage.* properties")
    return None


def is_storage_error(error: BaseException) -> bool:
    """Whether an error is the storage's: Lance raises a ValueError for some."""
    return isinstance(error, OSError) or (isinstance(error, ValueError) and _LANCE_IO in str(error))


def shown_text(error: BaseException, secrets: Collection[str] = ()) -> str:
    """Return what a library says for a message: on one line, cut, and without places in its own source."""
    said = str(error).partition(_DEBUG)[0]
    return shown_location(redact(_SOURCE_LINE.sub("", said), secrets))


def is_invalid_name(error: BaseException) -> bool:
    """Whether a store or Lance can't list a folder, since a file in it has a name that can't be a path."""
    return any(said in str(error) for said in _INVALID_NAMES)


def is_refused_bulk_delete(error: BaseException) -> bool:
    """Whether a store refused to delete several objects by one request: it lacks or denies it."""
    reason = str(error).partition("\n")[0]
    return bool(_REFUSED.search(reason) and _BULK_DELETE.search(reason))


def invalid_option(location: str, key: str, expected: str) -> spec_errors.InvalidInputError:
    """Return the error for an option with an invalid value, which is not shown."""
    return spec_errors.InvalidInputError(
        f"storage at {redact(location)}: property 'storage.{key}' is invalid; expected: {expected}"
    )


def invalid_url(
    error: Exception, location: str, secrets: Collection[str] = ()
) -> spec_errors.InvalidInputError:
    """Return the error for a location that the store can't open."""
    return spec_errors.InvalidInputError(
        f"storage at {redact(location, secrets)} cannot be opened: {_reason(error, secrets)}; check "
        "the location's scheme and host, and the storage.* properties"
    )


def _errno(error: BaseException) -> int | None:
    number = getattr(error, "errno", None)
    if isinstance(number, int):
        return number
    status = _OS_ERROR.search(str(error))
    return int(status[1]) if status else None


def _needed_right(reason: str) -> str:
    right = next((right for request, right in _OPERATIONS if request.search(reason)), "")
    return f", and that they may {right}" if right else ""


def _reason(error: BaseException, secrets: Collection[str]) -> str:
    number = _errno(error)
    first = _VOLATILE.sub("", _SOURCE_LINE.sub("", str(error).partition("\n")[0])).strip()
    if number is not None:
        # The rest of the text names Lance's temporary files, which doesn't help the user.
        return os.strerror(number)
    return redact(first, secrets) or type(error).__name__
