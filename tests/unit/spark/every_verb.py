"""Every verb on one table: what a store, or a neighbor, must not break. No Airflow, no JVM."""

import contextlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import pyarrow as pa
from lance.fragment import write_fragments
from lance_namespace.errors import TableNotFoundError

from airflow_provider_lancens.doctor.checks import check_permissions, check_tables
from airflow_provider_lancens.identifiers import NamespaceId, TableId
from airflow_provider_lancens.namespace.config import Properties, StorageConfig
from airflow_provider_lancens.namespace.metastore_protocol import Namespace
from airflow_provider_lancens.namespace.property_keys import STORAGE_PREFIX
from airflow_provider_lancens.spark import FileSource, LanceCatalog, Table
from airflow_provider_lancens.spark.commit.delete import delete_rows
from airflow_provider_lancens.spark.compute.compute_column import compute_column
from airflow_provider_lancens.spark.keys.key_lookup import find_write
from airflow_provider_lancens.spark.maintenance import CompactionOptions, IndexSpec, Thresholds
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
from airflow_provider_lancens.spark.maintenance.compact import compact_table
from airflow_provider_lancens.spark.maintenance.index import drop_index
from airflow_provider_lancens.spark.maintenance.maintain import maintain_table
from airflow_provider_lancens.spark.maintenance.maintenance_options import MaintenancePlan
from airflow_provider_lancens.spark.maintenance.orphans import remove_orphans
from airflow_provider_lancens.spark.maintenance.restore import check_files, restore_version
from airflow_provider_lancens.spark.publish import discard_version, publish_version, staged_versions
from airflow_provider_lancens.spark.release_sets import find_release_set, move_release_set
from airflow_provider_lancens.spark.schema import add_columns, alter_columns, drop_columns
from airflow_provider_lancens.spark.table.resolved_table import resolved_table
from airflow_provider_lancens.spark.table.version_lookup import find_version
from airflow_provider_lancens.ui.table_details import describe
from airflow_provider_lancens.ui.version_history import list_versions
from tests.histories.local_session import LocalFrame, LocalSession
from tests.servers.s3_bucket import Stored
from tests.servers.s3_double import S3Double
from tests.support.bookmarks import (
    delete_bookmark,
    find_bookmark,
    list_bookmarks,
    move_bookmark,
)
from tests.support.indices import build_index
from tests.support.reads import read_changes, read_table
from tests.support.request_data import stream
from tests.support.writes import write_files, write_table
from tests.unit.spark.commit.memory_lake import MemoryMetastore, MemoryNamespace

NAME, TABLE = "db$t", {"id": ["db", "t"]}
RELEASES = "db$releases"
SPARK: Any = LocalSession()
AGO = datetime(2020, 9, 13, tzinfo=UTC)


class PickledNamespace(MemoryNamespace):
    """One whose copies, in tasks, are itself: its metastore is in this process."""

    def __reduce__(self) -> tuple[Any, ...]:
        _NAMESPACES[id(self)] = self
        return _same, (id(self),)


_NAMESPACES: dict[int, PickledNamespace] = {}


def _same(number: int) -> PickledNamespace:
    return _NAMESPACES[number]


