"""Random requests: every error is one of the specification, and a refused request changes nothing."""

import contextlib
import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lance_namespace.errors import LanceNamespaceError

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from tests.integration.hive.raw import names_in, raw_client
from tests.support.hive_databases import drop_all

pytestmark = pytest.mark.thorough

OF_A_TEST = re.compile(r"db_[0-9a-f]{10,12}(_\w+)?")
"""The databases of any test; those of hypothesis are other names."""
FEW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(FEW, max_examples=1500)

_ODD = st.one_of(st.characters(codec="utf-8"), st.characters(categories=["Cs", "Cc"]))
ANY_TEXT = st.text(_ODD, max_size=40)
NAMES = st.one_of(
    st.text("abcXYZ019_", min_size=1, max_size=12),
    ANY_TEXT,
    st.sampled_from(
        ["", " ", "..", "../x", "a/b", "a$b", "*", "a|b", "%", "@hive#default", "default", "a.b"]
    ),
    st.integers(min_value=120, max_value=1200).map("x".__mul__),
)
IDS = st.one_of(st.none(), st.lists(NAMES, max_size=4))
KEYS = st.one_of(
    ANY_TEXT,
    st.sampled_from(["table_type", "EXTERNAL", "managed_by", "version", "external.table.purge", "comment"]),
    st.sampled_from(["database.location-uri", "database.owner-type", "database.description", "x" * 300]),
)
VALUES = st.one_of(ANY_TEXT, st.integers(min_value=0, max_value=40_000).map("v".__mul__))
PROPERTIES = st.one_of(st.none(), st.dictionaries(KEYS, VALUES, max_size=4))
LOCATIONS = st.one_of(st.none(), ANY_TEXT, ANY_TEXT.map("/fuzz/".__add__), ANY_TEXT.map("s3://".__add__))
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), ANY_TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(ANY_TEXT, inner, max_size=3)),
    max_leaves=5,
)
READS = [
    "list_namespaces",
    "describe_namespace",
    "namespace_exists",
    "list_tables",
    "describe_table",
    "table_exists",
]
REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "id": st.one_of(IDS, JSON),
        "limit": st.one_of(st.integers(-2, 3), JSON),
        "page_token": st.one_of(ANY_TEXT, JSON),
        "version": st.one_of(st.integers(-1, 3), JSON),
        "check_declared": JSON,
        "with_table_uri": JSON,
        "vend_credentials": JSON,
        "nonsense": JSON,
    },
)


@pytest.fixture(scope="module")
def namespace(
    metastore: MetastoreServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Hive2Namespace]:
    root = tmp_path_factory.mktemp("root")
    with Hive2Namespace(uri=metastore.uri, root=str(root)) as connected:
        yield connected


@pytest.fixture(scope="module")
def db(namespace: Hive2Namespace) -> Iterator[str]:
    name = f"db_{uuid.uuid4().hex[:12]}"
    namespace.create_namespace({"id": [name]})
    yield name
    drop_all(namespace, name)


@contextlib.contextmanager
def unchanged(look: Callable[[], Any]) -> Iterator[None]:
    """Expect the block to succeed or to raise the specification's errors, without visible changes."""
    before = look()
    with contextlib.suppress(LanceNamespaceError):
        yield
    assert look() == before


def databases(uri: str) -> list[str]:
    """All databases except for those of tests in other processes."""
    with raw_client(uri) as client:
        return sorted(name for name in client.get_all_databases() if not OF_A_TEST.fullmatch(name))


def check_table(namespace: Hive2Namespace, uri: str, db: str, request: dict[str, Any]) -> None:
    for operation in ("declare_table", "register_table"):
        with unchanged(lambda: names_in(uri, db)):
            getattr(namespace, operation)(request)
            found = namespace.describe_table({"id": request["id"]})
            assert (request["properties"] or {}).items() <= {
                **found.properties,
                **_canonical(request),
            }.items()
            namespace.deregister_table({"id": request["id"]})


def _canonical(request: dict[str, Any]) -> dict[str, str]:
    """The properties of a catalog table, regardless of their case."""
    ours = {"table_type", "EXTERNAL", "managed_by", "external.table.purge"}
    return {key: value for key, value in (request["properties"] or {}).items() if key in ours}


def check_namespace(namespace: Hive2Namespace, uri: str, target: Any, properties: Any) -> None:
    for mode in ("create", "exist_ok"):
        with unchanged(lambda: databases(uri)):
            namespace.create_namespace({"id": target, "properties": properties, "mode": mode})
            namespace.describe_namespace({"id": target})
            if [part.lower() for part in target] != ["default"]:
                namespace.drop_namespace({"id": target})


def check_read(namespace: Hive2Namespace, uri: str, operation: str, asked: dict[str, Any]) -> None:
    with unchanged(lambda: databases(uri)):
        getattr(namespace, operation)(asked)


TABLES = {"name": NAMES, "location": LOCATIONS, "properties": PROPERTIES}


@FEW
@given(**TABLES)
def test_a_table_is_declared_as_given_or_refused(
    metastore: Any, namespace: Any, db: str, name: str, location: Any, properties: Any
) -> None:
    request = {"id": [db, name], "location": location, "properties": properties}
    check_table(namespace, metastore.uri, db, request)


@FEW
@given(target=IDS, properties=PROPERTIES)
def test_a_namespace_is_created_as_given_or_refused(
    metastore: Any, namespace: Any, target: Any, properties: Any
) -> None:
    check_namespace(namespace, metastore.uri, target, properties)


@FEW
@given(operation=st.sampled_from(READS), asked=REQUESTS)
def test_a_read_is_answered_or_refused(
    metastore: Any, namespace: Any, operation: str, asked: dict[str, Any]
) -> None:
    check_read(namespace, metastore.uri, operation, asked)


@pytest.mark.long
@pytest.mark.timeout(3600)
@MANY
@given(**TABLES)
def test_each_of_many_tables_is_declared_as_given_or_refused(
    metastore: Any, namespace: Any, db: str, name: str, location: Any, properties: Any
) -> None:
    request = {"id": [db, name], "location": location, "properties": properties}
    check_table(namespace, metastore.uri, db, request)


@pytest.mark.long
@pytest.mark.timeout(3600)
@MANY
@given(target=IDS, properties=PROPERTIES)
def test_each_of_many_namespaces_is_created_as_given_or_refused(
    metastore: Any, namespace: Any, target: Any, properties: Any
) -> None:
    check_namespace(namespace, metastore.uri, target, properties)


@pytest.mark.long
@pytest.mark.timeout(3600)
@MANY
@given(operation=st.sampled_from(READS), asked=REQUESTS)
def test_each_of_many_reads_is_answered_or_refused(
    metastore: Any, namespace: Any, operation: str, asked: dict[str, Any]
) -> None:
    check_read(namespace, metastore.uri, operation, asked)
