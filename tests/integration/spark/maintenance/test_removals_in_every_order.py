"""A clean-up beside clients that need the versions that it removes, each stopped before each of its requests.

While one is stopped, the other runs from its beginning to its end, and then the next clean-up does: as if the
first one had died. Then the first one resumes. After each of these steps the newest version must be readable,
and so must be each version whose tag, branch, bookmark, release, restore or staged write was acknowledged.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus

import lance
import pyarrow as pa
import pytest
from lance.fragment import write_fragments
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest
from lance_namespace.errors import ConcurrentModificationError, TableVersionNotFoundError

from airflow_provider_lancens.namespace.property_keys import STORAGE_PREFIX
from airflow_provider_lancens.namespace.storage.object_store import manifest_names
from airflow_provider_lancens.namespace.storage.version_removals import REMOVALS
from airflow_provider_lancens.namespace.storage.version_tags import (
    create_branch,
    create_tag,
    list_branches,
    list_tags,
)
from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.commit.append_overwrite import AppendCommit
from airflow_provider_lancens.spark.commit.write_lease import acquire_lease
from airflow_provider_lancens.spark.keys import Counts, KeyedWrite
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
from airflow_provider_lancens.spark.maintenance.restore import restore_version
from airflow_provider_lancens.spark.publish import ChangeSpec, stage
from airflow_provider_lancens.spark.release_sets import move_release_set
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable, resolved_table
from tests.servers.glue_double import GlueDouble
from tests.servers.s3_double import S3Double
from tests.servers.s3_link import Fault
from tests.servers.s3_requests import Request
from tests.servers.stops import SECONDS, run_stopped, stops_of
from tests.support.bookmarks import move_bookmark

pytestmark = pytest.mark.thorough

OLD, NEWEST = 2, 4
NAME = "consumer"

Action = Callable[["Lake"], object]


@dataclass
class Lake:
    """A table of four versions, each with one row, and a release set."""

    s3: S3Double
    spec: NamespaceSpec
    database: str = ""
    managed: bool = False
    staged: list[int] = field(default_factory=list)
    """The staged versions whose writes were acknowledged."""
    base: lance.LanceDataset = field(init=False)
    """The dataset as a write opened it that began at an older version."""

    def __post_init__(self) -> None:
        namespace = self.spec.connect()
        if self.database:
            namespace.create_namespace(CreateNamespaceRequest(id=[self.database]))
        properties = {"managed_by": "impl"} if self.managed else None
        for name in (self.table, self.release_set):
            namespace.declare_table(DeclareTableRequest(id=name.split("$"), properties=properties))
        for number in range(1, NEWEST + 1):
            lance.write_dataset(
                pa.table({"id": [number]}),
                namespace_client=namespace,
                table_id=self.table.split("$"),
                mode="append" if number == 1 else "overwrite",
                storage_options=self.s3.storage,
            )
        with self.opened() as (_, dataset):
            dataset.tags.create(NAME, NEWEST - 1)
        with self.opened() as (table, _):
            self.base = table.open(OLD)

    @property
    def table(self) -> str:
        return f"{self.database}$t" if self.database else "t"

    @property
    def release_set(self) -> str:
        return f"{self.database}$releases" if self.database else "releases"

    def opened(self) -> "OpenedTable":
        return OpenedTable(self)

    def check(self, *, restored: bool | None) -> None:
        """Check that the newest version is whole, as is each that a tag names, and each staged one.

        Args:
            restored: whether a restore was acknowledged; None if one is running.
        """
        with self.opened() as (table, latest):
            newest = rows_of(table, latest.version)
            assert newest in ([[OLD], [NEWEST]] if restored is None else [[OLD if restored else NEWEST]])
            for tag in list_tags(latest).values():
                assert rows_of(table, tag["version"])
            for version in self.staged:
                assert rows_of(table, version) == [OLD, 100]
            for branch in list_branches(latest):
                assert rows_of(table, None, branch) == [OLD]

    def leftovers(self) -> list[str]:
        with self.opened() as (table, _):
            return [file.path for file in table.dataset.manifests.below(REMOVALS)]


class OpenedTable:
    """The lake's table, and its dataset at the newest version."""

    def __init__(self, lake: Lake) -> None:
        self._resolved = resolved_table(lake.spec, lake.table)

    def __enter__(self) -> tuple[ResolvedTable, lance.LanceDataset]:
        table = self._resolved.__enter__()
        latest = table.open_latest()
        assert latest is not None
        return table, latest

    def __exit__(self, *_: object) -> None:
        self._resolved.__exit__(None, None, None)


