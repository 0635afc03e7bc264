"""The service's and the SDK's errors as the specification's, by name.

The SDK makes the service's exceptions at run time, so they go by their code; its own go by their
class's name, which spares loading it for this table.
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

Meanings = Mapping[str, type[LanceNamespaceError]]

NOT_FOUND = "EntityNotFoundException"
ALREADY_EXISTS = "AlreadyExistsException"
OF_NAMESPACE: Meanings = {
    NOT_FOUND: NamespaceNotFoundError,
    ALREADY_EXISTS: NamespaceAlreadyExistsError,
}
OF_TABLE: Meanings = {NOT_FOUND: TableNotFoundError, ALREADY_EXISTS: TableAlreadyExistsError}
OF_NEW_TABLE: Meanings = {**OF_TABLE, NOT_FOUND: NamespaceNotFoundError}


def _each(kind: type[LanceNamespaceError], names: str) -> Meanings:
    return dict.fromkeys(names.split(), kind)


_OF_SERVICE: Meanings = {
    **_each(ConcurrentModificationError, "ConcurrentModificationException"),
    **_each(InvalidInputError, "InvalidInputException ValidationException SerializationException"),
    # A quota of the account, such as tables per database: no waiting helps, so it isn't throttling.
    **_each(InvalidInputError, "ResourceNumberLimitExceededException"),
    **_each(PermissionDeniedError, "AccessDeniedException AccessDenied UnauthorizedOperation"),
    **_each(UnauthenticatedError, "UnrecognizedClientException InvalidClientTokenId InvalidAccessKeyId"),
    **_each(UnauthenticatedError, "ExpiredTokenException ExpiredToken RequestExpired InvalidToken"),
    **_each(UnauthenticatedError, "InvalidSignatureException SignatureDoesNotMatch IncompleteSignature"),
    **_each(UnauthenticatedError, "IncompleteSignatureException MissingAuthenticationToken"),
    **_each(UnauthenticatedError, "MissingAuthenticationTokenException NotAuthorized AuthFailure"),
    **_each(ThrottlingError, "ThrottlingException Throttling ThrottledException RequestThrottled"),
    **_each(ThrottlingError, "RequestThrottledException RequestLimitExceeded TooManyRequestsException"),
    **_each(ThrottlingError, "LimitExceededException SlowDown ProvisionedThroughputExceededException"),
    **_each(ServiceUnavailableError, "InternalServiceException InternalFailure InternalServerError"),
    **_each(ServiceUnavailableError, "OperationTimeoutException RequestTimeout RequestTimeoutException"),
    **_each(ServiceUnavailableError, "ServiceUnavailable ServiceUnavailableException"),
    **_each(ServiceUnavailableError, "ResourceNotReadyException FederationSourceRetryableException"),
}
_OF_STATUS = {401: UnauthenticatedError, 403: PermissionDeniedError, 429: ThrottlingError}
_OF_SDK: Meanings = {
    **_each(ServiceUnavailableError, "ConnectionError HTTPClientError ResponseParserError"),
    **_each(UnauthenticatedError, "NoCredentialsError PartialCredentialsError CredentialRetrievalError"),
    **_each(UnauthenticatedError, "TokenRetrievalError NoAuthTokenError SSOError LoginError"),
    **_each(UnauthenticatedError, "RefreshWithMFAUnsupportedError MetadataRetrievalError"),
    **_each(InvalidInputError, "ParamValidationError ValidationError NoRegionError ProfileNotFound"),
    **_each(InvalidInputError, "ConfigParseError ConfigNotFound InvalidConfigError UnknownCredentialError"),
    **_each(InvalidInputError, "BaseEndpointResolverError EndpointProviderError UnknownRegionError"),
}
_ADVICE: Mapping[type[LanceNamespaceError], str] = {
    PermissionDeniedError: "grant it to these credentials, in IAM and Lake Formation",
    UnauthenticatedError: "check 'access_key_id', 'secret_access_key' and 'session_token', or, where they "
    "aren't given, the SDK's default credential chain",
    ServiceUnavailableError: "check 'endpoint' and 'region', and that the service can be reached from here",
    ThrottlingError: "try again later, or raise 'client.max-attempts'",
}


@contextlib.contextmanager
def glue_errors(meanings: Meanings, attempt: str, where: object) -> Iterator[None]:
    """Raise the specification's error for the service's or the SDK's, saying what was attempted on what.

    Args:
        meanings: what an error's code means for this attempt.
        attempt: in words, as "drop table db$t".
        where: the service, in words.
    """
    try:
        yield
    except sdk_errors() as error:
        response = getattr(error, "response", None)
        if isinstance(response, Mapping) and "Error" in response:
            raise of_service(response, meanings, attempt, where) from error
        names = (kind.__name__ for kind in type(error).__mro__)
        kind = next((_OF_SDK[name] for name in names if name in _OF_SDK), InternalError)
        raise _error(kind, attempt, where, str(error)) from error


def sdk_errors() -> tuple[type[Exception], ...]:
    """All that a call by the SDK raises: the service's errors, its own, and an answer it can't read."""
    from botocore.exceptions import BotoCoreError, ClientError  # loaded by then: a client exists
    from botocore.parsers import ResponseParserError

    return ClientError, BotoCoreError, ResponseParserError


def of_service(
    response: Mapping[str, Any], meanings: Meanings, attempt: str, where: object
) -> LanceNamespaceError:
    """The specification's error for an error that the service answered.

    Args:
        response: holds ``Error`` with ``Code`` and ``Message``, and ``ResponseMetadata``.
        meanings: what a code means for this attempt.
        attempt: in words.
        where: the service, in words.
    """
    code = response["Error"].get("Code", "")
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
    by_status = ServiceUnavailableError if status >= 500 else _OF_STATUS.get(status, InternalError)
    kind = {**_OF_SERVICE, **meanings}.get(code, by_status)
    return _error(kind, attempt, where, f"{code}: {response['Error'].get('Message', '')}")


def is_in_doubt(error: Exception) -> bool:
    """Whether a change may stand on the server although this error came back for it.

    The SDK sends a request again whose reply was lost, so the error may be about its own change:
    a create that finds the entry it has made, an update that finds the version it has advanced.
    """
    from botocore.exceptions import ClientError, HTTPClientError

    if isinstance(error, ClientError):
        answer = error.response.get("ResponseMetadata", {})
        return bool(answer.get("RetryAttempts", 0) > 0 or answer.get("HTTPStatusCode", 400) >= 500)
    return isinstance(error, HTTPClientError)  # connecting failed is another class


def _error(kind: type[LanceNamespaceError], attempt: str, where: object, reason: str) -> LanceNamespaceError:
    advice = f"; {_ADVICE[kind]}" if kind in _ADVICE else ""
    return kind(f"cannot {attempt} ({where}): {reason.strip() or 'no reason given'}{advice}")
