"""Every verb on every lesser store: it works, or says what is missing; nothing is lost, and nothing blocks.

Each verb is run on a table of its own, and again, on the same store with nothing missing.
"""

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import pytest
from lance_namespace.errors import ErrorCode, LanceNamespaceError

from airflow_provider_lancens.namespace.storage import object_store
from tests.servers.s3_double import S3Double
from tests.servers.s3_link import Fault
from tests.servers.s3_requests import BULK_DELETE, LIST, Request
from tests.support.writes import write_table
from tests.unit.spark.every_verb import NAME, VERBS, S3Lake, create, frame, healthy

DETACHED = re.compile(r"d[0-9]+\.manifest")
"""Lance takes another random number after each refusal."""
Outcome = tuple[Any, Any]
"""The columns and rows of the table and of its release set."""


def refuse(s3: S3Double, kind: str, status: HTTPStatus, code: str) -> None:
    s3.fault = lambda one: Fault(refusal=(status, code)) if one.kind == kind else None


def without_bulk_deletes(s3: S3Double) -> None:
    refuse(s3, BULK_DELETE, HTTPStatus.NOT_IMPLEMENTED, "NotImplemented")


def with_denied_bulk_deletes(s3: S3Double) -> None:
    refuse(s3, BULK_DELETE, HTTPStatus.FORBIDDEN, "AccessDenied")


def with_conflicts(s3: S3Double) -> None:
    """Refuse the first creation of each object by a conflict, with nothing stored."""
    refused: set[str] = set()

    def fault(request: Request) -> Fault | None:
        key = DETACHED.sub("d.manifest", request.key)
        if not request.creates or key in refused or request.key in s3.bucket.objects:
            return None
        refused.add(key)
        return Fault(refusal=(HTTPStatus.CONFLICT, "ConditionalRequestConflict"))

    s3.fault = fault


def without_listings(s3: S3Double) -> None:
    refuse(s3, LIST, HTTPStatus.FORBIDDEN, "AccessDenied")


def with_unknown_credentials(s3: S3Double) -> None:
    refuse(s3, LIST, HTTPStatus.UNAUTHORIZED, "InvalidAccessKeyId")


def without_deletes(s3: S3Double) -> None:
    s3.may_delete = False


IN_THE_CATALOG = {
    *("describe", "exists", "list tables", "list tables with data", "declare", "declare at a location"),
    *("deregister", "cascade"),
}
WITHOUT_LISTING = {
    "storage": {*IN_THE_CATALOG, "read an older version", "read changes", "register", "adopt"},
    "impl": {
        *(*IN_THE_CATALOG, "read", "read an older version", "read changes", "count", "indices", "statistics"),
        *("find release set", "poll", "page: table", "delete bookmark", "delete tag", "index statistics"),
        *("query", "explain", "rows as Arrow", "describe columns"),
    },
}
"""The verbs that list no files, by who decides the versions."""
NEEDS_LISTING = {by: VERBS.keys() - works for by, works in WITHOUT_LISTING.items()}
DELETES = {"doctor", "discard", "delete bookmark", "delete tag", "clean-up", "orphans", "maintain", "drop"}
IN_STEPS = {"maintain", "compute column"}
"""They commit several versions, and keep those that they have when they fail."""
GATE = "/_lancens/writes/metastore-"


@dataclass(frozen=True)
class Store:
    """A store, and what it refuses."""

    lessen: Callable[[S3Double], None] = field(default=lambda s3: None)
    bucket: str = "lake"
    code: ErrorCode | None = None
    """Of the verbs that it refuses."""
    says: str = ""
    """What their messages say."""
    storage: Collection[str] = ()
    impl: Collection[str] = ()
    """The verbs that it refuses, by who decides the versions."""
    leaves_leases: bool = False


STORES = {
    "directory bucket": Store(bucket="lake--use1-az4--x-s3"),
    "no bulk deletes": Store(without_bulk_deletes),
    "denied bulk deletes": Store(with_denied_bulk_deletes),
    "conflicts": Store(with_conflicts),
    "denied listings": Store(
        without_listings,
        code=ErrorCode.PERMISSION_DENIED,
        says="list objects (s3:ListBucket)",
        **NEEDS_LISTING,
    ),
    "unknown credentials": Store(
        with_unknown_credentials,
        code=ErrorCode.UNAUTHENTICATED,
        says="check the storage.* properties",
        **NEEDS_LISTING,
    ),
    "denied deletes": Store(
        without_deletes,
        code=ErrorCode.PERMISSION_DENIED,
        says="delete objects (s3:DeleteObject)",
        storage=DELETES,
        impl=DELETES,
        leaves_leases=True,
    ),
}
BY_TIER = [
    pytest.param(
        name,
        marks=pytest.mark.slow if name == "denied listings" else pytest.mark.thorough,
    )
    for name in STORES
]
FEW = {*list(VERBS)[::9], "doctor", "tag", "branch", "convert"}