def rows_of(table: ResolvedTable, version: int | None, branch: str | None = None) -> list[int]:
    """Read a version with nothing in memory that another one has read."""
    dataset = table.dataset
    location, storage = dataset.location, dict(dataset.storage_options)
    try:
        opened = lance.dataset(location, version, storage_options=storage, session=lance.Session())
    except ValueError:  # the newest one of a managed table may not have its final name yet
        opened = table.open(version)
    if branch is not None:
        opened = opened.checkout_version((branch, None))
    return opened.to_table()["id"].to_pylist()


def directory_lake(s3: S3Double) -> NamespaceSpec:
    storage = {f"{STORAGE_PREFIX}{name}": value for name, value in s3.storage.items()}
    return NamespaceSpec("dir", {"root": "s3://lake", **storage})


def glue_lake(s3: S3Double, glue: GlueDouble) -> NamespaceSpec:
    storage = {f"{STORAGE_PREFIX}{name}": value for name, value in s3.storage.items()}
    properties = {**glue.properties, **storage, "root": "s3://lake"}
    return NamespaceSpec("airflow_provider_lancens.namespace.GlueNamespace", properties)


Lakes = Callable[[], Lake]


@pytest.fixture
def lakes(request: pytest.FixtureRequest, database: str, glue: GlueDouble) -> Iterator[Lakes]:
    """Make lakes of one kind, each on a storage and in a database of its own."""
    started: list[S3Double] = []

    def make() -> Lake:
        while started:
            started.pop().__exit__(None, None, None)
        s3 = S3Double("lake").__enter__()
        started.append(s3)
        if request.param == "storage":
            return Lake(s3, directory_lake(s3))
        made.append(f"{database}_{len(made)}")
        return Lake(s3, glue_lake(s3, glue), made[-1], managed=True)

    made: list[str] = []
    yield make
    while started:
        started.pop().__exit__(None, None, None)


def clean_up(lake: Lake) -> object:
    return clean_up_versions(lake.spec, lake.table, older_than=timedelta(0))


def tag(lake: Lake) -> object:
    with lake.opened() as (table, latest):
        return create_tag(latest, table.dataset.manifests, "kept", OLD)


def branch(lake: Lake) -> object:
    if lake.managed:
        request = {"id": lake.table.split("$"), "name": "trial", "from_version": OLD}
        return lake.spec.connect().create_table_branch(request)
    with lake.opened() as (table, latest):
        return create_branch(latest, table.dataset.manifests, "trial", OLD)


def bookmark(lake: Lake) -> object:
    return move_bookmark(lake.spec, lake.table, NAME, OLD)


def release(lake: Lake) -> object:
    return move_release_set(lake.spec, lake.release_set, {lake.table: OLD})


def restore(lake: Lake) -> object:
    return restore_version(lake.spec, lake.table, OLD)


def write_staged(lake: Lake) -> object:
    """Stage a write that began when the table was at an older version."""
    rows = pa.table({"id": [100]})
    with lake.opened() as (table, latest), acquire_lease(table.dataset).kept_alive(end=True) as lease:
        files = write_fragments(rows, lake.base, mode="append", storage_options=lake.s3.storage)
        change = AppendCommit(lake.table, OLD, latest.schema, files, written_for=lake.base.lance_schema)
        spec = ChangeSpec("append", OLD)
        outcome = stage(table, KeyedWrite("a key"), change, Counts(1, 1, 1), spec, lease)
    lake.staged.append(outcome.commit.version)
    return outcome


USES = {
    "tag": tag,
    "branch": branch,
    "bookmark": bookmark,
    "release": release,
    "restore": restore,
    "staged write": write_staged,
}


def is_acknowledged(run: Callable[[], object]) -> bool:
    """Whether a run succeeds; a clean-up may refuse it, in words."""
    try:
        run()
    except (ConcurrentModificationError, TableVersionNotFoundError):
        return False
    return True


