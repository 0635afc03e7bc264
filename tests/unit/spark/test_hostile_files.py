"""Every verb on a table in whose folder another client wrote: nothing outside is read, written or deleted.

A table of places where such files may be, by kinds of names, by verbs. Each file is valid where its name is.
Then the same verbs, and requests to the namespace, with symbolic links to the files of another table.
"""

import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.fragment import write_fragments
from lance_namespace import DeclareTableRequest
from lance_namespace.errors import LanceNamespaceError

from airflow_provider_lancens.doctor.checks import check_state
from airflow_provider_lancens.hooks.airflow_errors import AirflowException
from airflow_provider_lancens.hooks.table_checks import data_changed, pin
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.config import Properties, StorageConfig
from airflow_provider_lancens.namespace.storage import purge
from airflow_provider_lancens.namespace.storage.missing_files import StoredVersions
from airflow_provider_lancens.spark import (
    NamespaceSpec,
    confirm_write,
    delete_bookmark,
    delete_rows,
    find_bookmark,
    find_release_set,
    find_version,
    find_write,
    list_bookmarks,
    move_bookmark,
    move_release_set,
    remove_orphans,
)
from airflow_provider_lancens.spark.commit.committer import Committer
from airflow_provider_lancens.spark.commit.table_changes import AppendCommit
from airflow_provider_lancens.spark.keys import Counts, KeyedWrite, key_records
from airflow_provider_lancens.spark.maintenance import MaintenancePlan, Thresholds, maintain_table
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
from airflow_provider_lancens.spark.maintenance.restore import check_files, restore_version
from airflow_provider_lancens.spark.maintenance.table_state import table_state
from airflow_provider_lancens.spark.publish import discard_version, publish_version, staged_versions
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable, resolved_table
from airflow_provider_lancens.spark.write.executor_tasks import ReadTask, WriteTask
from airflow_provider_lancens.ui.table_details import describe
from airflow_provider_lancens.ui.version_history import list_versions
from tests.hostile_names import FILE_NAMES
from tests.servers.s3_bucket import Stored
from tests.servers.s3_double import S3Double
from tests.unit.spark.commit.memory_lake import MemoryMetastore, MemoryNamespace

ROWS = pa.table({"n": [1, 2]})
CANARY = pa.table({"n": [77123, 77124]})
"""The rows of somebody else's table."""
KEY = key_records.digest("key")
LONG_AGO = 1_600_000_000
TAG: dict[str, Any] = {
    "branch": None,
    "version": 1,
    "createdAt": "2020-01-01T00:00:00Z",
    "manifestSize": 9,
    "metadata": {},
}
BRANCH: dict[str, Any] = {
    "parentBranch": None,
    "parentVersion": 1,
    "createAt": 1,
    "manifestSize": 9,
    "metadata": {},
}
Verb = Callable[[NamespaceSpec, str], object]

PLACES: Mapping[str, Callable[[str], bytes]] = {
    "_refs/tags/{}.json": lambda name: json.dumps(TAG).encode(),
    "_refs/tags/lancens-temporary-{}.json": lambda name: json.dumps(TAG).encode(),
    "_refs/tags/of-a-branch.json": lambda name: json.dumps({**TAG, "branch": name}).encode(),
    "_refs/branches/{}.json": lambda name: json.dumps(BRANCH).encode(),
    "tree/{}/_versions/1.manifest": lambda name: b"x",
    "_lancens/removals/{}": lambda name: b'{"versions": [[1, 1]]}',
    "_lancens/removals/record": lambda name: json.dumps({"versions": [[name, name]]}).encode(),
    "_lancens/writes/{}": lambda name: b"",
    "_lancens/revoked/{}": lambda name: b"",
    "_lancens/{}/1.manifest": lambda name: b"x",
    f"_lancens/keys/{KEY[:2]}/{KEY}/1-{{}}": lambda name: b"{}",
    "_lancens/keys/{}/1-a": lambda name: b"{}",
    "_lancens/key-index/{}": lambda name: b"[]",
    "_lancens/expired-keys/{}/1": lambda name: b"x",
    "_lancens/expired-bookmarks/{}.json": lambda name: json.dumps({"bookmark": name, "version": 1}).encode(),
    "data/{}.lance": lambda name: b"x",
    "data/{}/1.blob": lambda name: b"x",
    "_versions/{}.manifest": lambda name: b"x",
    "_versions/{}": lambda name: b"x",
    "_transactions/{}.txn": lambda name: b"x",
    "_indices/{}/index.idx": lambda name: b"x",
}
"""Where another client may write files, with their contents."""


