"""Convert errors of Lance, the file system and executors to the specification's errors, without secrets.

Lance raises an OSError or a ValueError for any failure of its storage, and quotes the request. Spark passes
an executor's exception to the driver as text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.lance_errors import is_panic, specified_error
from airflow_provider_lancens.namespace.storage.missing_files import lost_file_error
from airflow_provider_lancens.redaction import redact, secret_values, shareable_cause

_ON_EXECUTOR = re.compile(r"^lance_namespace\.errors\.(\w+): (.+)$", re.MULTILINE)
"""The last line of an executor's traceback."""
_ON_AN_EXECUTOR = "on an executor: "


@contextmanager
def storage_failures(location: str, storage_options: Mapping[str, str]) -> Iterator[None]:
    """Convert the errors of a block to the specification's errors; on drivers and executors.

    Args:
        location: the dataset's location, for messages.
        storage_options: Lance's storage options for it; their values are redacted.

    Raises:
        PermissionDeniedError: (15), UnauthenticatedError: (16), ServiceUnavailableError: (17): from the
            storage, see `storage_error`.
        ConcurrentModificationError: (14) Lance refused a commit that conflicts with another one, or a
            clean-up removed a file meanwhile.
        InvalidInputError: (13), InternalError: (18), InvalidTableStateError: (19),
            TableSchemaValidationError: (20): Lance refused a value, data or columns, or panicked, or a file
            of the table is lost.
        LanceNamespaceError: an executor raised it, or the namespace through which Lance opened the dataset.
        RuntimeError: any other error whose text has a secret, redacted. Others are raised unchanged.
    """
    try:
        yield
    except BaseException as error:  # errors of any type may quote an option in their text
        if not (isinstance(error, Exception) or is_panic(error)):
            raise
        secrets = secret_values(storage_options)
        failure = _failure(error, location, storage_options, secrets)
        if failure is error:
            raise
        raise failure from shareable_cause(error, secrets)


def _failure(
    error: BaseException, location: str, storage_options: Mapping[str, str], secrets: Collection[str]
) -> BaseException:
    clean = shareable_cause(error, secrets) is error
    if isinstance(error, spec_errors.LanceNamespaceError):
        return error if clean else type(error)(redact(str(error), secrets))
    if (reported := _executor_error(error, secrets)) is not None:
        return reported
    if (lost := lost_file_error(error, location, storage_options)) is not None:
        return lost
    if (specified := specified_error(error, location, secrets)) is not None:
        return specified
    return error if clean else RuntimeError(f"{type(error).__name__}: {redact(str(error), secrets)}")


def _executor_error(error: BaseException, secrets: Collection[str]) -> spec_errors.LanceNamespaceError | None:
    lines = _ON_EXECUTOR.findall(str(error))
    if not lines:
        return None
    name, message = lines[-1]
    kind = getattr(spec_errors, name) if name in spec_errors.__all__ else spec_errors.LanceNamespaceError
    # Lance passes an error of the rows that it reads as text too.
    text = message.strip().removeprefix(_ON_AN_EXECUTOR)
    made: spec_errors.LanceNamespaceError = kind(_ON_AN_EXECUTOR + redact(text, secrets))
    return made
