"""Every verb on a table in whose folder another client wrote: nothing outside is read, written or deleted.

A table of places where such files may be, by kinds of names, by verbs. Each file is valid where its name is.
Then the same verbs with symbolic links to the files of another table. Everyday tests have some of the verbs.
"""

import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import LanceNamespaceError

from airflow_provider_lancens.hooks.airflow_errors import AirflowException
from airflow_provider_lancens.hooks.table_checks import data_changed, pin
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable
from airflow_provider_lancens.namespace.storage import purge
from airflow_provider_lancens.namespace.storage.missing_files import StoredVersions
from airflow_provider_lancens.spark.keys import key_records
from airflow_provider_lancens.spark.keys.key_lookup import confirm_write
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable, resolved_table
from tests.hostile_names import FILE_NAMES
from tests.servers.s3_bucket import Stored
from tests.servers.s3_double import S3Double
from tests.unit.spark import every_verb
from tests.unit.spark.every_verb import NAME, RELEASES, Lake, S3Lake, Verb, fill, of_table, request, rows

CANARY = pa.table({"n": [771237712, 771247712], "v": [771237712, 771247712]})
"""The rows of somebody else's table."""
KEY = key_records.digest("append")
"""Of the verb with this name: each verb writes under its own name as the idempotency key."""
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


def of_target(verb: Callable[[ResolvedTable], object]) -> Verb:
    def call(lake: Lake) -> object:
        with resolved_table(lake.namespace, NAME) as target:
            return verb(target)

    return call


LAST = ("drop", "deregister", "cascade")
VERBS: Mapping[str, Verb] = {
    "missing files": of_target(
        lambda target: StoredVersions(
            target.dataset.location, target.dataset.storage_options
        ).newest_complete(9)
    ),
    "query": request("query_table", k=10, vector={}),
    "data only": lambda lake: data_changed(lake.hook, TableId.parse(NAME), 1, 3),
    **{name: verb for name, verb in every_verb.VERBS.items() if name not in LAST},
    "confirm write": of_table(confirm_write, "append"),
    "pin": lambda lake: pin(lake.hook, TableId.parse(NAME), 3, "pinned"),
    "delete branch": request("delete_table_branch", name="b"),
    "insert in place of all": request("insert_into_table", rows(12), mode="overwrite"),
    "create again": request("create_table", rows(12), mode="overwrite"),
    **{name: every_verb.VERBS[name] for name in LAST},
}
"""Reads first, then what writes, then what deletes."""
FEW = {
    *(
        "missing files",
        "query",
        "count",
        "versions",
        "tags",
        "read",
        "read a tag",
        "read changes",
        "page: table",
    ),
    *("find version", "find bookmark", "list bookmarks", "find write", "check files", "append", "upsert"),
    *("publish", "discard", "restore", "move bookmark", "delete bookmark", "move release set", "delete rows"),
    *("orphans, dry", "clean-up, dry", "clean-up", "orphans", "maintain", "adopt", "pin", "drop"),
}
"""Verbs of everyday tests."""


def try_verbs(lake: Lake, *, all_verbs: bool) -> tuple[list[object], list[str]]:
    """Call each verb on the table, and return the results, and why the others were refused.

    Whatever is refused is refused in words: any other error ends the test.
    """
    results: list[object] = []
    messages = []
    for name, verb in VERBS.items():
        if all_verbs or name in FEW:
            lake.key = name
            try:
                results.append(verb(lake))
            except (LanceNamespaceError, AirflowException) as error:
                messages.append(f"{name}: {error}")
    assert all(message.isprintable() for message in messages), messages
    return results, messages


def create_tables(lake: Lake) -> None:
    """Create the table and a table of somebody else, last changed long ago."""
    fill(lake)
    location = f"{lake.root}/canary.lance"
    for mode in ("create", "append", "append"):
        lance.write_dataset(CANARY, location, mode=mode, storage_options=dict(lake.storage))
    lake.store("victim", b"alive")
    lake.age()


@dataclass
class LocalLake:
    """The tables in a folder, and a copy of them as they were."""

    lake: Lake
    root: Path
    copy: Path
    tables: Mapping[TableId, CatalogTable]

    @classmethod
    def create(cls, folder: Path, managed_by: str) -> "LocalLake":
        root, copy = folder / "lake", folder / "copy"
        root.mkdir()
        lake = Lake(str(root), managed_by)
        create_tables(lake)
        shutil.copytree(root, copy)
        return cls(lake, root, copy, dict(lake.metastore.tables))

    def restore(self) -> None:
        shutil.rmtree(self.root)
        shutil.copytree(self.copy, self.root)
        self.lake.metastore.tables = dict(self.tables)

    @property
    def table(self) -> Path:
        return self.folder_of(NAME)

    @property
    def canary(self) -> Path:
        return self.root / "canary.lance"

    def folder_of(self, table: str) -> Path:
        return Path(str(self.tables[TableId.parse(table)].location).removeprefix("file://"))

    def foreign_files(self) -> dict[str, bytes]:
        """All files outside of what the verbs write: the two tables, and new ones."""
        own = (self.table, self.folder_of(RELEASES), self.root / "new.lance", self.root / "other.lance")
        files = (path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink())
        return {
            str(path): path.read_bytes()
            for path in files
            if not any(path.is_relative_to(folder) for folder in own) and "new.lance" not in path.parts
        }