def commit(spec: NamespaceSpec, table: str) -> object:
    with resolved_table(spec, table) as target:
        latest = target.open_latest()
        assert latest is not None
        fragments = write_fragments(ROWS, latest, mode="append")
        change = AppendCommit(
            str(target.id), latest.version, ROWS.schema, fragments, written_for=latest.lance_schema
        )
        return Committer(target, KeyedWrite("key"), Counts(2, 1, 100)).commit(change)


def each_staged(verb: Callable[..., object]) -> Verb:
    def call(spec: NamespaceSpec, table: str) -> object:
        with resolved_table(spec, table) as target:
            found = [staged.version for staged in staged_versions(target)]
        return [verb(spec, table, version) for version in (*found, 2**63 + 1)]

    return call


def of_target(verb: Callable[[ResolvedTable], object]) -> Verb:
    def call(spec: NamespaceSpec, table: str) -> object:
        with resolved_table(spec, table) as target:
            return verb(target)

    return call


def check_as_the_doctor(spec: NamespaceSpec, table: str) -> object:
    with table_state(spec, table) as state:
        return list(check_state(table, state))


def read(target: ResolvedTable) -> object:
    latest = target.open_latest()
    assert latest is not None
    return latest.to_table().to_pylist()


def read_on_an_executor(target: ResolvedTable) -> object:
    task = ReadTask(target.dataset, 3, ROWS.schema, None, [[0, 1, 2]])
    return [batch.to_pylist() for batch in task.read(0)]


def write_on_an_executor(target: ResolvedTable) -> object:
    return [
        batch.to_pylist()
        for base in (3, None)
        for batch in WriteTask(target.dataset, ROWS.schema, base, 10, None).run(iter(ROWS.to_batches()))
    ]


def no_spark() -> Any:
    pytest.fail("Spark was started")


def maintain(spec: NamespaceSpec, table: str) -> object:
    plan = MaintenancePlan(
        older_than=timedelta(0),
        keep_keys=timedelta(days=1),
        orphans_older_than=timedelta(minutes=20),
        thresholds=Thresholds(min_small_fragments=1_000),
    )
    return maintain_table(no_spark, spec, table, plan)


def on_page(view: Callable[..., object], *arguments: object) -> Verb:
    return lambda spec, table: view(SimpleNamespace(get_reader=lambda: spec), table, *arguments)


