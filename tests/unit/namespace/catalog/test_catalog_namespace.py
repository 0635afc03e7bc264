"""A namespace over a class that a test defines: deadlines, unsupported operations, locations, pickling."""

import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from lance_namespace import (
    DescribeTableRequest,
    DescribeTableResponse,
    LanceNamespace,
    ListNamespacesRequest,
    ListNamespacesResponse,
)
from lance_namespace.errors import (
    InternalError,
    InvalidInputError,
    LanceNamespaceError,
    PermissionDeniedError,
    ServiceUnavailableError,
    TableNotFoundError,
    UnauthenticatedError,
    UnsupportedOperationError,
)

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace import CatalogNamespace
from airflow_provider_lancens.namespace.catalog import catalog_calls
from airflow_provider_lancens.namespace.table_status import TableStatus

SECRET = "hush-hush"


class Scripted(LanceNamespace):
    """Does what a test says when a table is described."""

    answers: ClassVar[Callable[[list[str]], DescribeTableResponse]]
    asked: ClassVar[list[str]] = []

    def __init__(self, **properties: str) -> None:
        if "refused" in properties:
            raise ValueError(f"no property may be {properties['refused']}")

    def namespace_id(self) -> str:
        return "scripted"

    def describe_table(self, request: DescribeTableRequest) -> DescribeTableResponse:
        self.asked.append("$".join(request.id or []))
        return type(self).answers(request.id or [])

    def list_namespaces(self, request: ListNamespacesRequest) -> ListNamespacesResponse:
        raise RuntimeError(f"{request.id} {SECRET}")


@pytest.fixture(autouse=True)
def _answers(tmp_path: Path) -> None:
    Scripted.answers = lambda _id: DescribeTableResponse(location=str(tmp_path / "t"))
    Scripted.asked.clear()


def opened(**properties: str) -> CatalogNamespace:
    return CatalogNamespace(impl=f"{__name__}.Scripted", **properties)


def failing(error: Exception) -> Callable[[list[str]], DescribeTableResponse]:
    def answer(_id: list[str]) -> DescribeTableResponse:
        raise error

    return answer


def test_a_table_is_described_with_the_options_of_the_connection_and_those_that_are_vended() -> None:
    Scripted.answers = lambda _id: DescribeTableResponse(
        location="s3a://bucket/t/", storage_options={"session_token": SECRET}
    )
    namespace = opened(**{"storage.region": "eu-west-1"})

    described = namespace.describe_table({"id": ["t"], "vend_credentials": True})

    assert described.location == "s3://bucket/t"
    assert described.storage_options == {"region": "eu-west-1", "session_token": SECRET}
    assert SECRET not in f"{described!r} {described}"


def test_credentials_of_the_catalog_are_not_mixed_with_those_of_the_connection() -> None:
    vended = {"aws_access_key_id": "theirs", "aws_secret_access_key": SECRET}
    Scripted.answers = lambda _id: DescribeTableResponse(location="s3://bucket/t", storage_options=vended)
    own = {"storage.region": "eu-west-1", "storage.access_key_id": "mine", "storage.session_token": "mine"}

    described = opened(**own).describe_table({"id": ["t"], "vend_credentials": True})

    assert described.storage_options == {"region": "eu-west-1", **vended}


def test_a_request_has_a_deadline() -> None:
    held = threading.Event()
    Scripted.answers = lambda _id: DescribeTableResponse(location=str(held.wait(60)))
    try:
        with pytest.raises(ServiceUnavailableError, match=r"didn't answer within 0\.05 s"):
            opened(**{"client.timeout": "0.05"}).describe_table({"id": ["t"]})
    finally:
        held.set()


def test_requests_are_refused_while_too_many_are_unanswered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_calls, "_MOST_UNANSWERED", 1)
    held, left = threading.Event(), threading.Event()

    def answer(_id: list[str]) -> DescribeTableResponse:
        held.wait(60)
        left.set()
        return DescribeTableResponse(location="/t")

    Scripted.answers = answer
    namespace = opened(**{"client.timeout": "0.05"})
    with pytest.raises(ServiceUnavailableError, match="didn't answer within"):
        namespace.describe_table({"id": ["t"]})
    with pytest.raises(ServiceUnavailableError, match="hasn't answered 1 earlier requests"):
        namespace.describe_table({"id": ["t"]})
    held.set()
    assert left.wait(60)
    while namespace._calls._unanswered:  # the thread's last step
        pass
    assert namespace.describe_table({"id": ["t"]}).location == "/t"


def test_properties_that_the_class_refuses_are_named_without_secrets() -> None:
    with pytest.raises(InvalidInputError, match=r"refused its properties \(refused\).*\*\*\*") as refused:
        opened(**{"secret.refused": SECRET}).describe_table({"id": ["t"]})
    assert SECRET not in str(refused.value)
    assert refused.value.__cause__ is None


def test_an_error_of_the_class_shows_no_secret() -> None:
    with pytest.raises(InternalError, match=r"RuntimeError: \[\] \*\*\*") as failed:
        opened(**{"secret.password": SECRET}).list_namespaces({"id": []})
    assert failed.value.__cause__ is None


def test_an_operation_that_the_class_has_not_is_unsupported() -> None:
    with pytest.raises(UnsupportedOperationError, match="rename_table is not supported by this catalog"):
        opened().rename_table({"id": ["t"], "new_table_name": "u"})


def test_a_table_is_described_where_the_class_cannot_tell_whether_it_exists() -> None:
    opened().table_exists({"id": ["t"]})
    Scripted.answers = failing(ValueError("Table ['t'] does not exist"))
    with pytest.raises(TableNotFoundError):
        opened().table_exists({"id": ["t"]})


