"""The checks of a connection: the machine, the metastore, the storage, tables, and deferred waits."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from lance_namespace import (
    CreateNamespaceRequest,
    DeclareTableRequest,
    DeregisterTableRequest,
    DescribeTableRequest,
    DropNamespaceRequest,
    DropTableRequest,
    ListNamespacesRequest,
    ListTablesRequest,
)
from lance_namespace.errors import (
    InvalidInputError,
    LanceNamespaceError,
    NamespaceNotFoundError,
    UnsupportedOperationError,
)

from airflow_provider_lancens.doctor.asset_check import check_names
from airflow_provider_lancens.doctor.findings import Finding, run
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.locations import Location, is_local
from airflow_provider_lancens.namespace.paging import all_names
from airflow_provider_lancens.namespace.storage.conditional_writes import has_conditional_writes
from airflow_provider_lancens.namespace.storage.object_store import is_directory_bucket
from airflow_provider_lancens.namespace.storage.table_files import TableFiles
from airflow_provider_lancens.namespace.table_status import MISSING_SECONDS, TableStatus
from airflow_provider_lancens.redaction import redact

if TYPE_CHECKING:
    from airflow_provider_lancens.hooks.lance_hook import LanceHook
    from airflow_provider_lancens.namespace.metastore_namespace import MetastoreNamespace
    from airflow_provider_lancens.spark.maintenance.table_state import TableState


_SHOWN = ("apache-airflow", "airflow-provider-lancens", "pylance", "pyarrow", "pyspark", "pandas")
_OLDEST_PYSPARK = (3, 5, 2)
_NEWEST_PANDAS = 2
"""PySpark doesn't fully support later major versions."""
_JAVA = 17


def check_packages() -> Iterator[Finding]:
    """Check the installed versions, as far as they matter for ingestion."""
    versions = {name: _version_of(name) for name in (*_SHOWN, "pyspark-client")}
    yield Finding(
        "ok", "packages", ", ".join(f"{name} {versions[name]}" for name in _SHOWN if versions[name])
    )
    pyspark, pandas = versions["pyspark"], versions["pandas"]
    if pyspark is None:
        yield Finding(
            "warning",
            "PySpark",
            "it is not installed, so tasks on this machine cannot ingest or maintain tables",
            "Install the extra where such tasks run: pip install 'airflow-provider-lancens[spark]'.",
        )
        return
    if versions["pyspark-client"]:
        yield Finding(
            "problem",
            "PySpark",
            f"pyspark {pyspark} and pyspark-client {versions['pyspark-client']} overwrite each other's files",
            "Uninstall both, and install pyspark again.",
        )
    if _parts(pyspark) < _OLDEST_PYSPARK:
        yield Finding("problem", "PySpark", f"{pyspark} is not supported", "Install pyspark 3.5.2 or newer.")
    if pandas is None:
        yield Finding("problem", "pandas", "is not installed", "Install the extra spark, which contains it.")
    elif _parts(pandas)[0] > _NEWEST_PANDAS:
        text = f"{pandas} is not fully supported by PySpark, which matters only to functions that use pandas"
        yield Finding("warning", "pandas", text, "Install 'pandas<3' if yours do.")


def check_java() -> Iterator[Finding]:
    """Check that Spark can be started on this machine."""
    from airflow_provider_lancens.embedded.exceptions import JavaUnsuitableError
    from airflow_provider_lancens.embedded.java import JavaVersions, find_java

    if _version_of("pyspark") is None:
        return
    try:
        yield Finding("ok", "Java", str(find_java(JavaVersions(_JAVA))))
    except JavaUnsuitableError as error:
        yield Finding("warning", "Java", f"Spark cannot be started here: {error}")


def check_triggerer() -> Iterator[Finding]:
    """Check that deferred sensors and watched tables are served."""
    from airflow.jobs.job import most_recent_job
    from airflow.utils.session import create_session
    from sqlalchemy.exc import SQLAlchemyError

    try:
        with create_session() as session:
            job = most_recent_job("TriggererJob", session=session)
            alive = job is not None and job.is_alive()
    except SQLAlchemyError as error:
        text = f"Airflow's database cannot be read here ({type(error).__name__}), so its state is unknown"
        yield Finding("warning", "triggerer", text, "Run this command where the scheduler runs.")
        return
    if alive:
        yield Finding("ok", "triggerer", "it is running")
    else:
        state = "has never run" if job is None else "sends no heartbeat"
        yield Finding(
            "problem",
            "triggerer",
            f"it {state}, so deferred sensors never resume, and watched tables are not polled",
            "Start `airflow triggerer`, or set deferrable=False on sensors.",
        )


