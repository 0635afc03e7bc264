"""The specification's errors for those of Lance's core, which converts a namespace's errors to text.

If a namespace raises an error while Lance's core opens a dataset or commits through it, the core raises a
ValueError such as ``Namespace error: Service unavailable: <message>, src/namespace.rs:1569:18``.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.storage.storage_errors import is_storage_error, storage_error
from airflow_provider_lancens.redaction import redact

LANCE_ERRORS = (OSError, RuntimeError, ValueError)
"""What Lance raises for any failure of a commit."""
_NAMESPACE_ERROR = re.compile(
    r"Namespace error: (\w[\w ]*?)(?: error)?: (.*?)(?:, \S+\.rs:\d+:\d+)?", re.DOTALL
)


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
    """Return the specification's error for an error of Lance: the namespace's, or else the storage's.

    Args:
        error: what Lance raised.
        location: the location that was read or written, for messages.
        secrets: values that must not appear in the message.

    Returns:
        None if the error is neither the namespace's nor the storage's.
    """
    raised = namespace_error(error, secrets)
    if raised is None and is_storage_error(error):
        return storage_error(error, location, secrets)
    return raised
