"""Errors when Glue refuses, is slow, or is unreachable: the right code, soon, with a helpful message."""

import socket
import time
from collections.abc import Callable, Iterator

import pytest
from lance_namespace.errors import ErrorCode, LanceNamespaceError

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace import GlueNamespace
from airflow_provider_lancens.namespace.table_status import TableStatus
from tests.conformance.codes import refused_with
from tests.servers.glue_double import GlueDouble
from tests.servers.glue_faults import BROKEN, DENIED, EXPIRED, FULL, THROTTLED, UNKNOWN_KEY, Refusal

ATTEMPTS = 4


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize(
    ("refusal", "times", "code", "message"),
    [
        (DENIED, 1, ErrorCode.PERMISSION_DENIED, "Lake Formation"),
        (EXPIRED, 1, ErrorCode.UNAUTHENTICATED, "session_token"),
        (UNKNOWN_KEY, 1, ErrorCode.UNAUTHENTICATED, "access_key_id"),
        (BROKEN, ATTEMPTS, ErrorCode.SERVICE_UNAVAILABLE, "endpoint"),
        (FULL, 1, ErrorCode.INVALID_INPUT, "limit"),
        (Refusal("GlueEncryptionException"), 1, ErrorCode.INTERNAL, "GlueEncryptionException"),
    ],
    ids=lambda value: value.code if isinstance(value, Refusal) else "",
)
def test_a_refusal_is_reported_with_its_code_and_what_to_do(
    glue: GlueDouble, namespace: GlueNamespace, refusal: Refusal, times: int, code: ErrorCode, message: str
) -> None:
    with (
        glue.faults.on("GetTable", *[refusal] * times),
        refused_with(code, "read table d$t", glue.endpoint, message),
    ):
        namespace.describe_table({"id": ["d", "t"]})


def test_occasional_throttling_is_retried(glue: GlueDouble, namespace: GlueNamespace) -> None:
    with glue.faults.on("GetDatabases", THROTTLED, THROTTLED):
        namespace.list_namespaces({"id": []})


def test_persistent_throttling_is_reported(
    glue: GlueDouble, connect_glue: Callable[..., GlueNamespace]
) -> None:
    with (
        connect_glue(**{"client.max-attempts": "2"}) as impatient,
        glue.faults.on("GetDatabases", THROTTLED, THROTTLED),
        refused_with(ErrorCode.THROTTLING, "client.max-attempts"),
    ):
        impatient.list_namespaces({"id": []})


def test_no_error_shows_a_secret(glue: GlueDouble, namespace: GlueNamespace) -> None:
    for refusal in (DENIED, EXPIRED, UNKNOWN_KEY):
        with glue.faults.on("GetTable", refusal), pytest.raises(LanceNamespaceError) as caught:
            namespace.describe_table({"id": ["d", "t"]})
        assert glue.properties["secret_access_key"] not in str(caught.value)
        assert glue.properties["access_key_id"] not in str(caught.value)


def test_an_unreachable_endpoint_is_reported_within_ten_seconds(
    connect_glue: Callable[..., GlueNamespace], closed_port: int
) -> None:
    endpoint, started = f"http://127.0.0.1:{closed_port}", time.monotonic()
    with connect_glue(endpoint=endpoint) as lost, refused_with(ErrorCode.SERVICE_UNAVAILABLE, endpoint):
        lost.list_namespaces({"id": []})
    assert time.monotonic() - started < 10


def test_an_unresponsive_endpoint_times_out(
    connect_glue: Callable[..., GlueNamespace], silent_port: int
) -> None:
    impatience = {"client.read-timeout": "0.2", "client.max-attempts": "2"}
    with (
        connect_glue(endpoint=f"http://127.0.0.1:{silent_port}", **impatience) as silent,
        refused_with(ErrorCode.SERVICE_UNAVAILABLE, "list namespaces"),
    ):
        silent.list_namespaces({"id": []})


def test_an_endpoint_that_is_not_glue_is_reported(
    glue: GlueDouble, connect_glue: Callable[..., GlueNamespace]
) -> None:
    path_of_s3 = f"{glue.endpoint}/a-bucket"
    with connect_glue(endpoint=path_of_s3) as other, pytest.raises(LanceNamespaceError) as caught:
        other.list_namespaces({"id": []})
    assert path_of_s3 in str(caught.value)


def test_a_poll_of_a_table_that_is_denied_waits_if_its_database_may_be_read(
    glue: GlueDouble, namespace: GlueNamespace
) -> None:
    namespace.create_namespace({"id": ["lakeformation"]})
    table = TableId.parse("lakeformation$t")

    with glue.faults.on("GetTable", DENIED):
        found = namespace.poll_tables([table])[table]
    with glue.faults.on("GetTable", DENIED), glue.faults.on("GetDatabase", DENIED):
        denied = namespace.poll_tables([table])[table]

    assert isinstance(found, TableStatus)
    assert found.location is None
    assert "Lake Formation" in found.denial
    assert isinstance(denied, LanceNamespaceError)
    assert denied.code == ErrorCode.PERMISSION_DENIED