def _version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _parts(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2] if part.isdecimal())


_SLOW_SECONDS = 1.0
_CATALOGS = "lance_hive3"
"""The connection type whose topmost namespaces are catalogs."""


def check_server(hook: LanceHook) -> Iterator[Finding]:
    """Check that the server answers, and how fast."""
    namespace = hook.get_conn()
    namespace.server_info()  # connects, so that the next call measures the server alone
    started = time.monotonic()
    server = namespace.server_info()
    seconds = time.monotonic() - started
    level, advice = ("ok", "") if seconds < _SLOW_SECONDS else ("warning", "Polls of sensors are as slow.")
    text = f"{hook.description}: {server.summary}; answers in {seconds * 1000:.0f} ms"
    yield Finding(level, "metastore", text, advice)  # type: ignore[arg-type]


def check_permissions(hook: LanceHook) -> Iterator[Finding]:
    """Create a namespace and a table, write beside the table, and remove all of it again."""
    namespace = hook.get_conn()
    with _scratch_namespace(hook, namespace) as scratch:
        if scratch:
            yield Finding(
                "ok", "permissions", f"may create and drop namespaces (tried with {'$'.join(scratch)})"
            )
        # A catalog without namespaces gets a table with a unique name instead.
        yield from _check_table(namespace, [*scratch, "orders"] if scratch else [_scratch_name()])


def _check_table(namespace: MetastoreNamespace, table: list[str]) -> Iterator[Finding]:
    namespace.declare_table(DeclareTableRequest(id=table))
    try:
        yield Finding("ok", "permissions", "may declare, change and drop tables")
        yield _compare_and_set(namespace, table)
        described = namespace.describe_table(DescribeTableRequest(id=table))
        yield from check_storage(str(described.location), dict(described.storage_options or {}))
    finally:
        try:
            namespace.drop_table(DropTableRequest(id=table))
        except LanceNamespaceError:
            # The storage may deny what a drop needs, such as listings: remove the entry at least.
            namespace.deregister_table(DeregisterTableRequest(id=table))
            raise


def _compare_and_set(namespace: MetastoreNamespace, table: list[str]) -> Finding:
    try:
        namespace.convert_table(table, managed_by="impl")
    except UnsupportedOperationError as error:
        return Finding(
            "ok", "compare-and-set", f"not supported, so the storage decides versions of tables ({error})"
        )
    return Finding("ok", "compare-and-set", "supported: tables can have managed_by=impl")


@contextmanager
def _scratch_namespace(hook: LanceHook, namespace: MetastoreNamespace) -> Iterator[list[str]]:
    parents: list[str] = []
    if hook.conn_type == _CATALOGS:
        catalogs = namespace.list_namespaces(ListNamespacesRequest(id=[])).namespaces
        parents = ["hive" if "hive" in catalogs else min(catalogs)]
    scratch = [*parents, _scratch_name()]
    try:
        namespace.create_namespace(CreateNamespaceRequest(id=scratch))
    except UnsupportedOperationError:  # the catalog has no namespaces
        yield []
        return
    try:
        yield scratch
    finally:
        try:
            namespace.drop_namespace(DropNamespaceRequest(id=scratch))
        except LanceNamespaceError as error:
            raise type(error)(f"{'$'.join(scratch)} is left over, drop it: {error}") from error


def _scratch_name() -> str:
    return f"lancens_doctor_{uuid.uuid4().hex[:8]}"


_FOLDER = "_lancens"
_STORAGE, _CLOCK = "storage", "clock"
_SKEW_SECONDS = 60
_LISTED = 8
"""Files whose order in a listing is checked; a random order is sorted once in 40,000 times."""


def check_storage(location: str, storage_options: Mapping[str, str]) -> Iterator[Finding]:
    """Try on files that are removed what Lance and this package need of a storage.

    Args:
        location: a table's root, which is left as it was.
        storage_options: Lance's storage options for it.
    """
    location = Location.of(location)
    if is_local(location):
        Path(location).mkdir(parents=True, exist_ok=True)
    trial = _Trial(TableFiles(location, storage_options))
    yield from trial.findings()


