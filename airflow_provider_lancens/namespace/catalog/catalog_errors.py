"""Converts errors that a catalog's implementation raises to the specification's.

pylance's own implementations raise these errors already, except that their REST client knows only responses
with a body of the specification: a proxy's ``401 Unauthorized`` becomes an internal error.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.lance_errors import specified_error
from airflow_provider_lancens.redaction import redact, shareable_cause

CAPABILITIES = "docs/connections.md, section What each kind of catalog can do"

_ALTERNATIVES = {
    "create_namespace": "name tables without a database",
    "drop_namespace": "drop or deregister its tables",
    "list_namespaces": "name tables without a database",
    "declare_table": "create the table by the catalog's own tools",
    "register_table": "declare the table, and write its rows there",
    "deregister_table": "drop the table, which deletes its data",
    "rename_table": "declare a table of the new name, and copy the rows",
}
"""What to do instead of an operation that a catalog hasn't."""
_STATUS = re.compile(
    r"Failed to parse error response: status=(\d+)([^,]*), body=(.*?)(?:, error=Error\(.*)?$", re.DOTALL
)
_CODES_BY_TEXT = {
    r"Table\b.* already exists": "TABLE_ALREADY_EXISTS",
    r"Table\b.* (?:does not exist|not found)": "TABLE_NOT_FOUND",
    r"(?:Namespace|Database|Schema|Catalog)\b.* already exists": "NAMESPACE_ALREADY_EXISTS",
    r"(?:Namespace|Database|Schema|Catalog)\b.* (?:does not exist|not found)": "NAMESPACE_NOT_FOUND",
    r"(?:Namespace|Database|Schema|Catalog)\b.* (?:is )?not empty": "NAMESPACE_NOT_EMPTY",
    r"Cannot drop non-empty (?:namespace|database|schema|catalog)\b": "NAMESPACE_NOT_EMPTY",
}
"""Texts of classes that raise a ValueError or a RuntimeError for everything, such as the classes of
lance-namespace-impls."""
_CODES_BY_NAME = {
    r"Connect|Timeout|Transport|Unavailable|MaxRetry": "SERVICE_UNAVAILABLE",
    r"AccessDenied": "PERMISSION_DENIED",
    r"Throttl|TooManyRequests": "THROTTLING",
    r"UnrecognizedClient|ExpiredToken|InvalidSignature|NoCredentials": "UNAUTHENTICATED",
}
"""Names of errors of clients, such as Thrift's TTransportException, and of AWS's services."""
_AWS_ERROR = re.compile(r"An error occurred \((\w+)\) when calling")
_REQUEST_ERROR = re.compile(r"reqwest::Error \{.*", re.DOTALL)
_QUOTED = re.compile(r'"([^"]+)"')
_NOT_SUPPORTED = re.compile(r"Internal error: Not supported: ")
"""How pylance's REST service says that its own catalog lacks an operation."""
_NO_ANSWER_OF_A_CATALOG = "Failed to parse response"
_OS_ERROR = re.compile(r"IO \{ source: Os \{ code: (\d+), kind: \w+, message: \"([^\"]*)\" \}.*", re.DOTALL)
"""How pylance prints an error of the operating system where it hides it in an internal error."""
_SOURCE_LINE = re.compile(r",? ?(?:/\S*|src/\S*)\.rs:\d+:\d+")
_LONGEST = 500
_BODY = 200
_CODES = {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 429: "THROTTLING"}
_NO_SUCH_REQUEST = frozenset({404, 405, 501})
"""A catalog that hasn't found a table says so in a body of the specification."""
_PASSING = frozenset({408, 500, 502, 503, 504})


def unsupported(
    operation: str, impl: str, instead: str | None = None, detail: str = ""
) -> spec_errors.UnsupportedOperationError:
    """Return the error (0) for an operation that a catalog hasn't.

    Args:
        operation: what was asked for: the name of an operation, or a description.
        impl: the catalog's implementation.
        instead: what to do; by default the alternative of the operation, if it has one.
        detail: what the catalog said.
    """
    advice = instead or _ALTERNATIVES.get(operation) or "use a connection to Hive Metastore or AWS Glue"
    said = f" ({detail})" if detail else ""
    return spec_errors.UnsupportedOperationError(
        f"{operation} is not supported by this catalog, impl={impl}{said}; instead: {advice}; see "
        f"{CAPABILITIES}"
    )


