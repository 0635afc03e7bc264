"""Mapping of the service's and the SDK's errors to the specification's, by name.

The SDK creates the service's exceptions at run time, so they are matched by code; its own are matched by
class name, which avoids importing it for this mapping.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from lance_namespace.errors import (
    ConcurrentModificationError,
    InternalError,
    InvalidInputError,
    LanceNamespaceError,
    NamespaceAlreadyExistsError,
    NamespaceNotFoundError,
    PermissionDeniedError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TableNotFoundError,
    ThrottlingError,
    UnauthenticatedError,
)

from airflow_provider_lancens.redaction import redact, shareable_cause

ErrorMap = Mapping[str, type[LanceNamespaceError]]

NOT_FOUND = "EntityNotFoundException"
ALREADY_EXISTS = "AlreadyExistsException"
NAMESPACE_ERRORS: ErrorMap = {
    NOT_FOUND: NamespaceNotFoundError,
    ALREADY_EXISTS: NamespaceAlreadyExistsError,
}
TABLE_ERRORS: ErrorMap = {NOT_FOUND: TableNotFoundError, ALREADY_EXISTS: TableAlreadyExistsError}
NEW_TABLE_ERRORS: ErrorMap = {**TABLE_ERRORS, NOT_FOUND: NamespaceNotFoundError}


def _map(kind: type[LanceNamespaceError], names: str) -> ErrorMap:
    return dict.fromkeys(names.split(), kind)


_SERVICE_ERRORS: ErrorMap = {
    **_map(ConcurrentModificationError, "ConcurrentModificationException"),
    **_map(InvalidInputError, "InvalidInputException ValidationException SerializationException"),
    # A quota of the account, such as tables per database: no waiting helps, so it isn't throttling.
    **_map(InvalidInputError, "ResourceNumberLimitExceededException"),
    **_map(PermissionDeniedError, "AccessDeniedException AccessDenied UnauthorizedOperation"),
    **_map(UnauthenticatedError, "UnrecognizedClientException InvalidClientTokenId InvalidAccessKeyId"),
    **_map(UnauthenticatedError, "ExpiredTokenException ExpiredToken RequestExpired InvalidToken"),
    **_map(UnauthenticatedError, "InvalidSignatureException SignatureDoesNotMatch IncompleteSignature"),
    **_map(UnauthenticatedError, "IncompleteSignatureException MissingAuthenticationToken"),
    **_map(UnauthenticatedError, "MissingAuthenticationTokenException NotAuthorized AuthFailure"),
    **_map(ThrottlingError, "ThrottlingException Throttling ThrottledException RequestThrottled"),
    **_map(ThrottlingError, "RequestThrottledException RequestLimitExceeded TooManyRequestsException"),
    **_map(ThrottlingError, "LimitExceededException SlowDown ProvisionedThroughputExceededException"),
    **_map(ServiceUnavailableError, "InternalServiceException InternalFailure InternalServerError"),
    **_map(ServiceUnavailableError, "OperationTimeoutException RequestTimeout RequestTimeoutException"),
    **_map(ServiceUnavailableError, "ServiceUnavailable ServiceUnavailableException"),
    **_map(ServiceUnavailableError, "ResourceNotReadyException FederationSourceRetryableException"),
}
_STATUS_ERRORS = {401: UnauthenticatedError, 403: PermissionDeniedError, 429: ThrottlingError}
_SDK_ERRORS: ErrorMap = {
    **_map(ServiceUnavailableError, "ConnectionError HTTPClientError ResponseParserError"),
    **_map(UnauthenticatedError, "NoCredentialsError PartialCredentialsError CredentialRetrievalError"),
    **_map(UnauthenticatedError, "TokenRetrievalError NoAuthTokenError SSOError LoginError"),
    **_map(UnauthenticatedError, "RefreshWithMFAUnsupportedError MetadataRetrievalError"),
    **_map(InvalidInputError, "ParamValidationError ValidationError NoRegionError ProfileNotFound"),
    **_map(InvalidInputError, "ConfigParseError ConfigNotFound InvalidConfigError UnknownCredentialError"),
    **_map(InvalidInputError, "BaseEndpointResolverError EndpointProviderError UnknownRegionError"),
}
_ADVICE: Mapping[type[LanceNamespaceError], str] = {
    PermissionDeniedError: "grant it to these credentials, in IAM and Lake Formation; to those without "
    "permissions on all of them, AWS says this of a database or a table that does not exist, too",
    UnauthenticatedError: "check 'access_key_id', 'secret_access_key' and 'session_token', or the SDK's "
    "default credential chain if they are not set",
    ServiceUnavailableError: "check 'endpoint' and 'region', and that the service is reachable from here",
    ThrottlingError: "try again later, or raise 'client.max-attempts'",
}


@contextlib.contextmanager
def glue_errors(error_map: ErrorMap, attempt: str, where: object) -> Iterator[None]:
    """Translate the service's and the SDK's errors to the specification's, naming the attempted call.

    Args:
        error_map: mapping of error codes to errors for this call.
        attempt: description of the call, such as "drop table db$t".
        where: display name of the service.
    """
    try:
        yield
    except sdk_errors() as error:
        response = getattr(error, "response", None)
        if isinstance(response, Mapping) and "Error" in response:
            raise service_error(response, error_map, attempt, where) from shareable_cause(error)
        names = (kind.__name__ for kind in type(error).__mro__)
        kind = next((_SDK_ERRORS[name] for name in names if name in _SDK_ERRORS), InternalError)
        raise _error(kind, attempt, where, str(error)) from shareable_cause(error)


def sdk_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions of SDK calls: of the service, of the SDK itself, and for invalid responses."""
    from botocore.exceptions import BotoCoreError, ClientError  # already loaded, since a client exists
    from botocore.parsers import ResponseParserError

    return ClientError, BotoCoreError, ResponseParserError


def service_error(
    response: Mapping[str, Any], error_map: ErrorMap, attempt: str, where: object
) -> LanceNamespaceError:
    """Return the specification's error for an error response of the service.

    Args:
        response: has ``Error`` with ``Code`` and ``Message``, and ``ResponseMetadata``.
        error_map: mapping of error codes to errors for this call.
        attempt: description of the call.
        where: display name of the service.
    """
    code = response["Error"].get("Code", "")
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
    by_status = ServiceUnavailableError if status >= 500 else _STATUS_ERRORS.get(status, InternalError)
    kind = {**_SERVICE_ERRORS, **error_map}.get(code, by_status)
    return _error(kind, attempt, where, f"{code}: {response['Error'].get('Message', '')}")


def is_ambiguous(error: Exception) -> bool:
    """Whether a change may have taken effect on the server despite this error.

    The SDK retries a request whose reply was lost, so the error may be caused by its own change:
    a create that finds the table it has created, an update that finds the version it has advanced.
    """
    from botocore.exceptions import ClientError, HTTPClientError

    if isinstance(error, ClientError):
        answer = error.response.get("ResponseMetadata", {})
        return bool(answer.get("RetryAttempts", 0) > 0 or answer.get("HTTPStatusCode", 400) >= 500)
    return isinstance(error, HTTPClientError)  # a failure to connect isn't ambiguous


def _error(kind: type[LanceNamespaceError], attempt: str, where: object, reason: str) -> LanceNamespaceError:
    advice = f"; {_ADVICE[kind]}" if kind in _ADVICE else ""
    message = redact(reason.strip()) or "no reason given"
    return kind(f"cannot {attempt} ({where}): {message}{advice}")