@contextmanager
def restored(lake: S3Lake) -> Iterator[Callable[[], None]]:
    """Return what lets the store and the catalog be as they are now."""
    objects, tables = dict(lake.s3.bucket.objects), dict(lake.metastore.tables)
    namespaces = dict(lake.metastore.namespaces)

    def restore() -> None:
        lake.s3.bucket.objects, lake.s3.bucket.keys = dict(objects), sorted(objects)
        lake.metastore.tables, lake.metastore.namespaces = dict(tables), dict(namespaces)
        object_store._without_bulk_deletes.clear()

    yield restore


def outcome(lake: S3Lake) -> Outcome:
    return lake.contents(), lake.contents("db$releases")


_DONE: dict[tuple[str, str], Outcome] = {}


def done(managed_by: str, verbs: Collection[str]) -> dict[str, Outcome]:
    """What each verb does on a store that lacks nothing."""
    if any((managed_by, name) not in _DONE for name in verbs):
        with S3Double() as s3, restored(lake := create(s3, managed_by)) as restore:
            for name in verbs:
                restore()
                VERBS[name](lake)
                _DONE[managed_by, name] = outcome(lake)
    return {name: _DONE[managed_by, name] for name in verbs}


def run(lake: S3Lake, name: str) -> LanceNamespaceError | str:
    """Run a verb; return its error, or what the doctor complains about."""
    try:
        result = VERBS[name](lake)
    except LanceNamespaceError as error:
        return error
    findings: Any = result if name == "doctor" else ()
    return " ".join(f"{one.text} {one.advice}" for one in findings if one.level == "problem")


def check(lake: S3Lake, store: Store, name: str, expected: Outcome) -> None:
    before = outcome(lake), lake.version, dict(lake.metastore.namespaces)
    store.lessen(lake.s3)
    found = run(lake, name)
    lake.s3.wait_until_quiet()  # several deletions at once: the others must not take effect when they may
    with healthy(lake.s3):
        if name not in getattr(store, lake.managed_by):
            assert found == "", f"{name}: {found!r}"
            assert outcome(lake) == expected, name
        else:
            assert store.says in str(found), f"{name}: {found!r}"
            assert isinstance(found, str) or found.code == store.code, f"{name}: {found!r}"
            assert outcome(lake) == before[0], name
            assert name in IN_STEPS or lake.version == before[1], name
            assert lake.metastore.namespaces == before[2], f"{name}: namespaces are left"
            assert run(lake, name) == "", f"{name}: a rerun"
            assert outcome(lake) == expected, f"{name}: a rerun"
        leases = [key for key in lake.s3.bucket.keys if "/_lancens/writes/" in key and GATE not in key]
        assert store.leaves_leases or not leases, f"{name}: {leases}"
        check_not_blocked(lake, name, expected)


def check_not_blocked(lake: S3Lake, name: str, expected: Outcome) -> None:
    """Check that the next write isn't refused, whatever the verb has left behind."""
    if expected[0] is None:
        return
    columns, rows = expected[0]
    if columns == ("n", "v"):
        write_table(frame(77), lake.namespace, NAME, key="after")
        found = lake.contents()
        assert found is not None
        assert len(found[1]) == len(rows) + 1, name


def check_all(store: str, managed_by: str, verbs: Collection[str]) -> None:
    expected, lesser = done(managed_by, verbs), STORES[store]
    with S3Double(lesser.bucket) as s3, restored(lake := create(s3, managed_by)) as restore:
        for name in verbs:
            restore()
            with healthy(s3):
                check(lake, lesser, name, expected[name])


@pytest.fixture(autouse=True)
def threads_without_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PIN_THREAD", "false")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("managed_by", ["storage", "impl"])
@pytest.mark.parametrize("store", BY_TIER)
def test_a_verb_works_or_says_what_the_store_lacks(store: str, managed_by: str) -> None:
    check_all(store, managed_by, [name for name in VERBS if name in FEW])


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("managed_by", ["storage", "impl"])
@pytest.mark.parametrize("store", STORES)
def test_every_verb_works_or_says_what_the_store_lacks(store: str, managed_by: str) -> None:
    check_all(store, managed_by, list(VERBS))