@pytest.fixture(scope="module", params=["storage", "impl"])
def local(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LocalLake:
    """The tables in a folder; the storage, or the metastore decides about versions."""
    return LocalLake.create(tmp_path_factory.mktemp("hostile"), request.param)


def pairs(step: int) -> list[tuple[str, str]]:
    """Every place with every name; with a step, only each so many, so that all places and names occur."""
    return list(itertools.product(PLACES, FILE_NAMES.values()))[::step]


def check_locally(local: LocalLake, place: str, name: str, *, all_verbs: bool) -> bool:
    """Try the verbs on a table with such a file; return whether a file can have that name."""
    local.restore()
    try:
        path = local.table / place.format(name.replace("/", "%2F"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(PLACES[place](name))
        os.utime(path, (LONG_AGO, LONG_AGO))
    except (OSError, ValueError):
        return False
    before = local.foreign_files()
    try_verbs(local.lake, all_verbs=all_verbs)
    assert local.foreign_files() == before, (place, name)
    assert {path.name for path in local.root.parent.iterdir()} == {"lake", "copy"}, (place, name)
    return True


def test_no_verb_leaves_a_table_by_the_name_of_a_local_file(local: LocalLake) -> None:
    tables = [check_locally(local, *pair, all_verbs=False) for pair in pairs(step=95)]
    assert sum(tables) >= 4


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_no_verb_leaves_a_table_by_any_name_of_a_local_file(local: LocalLake) -> None:
    tables = [check_locally(local, *pair, all_verbs=True) for pair in pairs(step=1)]
    assert sum(tables) >= 450  # with each of the verbs


@dataclass
class StoredLake:
    """The tables on the S3 double, and its objects as they were."""

    lake: S3Lake
    objects: Mapping[str, Stored]
    tables: Mapping[TableId, CatalogTable]

    @property
    def own(self) -> tuple[str, ...]:
        """Prefixes of what the verbs read and write."""
        locations = [str(self.tables[TableId.parse(table)].location) for table in (NAME, RELEASES)]
        keys = [location.removeprefix(f"{self.lake.root}/") for location in locations]
        return (*(f"{key}/" for key in keys), "new.lance/", "other.lance/", "in/")

    def is_own(self, key: str) -> bool:
        return f"{key}/".startswith(self.own) or "/new.lance" in key or key.startswith("lancens_doctor_")


@pytest.fixture(scope="module")
def stored() -> Iterator[StoredLake]:
    """The tables on a store; the storage decides about versions."""
    with S3Double() as double:
        lake = S3Lake(double, "storage")
        create_tables(lake)
        for key in ("victim", "root/victim", "etc/passwd"):
            double.bucket.put(key, Stored.of(b"alive"))
        aged = {
            key: replace(stored, modified=datetime.fromtimestamp(LONG_AGO, UTC))
            for key, stored in double.bucket.objects.items()
        }
        yield StoredLake(lake, aged, dict(lake.metastore.tables))


def check_on_s3(stored: StoredLake, place: str, name: str, *, all_verbs: bool) -> None:
    double, objects = stored.lake.s3, stored.objects
    content, bucket = PLACES[place](name), double.bucket
    crafted = replace(objects["victim"], content=content, size=len(content))
    bucket.objects = {**objects, f"{stored.own[0]}{place.format(name)}": crafted}
    bucket.keys = sorted(bucket.objects)
    stored.lake.metastore.tables = dict(stored.tables)
    seen = len(double.requests)
    try_verbs(stored.lake, all_verbs=all_verbs)
    outside = {key: one for key, one in objects.items() if not stored.is_own(key)}
    assert {key: bucket.objects.get(key) for key in outside} == outside, (place, name)
    requests = [request for request in double.requests[seen:] if not stored.is_own(request.key)]
    assert not requests, (place, name, requests[:3])


def test_no_verb_leaves_a_table_by_the_name_of_an_object(stored: StoredLake) -> None:
    for pair in pairs(step=241):
        check_on_s3(stored, *pair, all_verbs=False)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("place", PLACES)
def test_no_verb_leaves_a_table_by_any_name_of_an_object(stored: StoredLake, place: str) -> None:
    for name in FILE_NAMES.values():
        check_on_s3(stored, place, name, all_verbs=True)


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
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.symlink_to(next(iter(sorted(canary.glob(target)))))

    return link


def linked_data(table: Path, canary: Path) -> None:
    for file, foreign in zip(sorted((table / "data").iterdir()), (canary / "data").iterdir(), strict=False):
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


def check_link(local: LocalLake, place: str, *, all_verbs: bool) -> None:
    local.restore()
    secret = {**TAG, "version": 771237712, "versions": [[771237712, 771247712]]}
    (local.canary / "secret.json").write_text(json.dumps(secret))
    LINKS[place](local.table, local.canary)
    before = local.foreign_files()
    results, messages = try_verbs(local.lake, all_verbs=all_verbs)
    assert local.foreign_files() == before
    assert "771237712" not in repr(results)
    assert "771247712" not in repr(results)
    assert any("is a symbolic link" in message for message in messages), messages


@pytest.mark.parametrize("place", LINKS)
def test_no_verb_follows_a_link_in_a_table(local: LocalLake, place: str) -> None:
    check_link(local, place, all_verbs=False)


@pytest.mark.long
@pytest.mark.parametrize("place", LINKS)
def test_no_verb_at_all_follows_a_link_in_a_table(local: LocalLake, place: str) -> None:
    check_link(local, place, all_verbs=True)


def test_the_verbs_work_where_only_the_table_itself_is_behind_a_link(local: LocalLake) -> None:
    local.restore()
    moved = local.table.with_name("elsewhere")
    local.table.rename(moved)
    local.table.symlink_to(moved)
    _, messages = try_verbs(local.lake, all_verbs=False)
    assert [message.partition(":")[0] for message in messages if "link" in message] == ["drop"]
