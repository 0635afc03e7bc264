"""The specification's errors for the errors of Lance's core.

Lance raises an OSError or a ValueError for nearly everything: only the text distinguishes a failure of the
storage, which may pass, from data or a request that it will always refuse. If a namespace raises an error
while Lance's core opens a dataset or commits through it, the core raises a ValueError such as ``Namespace
error: Service unavailable: <message>, src/namespace.rs:1569:18``. A panic of its native code is no
``Exception`` at all.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cache

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.storage.object_store import MANIFEST_SUFFIX, version_of
from airflow_provider_lancens.namespace.storage.storage_errors import is_storage_error, storage_error
from airflow_provider_lancens.redaction import redact

LANCE_ERRORS = (OSError, RuntimeError, ValueError)
"""What Lance raises for any failure of a commit."""
_NAMESPACE_ERROR = re.compile(
    r"Namespace error: (\w[\w ]*?)(?: error)?: (.*?)(?:, \S+\.rs:\d+:\d+)?", re.DOTALL
)
_SOURCE_LINE = re.compile(r",? ?(?:/\S*|src/\S*)\.rs:\d+:\d+")
_OF_STORAGE = re.compile(r"LanceError\(IO\)|\(os error \d+\)|Generic \w+ error|(?i:commit conflict)")
_REFUSALS = {
    r"Invalid user input": "INVALID_INPUT",
    r"Not supported": "INVALID_INPUT",
    r"Received literal": "INVALID_INPUT",
    r"Ref is invalid": "INVALID_INPUT",
    r"Ref conflict": "INVALID_INPUT",
    r"(?:.* )?different schema": "TABLE_SCHEMA_VALIDATION_ERROR",
    r"LanceError\(Schema\)": "TABLE_SCHEMA_VALIDATION_ERROR",
    r"LanceError\(Arrow\)(?!: C Data interface)": "INVALID_INPUT",
    r"Encountered corrupt file": "INVALID_TABLE_STATE",
    r"Not found: Fragment \d+ does not contain any data": "INVALID_TABLE_STATE",
    r"Encountered internal error": "INTERNAL",
    r"LanceError\(Index\)": "INTERNAL",
}
"""What Lance refuses each time, whoever tries again: how its text begins, and the code."""
_REFUSAL = re.compile(r"(?:External error: )*(?:" + "|".join(f"({pattern})" for pattern in _REFUSALS) + ")")


_CONFLICT = re.compile(r"commit conflict|Incompatible transaction", re.IGNORECASE)


class LancePanicError(RuntimeError):
    """A panic of Lance's native code, which by itself no ``except Exception`` catches."""


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """Convert a panic of Lance's native code in the block to an error that can be handled.

    Raises:
        LancePanicError: Lance's code panicked.
    """
    try:
        yield
    except BaseException as error:
        if not is_panic(error):
            raise
        raise LancePanicError(str(error)) from None


def is_panic(error: BaseException) -> bool:
    """Whether an error is a panic of native code, by its name: each library has a class of its own."""
    kind = type(error)
    return (kind.__module__, kind.__name__) == ("pyo3_runtime", "PanicException")


_NO_MANIFEST = re.compile(r"(?:Dataset at path|Not found:) \S*?_versions/(\d+)\.manifest")


def namespace_error(
    error: BaseException, secrets: Collection[str] = ()
) -> spec_errors.LanceNamespaceError | None:
    """Return the error that a namespace raised to Lance's core; None if the core's error is another one.

    Args:
        error: what Lance raised.
        secrets: values that must not appear in the message.
    """
    shown = _NAMESPACE_ERROR.fullmatch(str(error)) if isinstance(error, ValueError | OSError) else None
    if shown is None or (code := _codes().get(shown[1])) is None:
        return None
    return spec_errors.from_error_code(code, redact(shown[2], secrets))


@cache
def _codes() -> dict[str, spec_errors.ErrorCode]:
    """Return each error code by the name that Lance's core prints for it."""
    return {
        code.name.removesuffix("_ERROR").replace("_", " ").capitalize(): code
        for code in spec_errors.ErrorCode
    }


def specified_error(
    error: BaseException, location: str, secrets: Collection[str] = ()
) -> spec_errors.LanceNamespaceError | None:
    """Return the specification's error for an error of Lance: the namespace's, Lance's own, or the storage's.

    Args:
        error: what Lance raised.
        location: the location that was read or written, for messages.
        secrets: values that must not appear in the message.

    Returns:
        None if the error is of none of these.
    """
    if (raised := namespace_error(error, secrets)) is not None:
        return raised
    if is_conflict(error):
        return spec_errors.ConcurrentModificationError(
            f"{redact(location, secrets)}: conflicts with a concurrent commit; nothing was committed, run it "
            f"again ({redact(str(error), secrets)})"
        )
    if isinstance(error, LancePanicError) or is_panic(error):
        return panic_error(error, redact(location, secrets), secrets)
    if isinstance(error, OSError | ValueError) and (found := _NO_MANIFEST.search(str(error))):
        version = version_of(f"{found[1]}{MANIFEST_SUFFIX}") or 0
        return version_cleaned_up(f"{redact(location, secrets)}: version {version}")
    if (refused := _refusal(error, location, secrets)) is not None:
        return refused
    return storage_error(error, location, secrets) if is_storage_error(error) else None


def is_conflict(error: BaseException) -> bool:
    """Return whether Lance refused a commit since another one was made meanwhile.

    It has an exception class for that, but raises an OSError or a RuntimeError in places, as for much else.
    """
    if type(error).__name__ == "CommitConflictError":
        return True
    return isinstance(error, OSError | RuntimeError) and _CONFLICT.search(str(error)) is not None


def panic_error(
    error: BaseException, attempt: str, secrets: Collection[str] = ()
) -> spec_errors.LanceNamespaceError:
    """Return the error for a panic of Lance.

    Args:
        error: the panic.
        attempt: what was tried, or on what.
        secrets: values that must not appear in the message.
    """
    return spec_errors.InternalError(
        f"{attempt}: Lance's native code failed with a panic, as it would again: "
        f"{redact(_SOURCE_LINE.sub('', str(error)), secrets)}"
    )


def _refusal(
    error: BaseException, location: str, secrets: Collection[str]
) -> spec_errors.LanceNamespaceError | None:
    """Return the error for what Lance refuses each time; None if it isn't known to."""
    text = str(error)
    if not isinstance(error, OSError | ValueError | RuntimeError) or _OF_STORAGE.search(text):
        return None
    refusal = _REFUSAL.match(text)
    if refusal is None or refusal.lastindex is None:
        return None
    code = spec_errors.ErrorCode[list(_REFUSALS.values())[refusal.lastindex - 1]]
    shown = redact(_SOURCE_LINE.sub("", text), secrets)
    return spec_errors.from_error_code(code, f"{redact(location, secrets)}: {shown}")


def version_cleaned_up(version: str) -> spec_errors.LanceNamespaceError:
    """Return the error (11) for a version that was cleaned up when it was needed.

    Args:
        version: the version and its table, as the beginning of the message.
    """
    return spec_errors.TableVersionNotFoundError(
        f"{version} has no manifest or no files any more: it was cleaned up, or the table was dropped. "
        "To keep a version from clean-ups until it is read, tag it (the sensor's argument pin), set a "
        "bookmark, or clean up with a longer older_than"
    )
