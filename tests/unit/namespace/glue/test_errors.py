"""Conversion of the service's and the SDK's errors to the specification's codes."""

import botocore.exceptions
import pytest
from botocore.parsers import ResponseParserError
from lance_namespace.errors import ErrorCode, LanceNamespaceError

from airflow_provider_lancens.namespace.glue.errors import NEW_TABLE_ERRORS, TABLE_ERRORS, glue_errors

CODES = {
    "AccessDeniedException": ErrorCode.PERMISSION_DENIED,
    "UnrecognizedClientException": ErrorCode.UNAUTHENTICATED,
    "ExpiredTokenException": ErrorCode.UNAUTHENTICATED,
    "InvalidSignatureException": ErrorCode.UNAUTHENTICATED,
    "ThrottlingException": ErrorCode.THROTTLING,
    "RequestLimitExceeded": ErrorCode.THROTTLING,
    "InternalServiceException": ErrorCode.SERVICE_UNAVAILABLE,
    "OperationTimeoutException": ErrorCode.SERVICE_UNAVAILABLE,
    "InvalidInputException": ErrorCode.INVALID_INPUT,
    "ResourceNumberLimitExceededException": ErrorCode.INVALID_INPUT,
    "ConcurrentModificationException": ErrorCode.CONCURRENT_MODIFICATION,
    "EntityNotFoundException": ErrorCode.TABLE_NOT_FOUND,
    "AlreadyExistsException": ErrorCode.TABLE_ALREADY_EXISTS,
    "GlueEncryptionException": ErrorCode.INTERNAL,
}


def translated(error: Exception, error_map: object = TABLE_ERRORS) -> LanceNamespaceError:
    with pytest.raises(LanceNamespaceError) as caught, glue_errors(error_map, "drop table d$t", "Glue"):  # type: ignore[arg-type]
        raise error
    assert str(caught.value).startswith("cannot drop table d$t (Glue): ")
    assert caught.value.__cause__ is error
    return caught.value


def refused(code: str, status: int = 400) -> botocore.exceptions.ClientError:
    response = {"Error": {"Code": code, "Message": "why"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return botocore.exceptions.ClientError(response, "DeleteTable")


@pytest.mark.parametrize("code", CODES)
def test_an_error_is_converted_by_its_code(code: str) -> None:
    error = translated(refused(code))
    assert error.code == CODES[code]
    assert f"{code}: why" in str(error)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (500, ErrorCode.SERVICE_UNAVAILABLE),
        (503, ErrorCode.SERVICE_UNAVAILABLE),
        (401, ErrorCode.UNAUTHENTICATED),
        (403, ErrorCode.PERMISSION_DENIED),
        (429, ErrorCode.THROTTLING),
        (400, ErrorCode.INTERNAL),
    ],
)
def test_an_error_with_an_unknown_code_is_converted_by_its_status(status: int, code: ErrorCode) -> None:
    assert translated(refused("NeverHeardOf", status)).code == code


def test_not_found_on_create_means_a_missing_database() -> None:
    error = translated(refused("EntityNotFoundException"), NEW_TABLE_ERRORS)
    assert error.code == ErrorCode.NAMESPACE_NOT_FOUND


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (botocore.exceptions.NoCredentialsError(), ErrorCode.UNAUTHENTICATED),
        (
            botocore.exceptions.PartialCredentialsError(provider="env", cred_var="x"),
            ErrorCode.UNAUTHENTICATED,
        ),
        (botocore.exceptions.UnauthorizedSSOTokenError(), ErrorCode.UNAUTHENTICATED),
        (botocore.exceptions.NoRegionError(), ErrorCode.INVALID_INPUT),
        (botocore.exceptions.ProfileNotFound(profile="p"), ErrorCode.INVALID_INPUT),
        (botocore.exceptions.ParamValidationError(report="r"), ErrorCode.INVALID_INPUT),
        (botocore.exceptions.EndpointConnectionError(endpoint_url="u"), ErrorCode.SERVICE_UNAVAILABLE),
        (botocore.exceptions.ConnectTimeoutError(endpoint_url="u"), ErrorCode.SERVICE_UNAVAILABLE),
        (botocore.exceptions.ReadTimeoutError(endpoint_url="u"), ErrorCode.SERVICE_UNAVAILABLE),
        (botocore.exceptions.SSLError(endpoint_url="u", error="e"), ErrorCode.SERVICE_UNAVAILABLE),
        (ResponseParserError("no JSON"), ErrorCode.SERVICE_UNAVAILABLE),
        (botocore.exceptions.PaginationError(message="the same token twice"), ErrorCode.INTERNAL),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_an_sdk_error_is_converted_by_its_class(error: Exception, code: ErrorCode) -> None:
    assert translated(error).code == code