def catalog_error(
    error: BaseException, operation: str, impl: str, secrets: Collection[str] = (), address: str = ""
) -> spec_errors.LanceNamespaceError:
    """Return the specification's error for an error that an implementation raised.

    Args:
        error: what it raised.
        operation: the operation that was called.
        impl: the catalog's implementation, for messages.
        secrets: values that the message must not contain.
        address: its root or URI, for messages.
    """
    if _OS_ERROR.search(str(error)):
        error = OSError(_OS_ERROR.sub(r"\2 (os error \1)", str(error)))
    said = _shown(str(error), secrets)
    missing = isinstance(error, spec_errors.UnsupportedOperationError | NotImplementedError)
    if missing or _NOT_SUPPORTED.match(str(error)):
        return unsupported(operation, impl, detail=said)
    if isinstance(error, spec_errors.LanceNamespaceError):
        answered = _STATUS.search(str(error))
        if answered is not None:
            return _of_status(int(answered[1]), answered[2], answered[3], operation, impl, secrets)
        if _NO_ANSWER_OF_A_CATALOG in str(error):
            said = f"{said}; is this the address of a REST catalog?"
        return spec_errors.from_error_code(int(error.code), said)
    if (code := _code_of_a_class(error)) is not None:
        return spec_errors.from_error_code(int(spec_errors.ErrorCode[code]), said)
    specified = specified_error(error, address or impl, secrets)
    if specified is not None:
        return spec_errors.from_error_code(int(specified.code), _shown(str(specified), secrets))
    return spec_errors.InternalError(f"{operation} of catalog {impl}: {type(error).__name__}: {said}")


def _code_of_a_class(error: BaseException) -> str | None:
    if isinstance(error, ValueError | LookupError | RuntimeError):
        for text, code in _CODES_BY_TEXT.items():
            if re.match(text, str(error), re.DOTALL):
                return code
    names = " ".join(_names(error))
    return next((code for name, code in _CODES_BY_NAME.items() if re.search(name, names)), None)


def _names(error: BaseException | None) -> Iterator[str]:
    """Yield the names of an error and of the errors that caused it, which a class may have wrapped."""
    while error is not None:
        yield type(error).__name__
        yield from _AWS_ERROR.findall(str(error))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def cause_of(error: BaseException, secrets: Collection[str]) -> BaseException | None:
    """Return the cause to chain to a converted error: None if it repeats the error or contains a secret."""
    if isinstance(error, spec_errors.LanceNamespaceError):
        return None
    return shareable_cause(error, secrets)


def _of_status(
    status: int, reason: str, body: str, operation: str, impl: str, secrets: Collection[str]
) -> spec_errors.LanceNamespaceError:
    shown = " ".join(redact(body[:_BODY], secrets).split())
    said = f"the service answered {status}{reason}{f': {shown}' if shown else ''}"
    if status in _NO_SUCH_REQUEST:
        return unsupported(operation, impl, detail=f"{said}, as it does where it isn't a REST catalog at all")
    if status in _PASSING:
        return spec_errors.ServiceUnavailableError(said)
    if status in _CODES:
        return spec_errors.from_error_code(int(spec_errors.ErrorCode[_CODES[status]]), said)
    return spec_errors.InternalError(f"{said}; is this the address of a REST catalog?")


def _shown(text: str, secrets: Collection[str]) -> str:
    # The HTTP library prints its internal structures; only the quoted texts in them help users.
    found = _REQUEST_ERROR.search(text)
    if found is not None and (parts := _QUOTED.findall(found[0])):
        text = f"{text[: found.start()]}{', '.join(parts)}"
    shown = _SOURCE_LINE.sub("", redact(text, secrets))
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