VERBS: Mapping[str, Verb] = {
    "read": of_target(read),
    "read on an executor": of_target(read_on_an_executor),
    "page: table": on_page(describe),
    "page: versions": on_page(list_versions, None, 10),
    "doctor": check_as_the_doctor,
    "list bookmarks": list_bookmarks,
    "find bookmark": lambda spec, table: find_bookmark(spec, table, "consumer"),
    "find version": lambda spec, table: find_version(spec, table, tag="of-a-branch"),
    "find write": lambda spec, table: find_write(spec, table, "key"),
    "check files": check_files,
    "missing files": of_target(
        lambda target: StoredVersions(
            target.dataset.location, target.dataset.storage_options
        ).newest_complete(9)
    ),
    "release set": find_release_set,
    "write on an executor": of_target(write_on_an_executor),
    "commit": commit,
    "confirm write": lambda spec, table: confirm_write(spec, table, "key"),
    "move bookmark": lambda spec, table: move_bookmark(spec, table, "consumer", 2),
    "delete bookmark": lambda spec, table: delete_bookmark(spec, table, "consumer"),
    "move release set": lambda spec, table: move_release_set(spec, "releases", {table: 1}),
    "delete rows": lambda spec, table: delete_rows(spec, table, "n = 2"),
    "publish": each_staged(publish_version),
    "discard": each_staged(discard_version),
    "restore": lambda spec, table: restore_version(spec, table, 1),
    "orphans, dry": lambda spec, table: remove_orphans(spec, table, dry_run=True),
    "orphans": lambda spec, table: remove_orphans(spec, table, older_than=timedelta(minutes=20)),
    "clean-up, dry": lambda spec, table: clean_up_versions(
        spec, table, older_than=timedelta(0), dry_run=True
    ),
    "clean-up": lambda spec, table: clean_up_versions(
        spec, table, older_than=timedelta(0), keep_keys=timedelta(days=1)
    ),
    "maintain": maintain,
    "drop": of_target(lambda target: purge.remove(target.dataset.location, target.dataset.storage_options)),
}
"""Reads first, then what writes, then what deletes."""


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def create_tables(spec: NamespaceSpec, storage: dict[str, str] | None = None) -> None:
    """Create a table of three versions, a release set, and a table of somebody else."""
    namespace, root = spec.connect(), spec.properties["root"]
    for table in ("orders", "canary", "releases"):
        namespace.declare_table(DeclareTableRequest(id=[table]))
    for table, rows in {"orders": ROWS, "canary": CANARY}.items():
        for mode in ("create", "append", "append"):
            lance.write_dataset(rows, f"{root}/{table}.lance", mode=mode, storage_options=storage)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with these tables, last changed long ago."""
    root = tmp_path_factory.mktemp("hostile") / "root"
    create_tables(NamespaceSpec("dir", {"root": str(root)}))
    (root / "victim").write_bytes(b"alive")
    for path in root.rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))
    return root


def pairs(step: int) -> list[tuple[str, str]]:
    """Every place with every name; with a step, only each so many, so that all places and names occur."""
    return list(itertools.product(PLACES, FILE_NAMES.values()))[::step]


def try_verbs(spec: NamespaceSpec) -> list[object]:
    """Call each verb on the table, and return the results.

    Whatever is refused is refused in words: any other error ends the test.
    """
    results: list[object] = []
    messages = []
    for call in VERBS.values():
        try:
            results.append(call(spec, "orders"))
        except LanceNamespaceError as error:
            messages.append(str(error))
    assert all(message.isprintable() for message in messages), messages
    return results


def check_locally(template: Path, root: Path, place: str, name: str) -> bool:
    """Try all verbs on a table with such a file; return whether a file can have that name."""
    shutil.copytree(template, root)
    try:
        path = root / "orders.lance" / place.format(name.replace("/", "%2F"))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(PLACES[place](name))
            os.utime(path, (LONG_AGO, LONG_AGO))
        except (OSError, ValueError):
            return False
        before = {**contents(root / "canary.lance"), "victim": b"alive"}
        neighbors = {path.name for path in template.iterdir()} - {"orders.lance"}
        try_verbs(NamespaceSpec("dir", {"root": str(root)}))
        found = {**contents(root / "canary.lance"), "victim": (root / "victim").read_bytes()}
        assert found == before, (place, name)
        assert {path.name for path in root.iterdir()} - {"orders.lance"} == neighbors, (place, name)
    finally:
        shutil.rmtree(root)
    return True


def test_no_verb_leaves_a_table_by_the_name_of_a_local_file(template: Path, tmp_path: Path) -> None:
    tables = [check_locally(template, tmp_path / "root", *pair) for pair in pairs(step=47)]
    assert sum(tables) >= 8


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_no_verb_leaves_a_table_by_any_name_of_a_local_file(template: Path, tmp_path: Path) -> None:
    tables = [check_locally(template, tmp_path / "root", *pair) for pair in pairs(step=1)]
    assert sum(tables) >= 450  # with each of the verbs


@pytest.fixture(scope="module")
def s3() -> Iterator[tuple[S3Double, NamespaceSpec, dict[str, Stored]]]:
    """A store with these tables, and its objects."""
    with S3Double() as double:
        storage = {f"storage.{name}": value for name, value in double.storage.items()}
        spec = NamespaceSpec("dir", {"root": f"s3://{double.bucket_name}/root", **storage})
        create_tables(spec, double.storage)
        for key in ("victim", "root/victim", "root/orders.lance-other/x", "etc/passwd"):
            double.bucket.put(key, Stored.of(b"alive"))
        aged = {
            key: replace(stored, modified=datetime.fromtimestamp(LONG_AGO, UTC))
            for key, stored in double.bucket.objects.items()
        }
        yield double, spec, aged


def check_on_s3(
    double: S3Double, spec: NamespaceSpec, objects: Mapping[str, Stored], place: str, name: str
) -> None:
    content, bucket = PLACES[place](name), double.bucket
    crafted = replace(objects["victim"], content=content, size=len(content))
    bucket.objects = {**objects, f"root/orders.lance/{place.format(name)}": crafted}
    bucket.keys = sorted(bucket.objects)
    seen, own = len(double.requests), ("root/orders.lance/", "root/releases.lance/", "root/__manifest/")
    try_verbs(spec)
    outside = {key: stored for key, stored in objects.items() if not key.startswith(own)}
    assert {key: bucket.objects.get(key) for key in outside} == outside, (place, name)
    requests = [request for request in double.requests[seen:] if not f"{request.key}/".startswith(own)]
    assert not requests, (place, name)


Store = tuple[S3Double, NamespaceSpec, dict[str, Stored]]


def test_no_verb_leaves_a_table_by_the_name_of_an_object(s3: Store) -> None:
    for pair in pairs(step=241):
        check_on_s3(*s3, *pair)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("place", PLACES)
def test_no_verb_leaves_a_table_by_any_name_of_an_object(s3: Store, place: str) -> None:
    for name in FILE_NAMES.values():
        check_on_s3(*s3, place, name)


def newest(folder: Path) -> Path:
    return min(folder.glob("*.manifest"))


def linked_folder(name: str) -> Callable[[Path, Path], None]:
    def link(table: Path, canary: Path) -> None:
        if (table / name).exists():
            (table / name).rename(table / "moved")
        (canary / name).mkdir(parents=True, exist_ok=True)
        (table / name).parent.mkdir(exist_ok=True)
        (table / name).symlink_to(canary / name)

    return link


def linked_file(name: str, target: str) -> Callable[[Path, Path], None]:
    """Return what replaces the first file of a pattern, or creates it, by a link to the canary's."""

    def link(table: Path, canary: Path) -> None:
        path = next(iter(sorted(table.glob(name))), table / name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(next(iter(sorted(canary.glob(target)))))

    return link


def linked_data(table: Path, canary: Path) -> None:
    for file, foreign in zip(sorted((table / "data").iterdir()), (canary / "data").iterdir(), strict=True):
        file.unlink()
        file.symlink_to(foreign)


LINKS: Mapping[str, Callable[[Path, Path], None]] = {
    **{name: linked_folder(name) for name in (*purge.LANCE_ENTRIES, "_lancens/writes", "_lancens/keys")},
    "data/*": linked_data,
    **{
        name: linked_file(name, target)
        for name, target in {
            "data/*.lance": "data/*.lance",
            "data/0/1.blob": "data/*.lance",
            "data/0": "data",
            "_versions/*.manifest": "_versions/*.manifest",
            "_versions/9.manifest": "_versions/*.manifest",
            "_transactions/*.txn": "_transactions/*.txn",
            "_deletions/0-3-1.arrow": "data/*.lance",
            "_refs/tags": "_versions",
            "_refs/tags/consumer.json": "secret.json",
            "_lancens/removals/1": "secret.json",
            f"_lancens/keys/{KEY[:2]}/{KEY}/1-a": "secret.json",
            "_lancens/key-index/1": "secret.json",
        }.items()
    },
}
"""Where another client may put links, each to what would be valid there."""


@pytest.mark.parametrize("place", LINKS)
def test_no_verb_follows_a_link_in_a_table(template: Path, tmp_path: Path, place: str) -> None:
    root = link_in_copy(template, tmp_path, place)
    before = contents(root / "canary.lance")
    results = try_verbs(NamespaceSpec("dir", {"root": str(root)}))
    assert contents(root / "canary.lance") == before
    assert "7712" not in repr(results)


def link_in_copy(template: Path, folder: Path, place: str) -> Path:
    root = folder / "root"
    shutil.copytree(template, root)
    canary = root / "canary.lance"
    (canary / "secret.json").write_text(json.dumps({**TAG, "version": 77123, "versions": [[77123, 77124]]}))
    if place:
        LINKS[place](root / "orders.lance", canary)
    return root


def arrow(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return sink.getvalue().to_pybytes()


TABLE = {"id": ["db", "orders"]}
REQUESTS: Mapping[str, Callable[[Any], object]] = {
    "count": lambda lake: lake.count_table_rows({**TABLE, "predicate": "n > 77000"}),
    "query": lambda lake: lake.query_table({**TABLE, "k": 10, "vector": {}}),
    "tags": lambda lake: lake.list_table_tags(TABLE),
    "versions": lambda lake: lake.list_table_versions(TABLE),
    "tag": lambda lake: lake.create_table_tag({**TABLE, "tag": "mine", "version": 3}),
    "insert": lambda lake: lake.insert_into_table(TABLE, arrow(ROWS)),
    "overwrite": lambda lake: lake.insert_into_table({**TABLE, "mode": "overwrite"}, arrow(ROWS)),
    "create": lambda lake: lake.create_table({**TABLE, "mode": "overwrite"}, arrow(ROWS)),
    "merge": lambda lake: lake.merge_insert_into_table(
        {**TABLE, "on": ["n"], "when_not_matched_insert_all": True}, arrow(ROWS)
    ),
    "update": lambda lake: lake.update_table({**TABLE, "updates": [["n", "5"]]}),
    "delete": lambda lake: lake.delete_from_table({**TABLE, "predicate": "n = 1"}),
    "branch": lambda lake: lake.create_table_branch({**TABLE, "name": "b"}),
    "delete branch": lambda lake: lake.delete_table_branch({**TABLE, "name": "b"}),
    "pin": lambda lake: pin(hook_of(lake), TableId.parse("db$orders"), 3, "pinned"),
    "data only": lambda lake: data_changed(hook_of(lake), TableId.parse("db$orders"), 1, 3),
    "convert": lambda lake: lake.convert_table(TABLE["id"], managed_by="impl"),
    "register": lambda lake: lake.register_table(
        {**TABLE, "location": lake.location, "mode": "overwrite", "properties": {"managed_by": "impl"}}
    ),
    "adopt": lambda lake: lake.adopt_table(TABLE["id"]),
    "drop": lambda lake: lake.drop_table(TABLE),
}
"""What clients ask the package's own namespace, and the hook's own uses of a table."""


def hook_of(lake: Any) -> Any:
    return SimpleNamespace(get_reader=lambda: lake, storage_options=dict, lance_conn_id="lake")


def lake_at(root: Path, managed_by: str) -> Any:
    properties = {"root": str(root)}
    config = StorageConfig.parse(Properties(properties, ["root"]))
    lake: Any = MemoryNamespace(MemoryMetastore(), config, properties)  # type: ignore[arg-type]
    lake.location = str(root / "orders.lance")
    lake.register_table({**TABLE, "location": lake.location, "properties": {"managed_by": managed_by}})
    return lake


def try_requests(lake: Any) -> tuple[list[object], list[str]]:
    """Make each request; return the results, and why the others were refused."""
    results: list[object] = []
    messages = []
    for name, request in REQUESTS.items():
        try:
            results.append(request(lake))
        except (LanceNamespaceError, AirflowException) as error:
            messages.append(f"{name}: {error}")
    assert all(message.isprintable() for message in messages), messages
    return results, messages


@pytest.mark.parametrize("managed_by", ["storage", "impl"])
@pytest.mark.parametrize("place", LINKS)
def test_no_request_follows_a_link_in_a_table(
    template: Path, tmp_path: Path, place: str, managed_by: str
) -> None:
    root = link_in_copy(template, tmp_path, "")
    lake = lake_at(root, managed_by)
    LINKS[place](root / "orders.lance", root / "canary.lance")
    before = contents(root / "canary.lance")
    results, messages = try_requests(lake)
    assert contents(root / "canary.lance") == before
    assert "7712" not in repr(results)
    asked = not place.startswith("_lancens/key")  # only by writes with a key
    assert any("is a symbolic link" in message for message in messages) == asked


def test_these_requests_are_answered_where_only_the_table_itself_is_behind_a_link(
    template: Path, tmp_path: Path
) -> None:
    root = link_in_copy(template, tmp_path, "")
    (root / "elsewhere").mkdir()
    (root / "orders.lance").rename(root / "elsewhere" / "orders.lance")
    (root / "orders.lance").symlink_to(root / "elsewhere" / "orders.lance")
    _, messages = try_requests(lake_at(root, "storage"))
    assert len(messages) == 1
    assert messages[0].startswith("drop: "), messages