@dataclass(slots=True)
class _Trial:
    """What is tried at one location; a trial that fails is a finding, and the next one is made."""

    files: TableFiles
    folder: str = field(default_factory=lambda: f"{_FOLDER}/doctor-{uuid.uuid4().hex}")
    written: list[str] = field(default_factory=list)

    def findings(self) -> Iterator[Finding]:
        writes = list(run(_STORAGE, self._writes))
        yield from writes
        if writes[-1].level == "problem":
            return
        checks: tuple[Callable[[], Iterable[Finding]], ...] = (self._creates, self._reads, self._lists)
        for check in checks:
            yield from run(_STORAGE, check)
        yield from run(_CLOCK, self._clock)
        yield from run(_STORAGE, self._deletes)

    def _path(self, name: object) -> str:
        return f"{self.folder}/{name}"

    def _writes(self) -> Iterator[Finding]:
        started = time.monotonic()
        for number in reversed(range(_LISTED)):
            self.files.put(self._path(number), b"0123456789")
            self.written.append(self._path(number))
        milliseconds = (time.monotonic() - started) * 1000 / _LISTED
        where = redact(self.files.location)
        yield Finding("ok", _STORAGE, f"may write at {where}; a write takes {milliseconds:.0f} ms")

    def _creates(self) -> Iterator[Finding]:
        if has_conditional_writes(self.files, self._path("created")):
            self.written.append(self._path("created"))
            yield Finding("ok", _STORAGE, "refuses to overwrite a file that exists, as commits require")
            return
        yield Finding(
            "problem",
            _STORAGE,
            "does not support conditional writes: it overwrites an existing file. Two commits of one version "
            "could both succeed, and one of them be lost: commits are refused where the storage decides",
            "Use a store with conditional writes (If-None-Match), or tables with managed_by=impl.",
        )

    def _reads(self) -> Iterator[Finding]:
        if self.files.read_range(self._path(0), 3, 6) == b"345":
            yield Finding("ok", _STORAGE, "reads files, and ranges of them")
        else:
            yield Finding("problem", _STORAGE, "ignores the range of a read, by which Lance reads columns")

    def _lists(self) -> Iterator[Finding]:
        names = self.files.names_as_listed(self.folder)
        missing = {str(number) for number in range(_LISTED)}.difference(names)
        if missing:
            yield Finding("problem", _STORAGE, "a file that was written is not listed, or not yet")
        elif is_local(self.files.location) or names == sorted(names):
            yield Finding("ok", _STORAGE, "lists files")
        elif is_directory_bucket(self.files.location):
            yield Finding("ok", _STORAGE, "lists files in no order, as S3's directory buckets do")
        else:
            yield Finding(
                "problem",
                _STORAGE,
                "lists files in no order, so that Lance takes an older version for the newest",
                "Use a store that lists by name.",
            )

    def _clock(self) -> Iterator[Finding]:
        now = datetime.now(UTC)
        self.files.put(self._path(0), b"")
        file = self.files.stat(self._path(0))
        skew = abs((file.modified - now).total_seconds()) if file else 0
        if skew < _SKEW_SECONDS:
            yield Finding("ok", _CLOCK, "this machine and the storage agree on the time")
            return
        yield Finding(
            "warning",
            _CLOCK,
            f"this machine and the storage differ by {skew:.0f} s, so clean-ups misjudge the age of files",
            "Synchronize this machine's clock.",
        )

    def _deletes(self) -> Iterator[Finding]:
        first, *others = self.written
        self.files.remove(first)
        self.files.remove(*others)
        if left := self.files.names_as_listed(self.folder):
            yield Finding("problem", _STORAGE, f"{len(left)} files that were deleted are still listed")
        elif self.files.supports_bulk_deletes:
            yield Finding("ok", _STORAGE, "deletes files")
        else:
            yield Finding(
                "warning",
                _STORAGE,
                "refuses bulk deletes, so files are deleted one by one",
                "Set storage.aws_disable_bulk_delete=true, which Lance needs where it deletes by itself.",
            )