def test_the_test_of_a_connection_says_that_a_root_does_not_exist(tmp_path: Path) -> None:
    missing = CatalogNamespace(root=str(tmp_path / "missing"))

    assert "whose root doesn't exist on this machine" in missing.server_info().summary
    assert "whose root" not in CatalogNamespace(root=str(tmp_path)).server_info().summary


def test_a_table_whose_versions_the_catalog_decides_is_refused() -> None:
    Scripted.answers = lambda _id: DescribeTableResponse(location="/t", managed_versioning=True)
    with pytest.raises(UnsupportedOperationError, match="a table whose versions the catalog decides"):
        opened().describe_table({"id": ["t"]})


@pytest.mark.parametrize(
    ("properties", "location", "allowed"),
    [
        ({}, "s3://anywhere/t", True),
        ({"root": "s3://bucket/lake"}, "s3://bucket/elsewhere/t", True),
        ({"root": "s3://bucket/lake"}, "s3://other/t", False),
        ({"root": "s3://bucket/lake"}, "/etc/t", False),
        ({"allowed_locations": "s3://bucket/lake"}, "s3://bucket/lake/t", True),
        ({"allowed_locations": "s3://bucket/lake"}, "s3://bucket/t", False),
    ],
)
def test_credentials_are_used_where_the_connection_says(
    properties: dict[str, str], location: str, allowed: bool
) -> None:
    Scripted.answers = lambda _id: DescribeTableResponse(location=location)
    namespace = opened(**properties)

    if allowed:
        assert namespace.describe_table({"id": ["t"]}).location == location
        return
    with pytest.raises(PermissionDeniedError, match="allowed_locations"):
        namespace.describe_table({"id": ["t"]})


def test_each_table_is_polled_unless_the_catalog_does_not_answer(tmp_path: Path) -> None:
    one, two, three = (TableId((name,)) for name in ("a", "b", "c"))
    errors: dict[str, LanceNamespaceError] = {
        "a": TableNotFoundError("no"),
        "b": PermissionDeniedError("no"),
    }

    def answer(parts: list[str]) -> DescribeTableResponse:
        if parts[0] in errors:
            raise errors[parts[0]]
        return DescribeTableResponse(location=str(tmp_path / "c"))

    Scripted.answers = answer
    namespace = opened()
    first = namespace.poll_tables([one, two, three])
    assert first[one] == TableStatus(one)
    assert isinstance(first[two], PermissionDeniedError)
    assert first[three] == TableStatus(three, str(tmp_path / "c"), needs_listing=True)
    assert namespace.poll_tables([three], first)[three] is first[three]


def test_refused_credentials_are_an_answer_about_the_table_alone(tmp_path: Path) -> None:
    tables = [TableId((name,)) for name in "abcdef"]

    def answer(parts: list[str]) -> DescribeTableResponse:
        if parts[0] in "abcd":
            raise UnauthenticatedError(f"no credentials for the storage of {parts[0]}")
        return DescribeTableResponse(location=str(tmp_path / parts[0]))

    Scripted.answers = answer
    polled = opened().poll_tables(tables)

    assert [str(polled[table])[-1] for table in tables[:4]] == list("abcd")
    assert all(isinstance(polled[table], TableStatus) for table in tables[4:])


def test_a_table_that_the_catalog_fails_for_stops_no_wait_on_another_one(tmp_path: Path) -> None:
    tables = [TableId((name,)) for name in "abcdef"]
    failing = {"a", "d"}

    def answer(parts: list[str]) -> DescribeTableResponse:
        if parts[0] in failing:
            raise ServiceUnavailableError("500")
        return DescribeTableResponse(location=str(tmp_path / parts[0]))

    def answered() -> str:
        polled = namespace.poll_tables(tables)
        assert set(polled) == set(tables)
        return "".join(sorted(one.name for one, found in polled.items() if isinstance(found, TableStatus)))

    Scripted.answers = answer
    namespace = opened()
    assert answered() == "bcef"

    failing |= {"b", "c", "e"}
    Scripted.asked.clear()
    assert answered() == ""
    assert Scripted.asked == ["a", "b", "c"]
    assert answered() == "f"  # the next poll begins with the tables that were left out


def test_a_poll_waits_for_few_tables_without_an_answer_however_many_are_answered_in_between(
    tmp_path: Path,
) -> None:
    tables = [TableId((f"t{number:02}",)) for number in range(20)]
    silent = {str(table) for table in tables[::2]}
    ended = threading.Event()

    def answer(parts: list[str]) -> DescribeTableResponse:
        if parts[0] in silent:
            ended.wait(60)
        return DescribeTableResponse(location=str(tmp_path / parts[0]))

    Scripted.answers = answer
    namespace = opened(**{"client.timeout": "0.2"})
    answered: set[TableId] = set()
    try:
        for _ in range(4):
            Scripted.asked.clear()
            polled = namespace.poll_tables(tables)
            assert set(polled) == set(tables)
            assert len(silent.intersection(Scripted.asked)) <= 3
            answered |= {one for one, found in polled.items() if isinstance(found, TableStatus)}
    finally:
        ended.set()
    assert answered == set(tables[1::2])


def test_a_copy_is_made_of_the_properties() -> None:
    copy: Any = pickle.loads(pickle.dumps(opened(root="/lake")))

    assert copy.namespace_id() == f"catalog:{__name__}.Scripted#/lake"
    assert copy.describe_table({"id": ["t"]}).location.endswith("/t")