@dataclass
class Lake:
    """A table of several versions in a local folder, with whatever a table may have."""

    root: str
    managed_by: str
    storage: Mapping[str, str] = field(default_factory=dict)
    key: str = "new"
    """Idempotency key of the writes."""
    metastore: MemoryMetastore = field(default_factory=MemoryMetastore)
    created: datetime = AGO

    def __post_init__(self) -> None:
        storage = {f"{STORAGE_PREFIX}{name}": value for name, value in self.storage.items()}
        properties = {"root": self.root, "managed_by": self.managed_by, **storage}
        config = StorageConfig.parse(Properties(properties, ["root", "managed_by"]))
        self.namespace: Any = PickledNamespace(self.metastore, config, properties)  # type: ignore[arg-type]
        self.metastore.deletable_folders = lambda database: [f"{self.root}/{database.name}.db"]  # type: ignore[method-assign]
        self.metastore.create_namespace(Namespace(NamespaceId.of(["db"]), f"{self.root}/db.db"))

    @property
    def hook(self) -> Any:
        """What the doctor and the page need of a hook."""
        return SimpleNamespace(
            get_conn=lambda: self.namespace,
            get_reader=self.namespace.for_reading,
            storage_options=lambda: dict(self.storage),
            conn_type="memory",
            lance_conn_id="lake",
            asset_authority="lake",
        )

    @property
    def location(self) -> str:
        return str(self.namespace.describe_table(TABLE).location)

    def put(self, path: str, rows: pa.Table) -> str:
        """Store rows as a Parquet file outside of all tables."""
        import pyarrow.parquet as pq

        sink = pa.BufferOutputStream()
        pq.write_table(rows, sink)
        self.store(path, sink.getvalue().to_pybytes())
        return f"{self.root}/{path}"

    def store(self, path: str, content: bytes) -> None:
        """Store a file below the root."""
        file = Path(self.root, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    def age(self) -> None:
        """Let all files be made long ago."""
        for file in Path(self.root).rglob("*"):
            os.utime(file, (AGO.timestamp(), AGO.timestamp()))

    def staged(self) -> list[int]:
        with resolved_table(self.namespace, NAME) as target:
            return [one.version for one in staged_versions(target)]

    def contents(self, table: str = NAME) -> tuple[Any, ...] | None:
        """The columns and rows that a reader by name sees, as in any lake; None if there is no table."""
        try:
            dataset = lance.dataset(
                namespace_client=self.namespace,
                table_id=table.split("$"),
                storage_options=self.storage,
                session=lance.Session(),
            )
        except (TableNotFoundError, ValueError, OSError):
            return None
        rows = dataset.to_table().to_pylist()
        texts = sorted(self._placeless(repr(sorted(row.items()))) for row in rows)
        return tuple(dataset.schema.names), tuple(texts)

    def _placeless(self, text: str) -> str:
        """Return a row's text with locations below this lake's root without what only this lake has."""
        return re.sub(r"/t-[0-9a-f]{12}/", "/t-…/", text.replace(f"'{self.root}/", "'…/"))

    def table(self) -> Table:
        """The table, without Spark."""
        return LanceCatalog(lambda: self.namespace).table(NAME)

    @property
    def version(self) -> int:
        with resolved_table(self.namespace, NAME) as target:
            return target.latest_version() or 0


class S3Lake(Lake):
    """The same on the S3 double."""

    def __init__(self, s3: S3Double, managed_by: str) -> None:
        self.s3 = s3
        super().__init__(f"s3://{s3.bucket_name}", managed_by, s3.storage)

    def store(self, path: str, content: bytes) -> None:
        self.s3.bucket.put(path, Stored.of(content))

    def age(self) -> None:
        objects = self.s3.bucket.objects
        self.s3.bucket.objects = {key: replace(stored, modified=AGO) for key, stored in objects.items()}


def rows(*numbers: int) -> pa.Table:
    return pa.table(
        {"n": pa.array(numbers, pa.int64()), "v": pa.array([n * 10 for n in numbers], pa.int64())}
    )


def frame(*numbers: int) -> Any:
    return LocalFrame(SPARK, [rows(*numbers)])


def create(s3: S3Double, managed_by: str) -> S3Lake:
    """Create the table on the S3 double; see `fill`."""
    lake = S3Lake(s3, managed_by)
    fill(lake)
    return lake


def fill(lake: Lake) -> None:
    """Create the table, with all files made long ago, except the files of a staged version."""
    namespace = lake.namespace
    for table in (NAME, RELEASES):
        namespace.declare_table({"id": table.split("$")})
    write_table(frame(1, 2), namespace, NAME, key="first")
    write_table(frame(3), namespace, NAME, key="second")
    build_index(SPARK, namespace, NAME, "n", "BTREE", name="n_btree")
    write_table(frame(4, 5), namespace, NAME, key="third")
    delete_rows(namespace, NAME, "n = 5")
    move_bookmark(namespace, NAME, "reader", 2)
    move_release_set(namespace, RELEASES, {NAME: 4})
    dataset = lance.dataset(lake.location, storage_options=dict(lake.storage))
    write_fragments(rows(99), dataset, mode="append", storage_options=dict(lake.storage))
    lake.put("in/a.parquet", rows(7))
    lance.write_dataset(rows(8), f"{lake.root}/other.lance", storage_options=dict(lake.storage))
    lake.age()
    write_table(frame(6), namespace, NAME, key="staged", stage=True)
    lake.created = datetime.now(UTC)


Verb = Callable[[Lake], object]


def of_table(verb: Callable[..., object], *arguments: Any, **named: Any) -> Verb:
    return lambda lake: verb(lake.namespace, NAME, *arguments, **named)


def keyed(verb: Callable[..., object], *arguments: Any, **named: Any) -> Verb:
    return lambda lake: verb(lake.namespace, NAME, *arguments, key=lake.key, **named)


def on_spark(verb: Callable[..., object], *arguments: Any, **named: Any) -> Verb:
    return lambda lake: verb(SPARK, lake.namespace, NAME, *arguments, **named)


def write(*numbers: int, **named: Any) -> Verb:
    return lambda lake: write_table(frame(*numbers), lake.namespace, NAME, key=lake.key, **named)


def request(name: str, /, *data: pa.Table, **named: Any) -> Verb:
    return lambda lake: getattr(lake.namespace, name)({**TABLE, **named}, *map(stream, data))


def collected(read: Callable[..., Any], **named: Any) -> Verb:
    return lambda lake: read(SPARK, lake.namespace, NAME, **named).collect()


def each_staged(verb: Callable[..., object]) -> Verb:
    return lambda lake: [verb(lake.namespace, NAME, version) for version in lake.staged()]


def poll(lake: Lake) -> object:
    """Read the newest version as a sensor does."""
    (status,) = lake.namespace.poll_tables([TableId.parse(NAME)]).values()
    if isinstance(status, Exception):
        raise status
    return lake.namespace.read_storage_version(status) if status.needs_listing else status


def doctor(lake: Lake) -> object:
    permissions = check_permissions(lake.hook) if lake.storage else ()
    return [*permissions, *check_tables(lake.hook, NAME)]


def cascade(lake: Lake) -> object:
    return lake.namespace.drop_namespace({"id": ["db"], "behavior": "Cascade"})


def converted(lake: Lake) -> object:
    other = "storage" if lake.managed_by == "impl" else "impl"
    return lake.namespace.convert_table(TABLE["id"], managed_by=other)


def again(lake: Lake) -> object:
    """Register the table anew, as one whose versions the metastore decides."""
    properties = {"managed_by": "impl"}
    return lake.namespace.register_table(
        {**TABLE, "location": lake.location, "mode": "overwrite", "properties": properties}
    )


def plan() -> MaintenancePlan:
    return MaintenancePlan(
        compaction=CompactionOptions(),
        indices=(IndexSpec("v", "BTREE", "v_btree"),),
        older_than=timedelta(0),
        keys_older_than=timedelta(days=1),
        orphans_older_than=timedelta(minutes=20),
        thresholds=Thresholds(),
    )


def twice(batch: pa.RecordBatch) -> pa.Array:
    import pyarrow.compute as pc

    return pc.multiply(batch.column(0), 2)


READS: Mapping[str, Verb] = {
    "describe": request("describe_table"),
    "exists": request("table_exists"),
    "list tables": lambda lake: lake.namespace.list_tables({"id": ["db"]}),
    "list tables with data": lambda lake: lake.namespace.list_tables(
        {"id": ["db"], "include_declared": False}
    ),
    "count": request("count_table_rows"),
    "versions": request("list_table_versions"),
    "tags": request("list_table_tags"),
    "branches": request("list_table_branches"),
    "version of a tag": request("get_table_tag_version", tag="reader"),
    "indices": request("list_table_indices"),
    "index statistics": request("describe_table_index_stats", index_name="n_btree"),
    "query": request("query_table", k=9, filter="n = 1", vector={}),
    "explain": request("explain_table_query_plan", query={"k": 9, "filter": "n = 1", "vector": {}}),
    "rows as Arrow": lambda lake: lake.table().to_arrow(filter="n = 1"),
    "history": lambda lake: lake.table().history(),
    "table statistics": lambda lake: lake.table().stats(),
    "statistics": request("get_table_stats"),
    "read": collected(read_table),
    "read an older version": collected(read_table, version=2),
    "read a tag": lambda lake: read_table(SPARK, lake.namespace, NAME, version="reader").collect(),
    "read at a time": lambda lake: read_table(SPARK, lake.namespace, NAME, version=lake.created).collect(),
    "read changes": collected(read_changes, after_version=3, version=4),
    "find version": of_table(find_version, "reader"),
    "find bookmark": of_table(find_bookmark, "reader"),
    "list bookmarks": of_table(list_bookmarks),
    "find write": of_table(find_write, "second"),
    "find release set": lambda lake: find_release_set(lake.namespace, RELEASES),
    "check files": of_table(check_files),
    "compare": lambda lake: lake.namespace.compare_table(TABLE["id"]),
    "poll": poll,
    "page: table": lambda lake: describe(lake.hook, NAME),
    "page: versions": lambda lake: list_versions(lake.hook, NAME, None, 10),
    "clean-up, dry": of_table(clean_up_versions, older_than=timedelta(0), dry_run=True),
    "orphans, dry": of_table(remove_orphans, older_than=timedelta(minutes=20), dry_run=True),
    "doctor": doctor,
}
"""They change nothing; the doctor only beside the table."""

WRITES: Mapping[str, Verb] = {
    "declare": lambda lake: lake.namespace.declare_table({"id": ["db", "new"]}),
    "declare at a location": lambda lake: lake.namespace.declare_table(
        {"id": ["db", "new"], "location": f"{lake.root}/new.lance"}
    ),
    "register": lambda lake: lake.namespace.register_table(
        {"id": ["db", "new"], "location": f"{lake.root}/other.lance"}
    ),
    "register again": again,
    "first write": lambda lake: (
        lake.namespace.declare_table({"id": ["db", "new"]})
        if TableId.parse("db$new") not in lake.metastore.tables
        else None,
        write_table(frame(1), lake.namespace, "db$new", key=lake.key),
    ),
    "create": lambda lake: lake.namespace.create_table(
        {"id": ["db", "new"], "mode": "EXIST_OK"}, stream(rows(1))
    ),
    "append": write(10, 11),
    "append Arrow rows": lambda lake: lake.table().append(rows(10, 11), key=lake.key),
    "upsert Arrow rows": lambda lake: lake.table().upsert(rows(1, 10), on=["n"], key=lake.key),
    "append a file": lambda lake: write_files(
        SPARK,
        FileSource("parquet", [f"{lake.root}/in/a.parquet"]),
        lake.namespace,
        NAME,
        key=lake.key,
    ),
    "overwrite": write(10, mode="overwrite"),
    "replace where": write(3, 3, mode="overwrite", where="n = 3"),
    "upsert": write(1, 10, mode="upsert", on=["n"]),
    "delete rows": keyed(delete_rows, "n = 1"),
    "stage": write(10, stage=True),
    "publish": each_staged(publish_version),
    "discard": each_staged(discard_version),
    "restore": keyed(restore_version, 2),
    "restore by request": request("restore_table", version=2),
    "move bookmark": of_table(move_bookmark, "reader", 4),
    "delete bookmark": of_table(delete_bookmark, "reader"),
    "move tag": request("update_table_tag", tag="reader", version=3),
    "delete tag": request("delete_table_tag", tag="reader"),
    "move release set": lambda lake: move_release_set(
        lake.namespace, RELEASES, {NAME: 5}, keep_releases=1, key=lake.key
    ),
    "tag": request("create_table_tag", tag="mine", version=3),
    "branch": request("create_table_branch", name="b"),
    "insert": request("insert_into_table", rows(12)),
    "merge": request("merge_insert_into_table", rows(1, 12), on=["n"], when_not_matched_insert_all=True),
    "update": request("update_table", updates=[["v", "5"]]),
    "delete": request("delete_from_table", predicate="n = 1"),
    "add columns": of_table(add_columns, {"c": "string"}),
    "alter columns": of_table(alter_columns, rename={"v": "w"}),
    "drop columns": of_table(drop_columns, ["v"]),
    "add columns by request": request(
        "alter_table_add_columns", new_columns=[{"name": "c", "expression": "n + 1"}]
    ),
    "set metadata": request("update_table_schema_metadata", metadata={"owner": "me"}),
    # Without a condition, whose count holds the interpreter, in which the double is too.
    "compute column": on_spark(compute_column, "w", twice, ["v"], dtype="bigint", where="TRUE"),
    "compact": on_spark(compact_table),
    "index": on_spark(build_index, "v", "BTREE", name="v_btree"),
    "index by request": request("create_table_scalar_index", column="v", index_type="BTREE", name="v_btree"),
    "drop index": of_table(drop_index, "n_btree"),
    "extend index": on_spark(build_index, "n", "BTREE", name="n_btree", if_exists="extend"),
    "clean-up": of_table(clean_up_versions, older_than=timedelta(0), keys_older_than=timedelta(days=1)),
    "orphans": of_table(remove_orphans, older_than=timedelta(minutes=20)),
    "maintain": on_spark(maintain_table, plan()),
    "adopt": lambda lake: lake.managed_by == "impl" and lake.namespace.adopt_table(TABLE["id"]),
    "convert": converted,
    "describe columns": lambda lake: lake.namespace.update_catalog_columns(TABLE["id"]),
    "deregister": request("deregister_table"),
    "drop": request("drop_table"),
    "cascade": cascade,
}
VERBS = {**READS, **WRITES}


@contextlib.contextmanager
def healthy(s3: S3Double) -> Any:
    """Let the store lack nothing for a while."""
    kept = s3.fault, s3.may_delete, s3.checks_conditions
    s3.fault, s3.may_delete, s3.checks_conditions = (lambda request: None), True, True
    try:
        yield
    finally:
        s3.fault, s3.may_delete, s3.checks_conditions = kept