REPAIRS = {
    "storage_ahead": "Run LanceCheckTableOperator with if_inconsistent='adopt'.",
    "metastore_reverted": "Run LanceCheckTableOperator with if_inconsistent='adopt'.",
    "metastore_ahead": "Restore the missing manifest, or adopt the storage's version.",
    "diverged": "Decide which commit to keep; see the page on managed tables.",
    "no_version": "Run LanceCheckTableOperator with if_inconsistent='adopt'.",
    "files_missing": "Restore a version whose files are complete.",
}
_REBUILD = (
    "Rebuild it, with LanceMaintainOperator, or LanceCreateIndexOperator with "
    'if_exists="extend" or "replace".'
)
_DROP = (
    "Drop it, by Table.drop_index, or build it on a column that exists, with LanceMaintainOperator, or "
    'LanceCreateIndexOperator with if_exists="replace".'
)
_DAY = timedelta(days=1)


def check_tables(hook: LanceHook, name: str) -> Iterator[Finding]:
    """Check the table of this identifier, or all tables of the namespace of this identifier."""
    tables = _tables_of(hook, name)
    if not tables:
        yield Finding(
            "warning",
            name,
            "there is no such table, and no table in a namespace of this name",
            "Correct the name, unless it names an empty namespace.",
        )
    for table in tables:
        yield from run(f"table {table}", partial(check_table, hook, table))


def check_table(hook: LanceHook, table: TableId) -> Iterator[Finding]:
    """Check one table, without changing it."""
    from airflow_provider_lancens.spark.maintenance.table_state import table_state

    subject, namespace = f"table {table}", hook.get_reader()
    compared = namespace.compare_table(table.parts)
    if compared.verdict == "consistent":
        yield Finding("ok", subject, compared.explanation)
    else:
        advice = _REBUILD if compared.lacks_indices_alone else REPAIRS.get(compared.verdict, "")
        yield Finding("problem", subject, compared.explanation, advice)
    if not compared.storage_version:
        return
    with table_state(namespace, table) as state:
        yield from check_state(subject, state)
    yield from check_names(hook, table)


def check_state(subject: str, state: TableState) -> Iterator[Finding]:
    """Check a table's newest version on the storage: fragments, indices, versions, leases."""
    yield from _check_freshness(subject, state)
    yield from _check_fragments(subject, state)
    yield from _check_indices(subject, state)
    yield from _check_versions(subject, state)
    yield from _check_leases(subject, state)


def _tables_of(hook: LanceHook, name: str) -> list[TableId]:
    written = TableId.written(name)
    try:
        names = list(_names_in(hook, written))
    except (NamespaceNotFoundError, InvalidInputError):  # the name is a table's
        return [written]
    if not names and _exists(hook, written):  # some catalogs list a missing namespace as empty
        return [written]
    return [TableId.of((*written.parts, table)) for table in sorted(names)]


def _names_in(hook: LanceHook, namespace: TableId) -> Iterator[str]:
    def page(token: str | None) -> tuple[Iterable[str], str | None]:
        request = ListTablesRequest(id=list(namespace.parts), page_token=token)
        found = hook.get_reader().list_tables(request)
        return found.tables, found.page_token

    return all_names(page)


def _exists(hook: LanceHook, table: TableId) -> bool:
    status = hook.poll_tables([table])[table]
    return isinstance(status, TableStatus) and status.location is not None


def _check_freshness(subject: str, state: TableState) -> Iterator[Finding]:
    from airflow_provider_lancens.spark.freshness import expected_age, freshness

    try:
        expected = expected_age(state.target.expected_update)
    except InvalidInputError as error:
        yield Finding("warning", subject, str(error), "Correct the property, or remove it.")
        return
    if expected is None:
        return
    found = freshness(state.target.id, state.dataset, expected)
    advice = "Look at the runs of the task that writes it, or correct the property." if found.is_late else ""
    yield Finding("warning" if found.is_late else "ok", subject, found.reason, advice)


def _check_fragments(subject: str, state: TableState) -> Iterator[Finding]:
    from airflow_provider_lancens.spark.maintenance import CompactionOptions
    from airflow_provider_lancens.spark.maintenance.maintenance_options import DEFAULT_THRESHOLDS

    decision = state.fragmentation(CompactionOptions()).decide(DEFAULT_THRESHOLDS)
    advice = "Compact it, with LanceMaintainOperator." if decision.is_due else ""
    yield Finding("warning" if decision.is_due else "ok", subject, decision.reason, advice)


