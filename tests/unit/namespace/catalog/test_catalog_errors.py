"""Errors of a catalog's implementation have the specification's codes, and no secret."""

import pytest
from lance_namespace.errors import ErrorCode, InternalError, InvalidInputError, ServiceUnavailableError

from airflow_provider_lancens.namespace.catalog.catalog_errors import catalog_error

SECRET = "hush-hush"


def answered(status: str, body: str) -> InternalError:
    """pylance's error for a response without an error of the specification."""
    return InternalError(
        f"Internal error: Failed to parse error response: status={status}, body={body}, "
        'error=Error("expected value", line: 1, column: 1)'
    )


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("401 Unauthorized", ErrorCode.UNAUTHENTICATED),
        ("403 Forbidden", ErrorCode.PERMISSION_DENIED),
        ("404 Not Found", ErrorCode.UNSUPPORTED),
        ("405 Method Not Allowed", ErrorCode.UNSUPPORTED),
        ("418 I'm a teapot", ErrorCode.INTERNAL),
        ("429 Too Many Requests", ErrorCode.THROTTLING),
        ("500 Internal Server Error", ErrorCode.SERVICE_UNAVAILABLE),
        ("501 Not Implemented", ErrorCode.UNSUPPORTED),
        ("502 Bad Gateway", ErrorCode.SERVICE_UNAVAILABLE),
        ("503 Service Unavailable", ErrorCode.SERVICE_UNAVAILABLE),
        ("504 Gateway Timeout", ErrorCode.SERVICE_UNAVAILABLE),
    ],
)
def test_a_proxys_answer_has_the_code_of_its_status(status: str, code: ErrorCode) -> None:
    error = catalog_error(answered(status, f"<p>{SECRET}</p>"), "describe_table", "rest", [SECRET])

    assert error.code == code
    assert f"the service answered {status}: <p>***</p>" in str(error)


def test_a_long_answer_is_cut() -> None:
    error = catalog_error(answered("500 Oops", "x" * 100_000), "describe_table", "rest")
    assert len(str(error)) < 300


def test_an_error_of_the_specification_keeps_its_code() -> None:
    error = catalog_error(InvalidInputError(f"no {SECRET} here"), "describe_table", "rest", [SECRET])
    assert (error.code, str(error)) == (ErrorCode.INVALID_INPUT, "no *** here")


def test_the_http_librarys_notation_is_left_out() -> None:
    said = (
        "Service unavailable: Failed to execute request: reqwest::Error { kind: Request, "
        'url: "http://h:1/v1/table", source: Connect, ConnectError("tcp connect error", h:1, '
        'Os { code: 111, kind: ConnectionRefused, message: "Connection refused" }) }'
    )
    error = catalog_error(ServiceUnavailableError(said), "describe_table", "rest")
    assert str(error) == (
        "Service unavailable: Failed to execute request: http://h:1/v1/table, tcp connect error, "
        "Connection refused"
    )


@pytest.mark.parametrize(
    ("number", "message", "code"),
    [
        (13, "Permission denied", ErrorCode.PERMISSION_DENIED),
        (2, "No such file", ErrorCode.SERVICE_UNAVAILABLE),
    ],
)
def test_an_error_of_the_operating_system_is_found_in_an_internal_one(
    number: int, message: str, code: ErrorCode
) -> None:
    said = (
        "Internal error: Failed to create manifest dataset: IO { source: Os "
        f'{{ code: {number}, kind: Any, message: "{message}" }}, location: Location {{ file: "a.rs" }} }}'
    )
    error = catalog_error(InternalError(said), "declare_table", "dir", address="/lake")

    assert error.code == code
    assert message in str(error)
    assert "/lake" in str(error)
    assert "Location" not in str(error)


def test_an_operation_that_a_catalog_has_not_says_what_to_do() -> None:
    error = catalog_error(NotImplementedError("nope"), "rename_table", "made.up.Catalog")
    of_a_service = InternalError("Internal error: Not supported: rename_table not implemented, src/a.rs:1:2")

    assert error.code == ErrorCode.UNSUPPORTED
    assert catalog_error(of_a_service, "rename_table", "rest").code == ErrorCode.UNSUPPORTED
    assert str(error).startswith(
        "rename_table is not supported by this catalog, impl=made.up.Catalog (nope); "
    )
    assert "declare a table of the new name" in str(error)


def wrapped(cause: Exception) -> Exception:
    """An error as the class for Glue raises it in place of another one."""
    error = RuntimeError(f"Failed to list tables: {cause}")
    error.__context__ = cause
    return error


def refused(code: str) -> Exception:
    """An error of botocore."""
    return type("ClientError", (Exception,), {})(
        f"An error occurred ({code}) when calling the GetTables operation: no"
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("Table ['db', 't'] does not exist"), ErrorCode.TABLE_NOT_FOUND),
        (ValueError("Table ['db', 't'] already exists"), ErrorCode.TABLE_ALREADY_EXISTS),
        (ValueError("Namespace ['db'] does not exist"), ErrorCode.NAMESPACE_NOT_FOUND),
        (ValueError("Namespace ['db'] already exists"), ErrorCode.NAMESPACE_ALREADY_EXISTS),
        (ValueError("Namespace ['db'] is not empty"), ErrorCode.NAMESPACE_NOT_EMPTY),
        (RuntimeError("Table does not exist: db.t"), ErrorCode.TABLE_NOT_FOUND),
        (RuntimeError("Table already exists: db.t"), ErrorCode.TABLE_ALREADY_EXISTS),
        (RuntimeError("Namespace does not exist: db"), ErrorCode.NAMESPACE_NOT_FOUND),
        (RuntimeError("Cannot drop non-empty namespace: db"), ErrorCode.NAMESPACE_NOT_EMPTY),
        (wrapped(type("EndpointConnectionError", (Exception,), {})("no")), ErrorCode.SERVICE_UNAVAILABLE),
        (wrapped(refused("AccessDeniedException")), ErrorCode.PERMISSION_DENIED),
        (wrapped(refused("ThrottlingException")), ErrorCode.THROTTLING),
        (wrapped(refused("UnrecognizedClientException")), ErrorCode.UNAUTHENTICATED),
        (ConnectionRefusedError("no"), ErrorCode.SERVICE_UNAVAILABLE),
        (type("TTransportException", (Exception,), {})("no"), ErrorCode.SERVICE_UNAVAILABLE),
    ],
)
def test_an_error_of_a_class_has_the_code_of_what_it_says(error: Exception, code: ErrorCode) -> None:
    assert catalog_error(error, "describe_table", "made.up.Catalog").code == code


def test_any_other_error_is_internal() -> None:
    error = catalog_error(RuntimeError(f"failed with {SECRET}"), "list_tables", "made.up.Catalog", [SECRET])
    assert (error.code, str(error)) == (
        ErrorCode.INTERNAL,
        "list_tables of catalog made.up.Catalog: RuntimeError: failed with ***",
    )
