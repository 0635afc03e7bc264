"""The specification's errors, loaded when the first one is needed.

The package of `lance_namespace.errors` also loads the models of all requests, which takes longer than
everything else that a Python process of Spark's executors loads; and few of these processes need an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lance_namespace.errors import (
        ConcurrentModificationError,
        ErrorCode,
        InternalError,
        InvalidInputError,
        InvalidTableStateError,
        LanceNamespaceError,
        NamespaceAlreadyExistsError,
        NamespaceNotEmptyError,
        NamespaceNotFoundError,
        PermissionDeniedError,
        ServiceUnavailableError,
        TableAlreadyExistsError,
        TableBranchAlreadyExistsError,
        TableBranchNotFoundError,
        TableColumnNotFoundError,
        TableIndexAlreadyExistsError,
        TableIndexNotFoundError,
        TableNotFoundError,
        TableSchemaValidationError,
        TableTagAlreadyExistsError,
        TableTagNotFoundError,
        TableVersionNotFoundError,
        ThrottlingError,
        TransactionNotFoundError,
        UnauthenticatedError,
        UnsupportedOperationError,
        from_error_code,
    )

__all__ = [
    "ConcurrentModificationError",
    "ErrorCode",
    "InternalError",
    "InvalidInputError",
    "InvalidTableStateError",
    "LanceNamespaceError",
    "NamespaceAlreadyExistsError",
    "NamespaceNotEmptyError",
    "NamespaceNotFoundError",
    "PermissionDeniedError",
    "ServiceUnavailableError",
    "TableAlreadyExistsError",
    "TableBranchAlreadyExistsError",
    "TableBranchNotFoundError",
    "TableColumnNotFoundError",
    "TableIndexAlreadyExistsError",
    "TableIndexNotFoundError",
    "TableNotFoundError",
    "TableSchemaValidationError",
    "TableTagAlreadyExistsError",
    "TableTagNotFoundError",
    "TableVersionNotFoundError",
    "ThrottlingError",
    "TransactionNotFoundError",
    "UnauthenticatedError",
    "UnsupportedOperationError",
    "from_error_code",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lance_namespace import errors

    globals()[name] = value = getattr(errors, name)
    return value