def _check_indices(subject: str, state: TableState) -> Iterator[Finding]:
    from airflow_provider_lancens.spark.maintenance.maintenance_options import DEFAULT_MAX_DELETED_SHARE
    from airflow_provider_lancens.spark.maintenance.table_state import has_old_values
    from airflow_provider_lancens.spark.table.index_coverage import deleted_share, lacks_column, misses_rows

    for index in state.dataset.describe_indices():
        if lacks_column(state.dataset, index):
            yield Finding(
                "problem",
                subject,
                f"the column of index {index.name!r} no longer exists, so reads with a filter fail",
                _DROP,
            )
            continue
        named = f"index {index.name!r} on {', '.join(index.field_names)}"
        if state.segments.incomplete(state.dataset, index):
            yield Finding(
                "problem",
                subject,
                f"files of {named} are lost, so reads and writes that use it fail",
                _REBUILD,
            )
            continue
        if misses_rows(state.dataset, index.segments):
            yield Finding(
                "problem",
                subject,
                f"queries by {named} don't find all rows: it "
                "claims to cover rows that were written after it was built",
                _REBUILD,
            )
        if has_old_values(state.dataset, index):
            yield Finding(
                "problem",
                subject,
                f"queries by {named} may find rows by values "
                "that they had before: another client has extended it after an update",
                _REBUILD,
            )
        share = deleted_share(state.dataset, index)
        if share > DEFAULT_MAX_DELETED_SHARE:
            yield Finding(
                "warning",
                subject,
                f"{share:.1%} of the rows in {named} are "
                "deleted: queries for the nearest rows can return fewer than they ask for",
                "Rebuild it, with LanceMaintainOperator, or LanceCreateIndexOperator with "
                'if_exists="replace".',
            )


def _check_versions(subject: str, state: TableState) -> Iterator[Finding]:
    from airflow_provider_lancens.spark.maintenance.maintenance_options import DEFAULT_AGE, DEFAULT_THRESHOLDS

    decision = state.old_versions(DEFAULT_AGE, 1).decide(DEFAULT_THRESHOLDS)
    advice = "Clean up its versions, with LanceMaintainOperator." if decision.is_due else ""
    yield Finding("warning" if decision.is_due else "ok", subject, decision.reason, advice)


def _check_leases(subject: str, state: TableState) -> Iterator[Finding]:
    from airflow_provider_lancens.namespace.storage.write_leases import leases_of

    limit = datetime.now(UTC) - _DAY
    dead = [lease for lease in leases_of(state.target.dataset.manifests) if lease.refreshed < limit]
    if dead:
        yield Finding(
            "warning",
            subject,
            f"{len(dead)} writes have sent no heartbeat for a day, and left files",
            "Run LanceRemoveOrphansOperator, or LanceMaintainOperator with orphans_older_than.",
        )


def check_waits(hook: LanceHook) -> Iterator[Finding]:
    """Check that the tables exist that tasks have been waiting for."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        waiting = _waited_for(hook.lance_conn_id)
    except SQLAlchemyError:
        return  # already reported by the check of the triggerer
    yield from missing_tables(hook, waiting)


def missing_tables(hook: LanceHook, waiting: Mapping[TableId, str]) -> Iterator[Finding]:
    """Yield the tables that tasks wait for and that don't exist.

    Args:
        hook: the connection's hook.
        waiting: a task that waits, by table.
    """
    for table, status in hook.poll_tables(list(waiting)).items():
        if isinstance(status, TableStatus) and status.location is None:
            yield Finding(
                "warning",
                f"table {table}",
                f"it does not exist, and {waiting[table]} has been waiting for it",
                "Correct the name in the sensor, or declare the table.",
            )


def _waited_for(conn_id: str) -> dict[TableId, str]:
    """Return the tables that tasks have waited for since some minutes, with one task each."""
    from airflow.utils.session import create_session

    from airflow_provider_lancens.doctor.waiting_tasks import waiting_tasks

    latest = datetime.now(UTC) - timedelta(seconds=MISSING_SECONDS)
    with create_session() as session:
        return {
            wait.table: f"task {wait.task_id!r} of {wait.dag_id!r} in run {wait.run_id!r}"
            for wait in waiting_tasks(session, [conn_id])
            if wait.since is not None and wait.since < latest
        }