def stops(lakes: Lakes, first: Action) -> int:
    """Count the requests of a run without others."""
    lake = lakes()
    return stops_of(lake.s3.set_gate, lambda: first(lake))


def play(lake: Lake, first: Action, second: Action, at: int) -> None:
    """Run one beside the other, and then a clean-up."""
    restored: bool | None = False

    def others() -> None:
        nonlocal restored
        acknowledged = is_acknowledged(lambda: second(lake))
        restored = None if first is restore else acknowledged and second is restore
        lake.check(restored=restored)
        is_acknowledged(lambda: clean_up(lake))
        lake.check(restored=restored)

    acknowledged = run_stopped(lake.s3.set_gate, at, lambda: is_acknowledged(lambda: first(lake)), others)
    restored = acknowledged if first is restore else restored
    lake.check(restored=restored)
    clean_up(lake)
    lake.check(restored=restored)
    assert lake.leftovers() == []


FEW, ALL = 31, 1
"""Each run stops at every 31st request, the long tests at each."""
STEPS = [
    FEW,
    pytest.param(ALL, marks=[pytest.mark.long, pytest.mark.timeout(3600)]),
]


def chosen_stops(ends: int, name: str, step: int) -> range:
    """The requests to stop at, others for each use of a version."""
    offset = 5 * list(USES).index(name)
    return range(offset % min(step, ends), ends, step)


on_both_authorities = pytest.mark.parametrize("lakes", ["storage", "metastore"], indirect=True)


@on_both_authorities
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", USES)
def test_a_clean_up_that_is_stopped_anywhere_removes_nothing_that_is_needed(
    lakes: Lakes, name: str, step: int
) -> None:
    for at in chosen_stops(stops(lakes, clean_up), name, step):
        play(lakes(), clean_up, USES[name], at)


@on_both_authorities
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", USES)
def test_nothing_is_removed_that_a_client_needs_which_is_stopped_anywhere(
    lakes: Lakes, name: str, step: int
) -> None:
    for at in chosen_stops(stops(lakes, USES[name]), name, step):
        play(lakes(), USES[name], clean_up, at)


@on_both_authorities
def test_a_clean_up_between_whose_listings_a_branch_is_created_removes_nothing_of_it(lakes: Lakes) -> None:
    lake = lakes()
    beside_a_clean_up(lake, branch, "/tree/trial/_versions/")
    with lake.opened() as (_, latest):
        assert list(list_branches(latest)) == ["trial"]
    lake.check(restored=False)


@pytest.mark.parametrize("lakes", ["metastore"], indirect=True)
def test_a_clean_up_beside_a_restore_whose_version_has_no_final_name_removes_nothing_of_it(
    lakes: Lakes,
) -> None:
    lake = lakes()
    denied = Fault(refusal=(HTTPStatus.FORBIDDEN, "AccessDenied"))
    name = f"/_versions/{manifest_names(NEWEST + 1)[0]}"
    lake.s3.fault = lambda request: denied if request.kind == "put" and request.key.endswith(name) else None
    beside_a_clean_up(lake, restore, "/_transactions/")
    lake.s3.fault = lambda request: None
    lake.check(restored=True)


def beside_a_clean_up(lake: Lake, action: Action, stopped_at: str) -> None:
    """Run what tags a version, stopped before a put, until a clean-up has read all but the tags.

    Lance lists the branches before the tags, and the newest version is read before both.
    """
    stopped, recorded, resumed, done = (threading.Event() for _ in range(4))

    def gate(request: Request) -> None:
        if request.kind == "put" and REMOVALS in request.key:
            recorded.set()
        elif request.kind == "put" and stopped_at in request.key and not stopped.is_set():
            stopped.set()
            assert resumed.wait(SECONDS)
        elif recorded.is_set() and not resumed.is_set() and request.key.endswith("/_refs/tags/"):
            resumed.set()
            assert done.wait(SECONDS)

    lake.s3.set_gate(gate)
    with ThreadPoolExecutor(1) as client:
        running = client.submit(action, lake)
        running.add_done_callback(lambda _: done.set())
        assert stopped.wait(SECONDS)
        clean_up(lake)
        running.result(SECONDS)
