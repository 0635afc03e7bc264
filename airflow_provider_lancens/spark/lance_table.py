"""A Lance table of a catalog: reads, writes, changes, versions, columns and maintenance of it, as methods.

Each method calls a function of this package. Light to import: code that reads and writes is loaded when it is
called.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Self, TypeAlias, TypeVar, cast

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import FIRST_STAGED, InvalidIdentifierError, TableId, staged_number
from airflow_provider_lancens.namespace.locations import Location, described_location
from airflow_provider_lancens.namespace.update_interval import EXPECTED_UPDATE
from airflow_provider_lancens.spark.argument_checks import check_arguments, check_fields
from airflow_provider_lancens.spark.execution import Begin, PendingWrite
from airflow_provider_lancens.spark.maintenance.maintenance_options import (
    DEFAULT_AGE,
    DEFAULT_ORPHAN_AGE,
    DEFAULT_SEGMENTS,
    IF_INDEX_EXISTS,
)
from airflow_provider_lancens.spark.options import (
    MAX_ROWS,
    VERSION_AUTHORITIES,
    Append,
    Change,
    Overwrite,
    SchemaMode,
    Upsert,
    WhenMatched,
    WriteIdentity,
    WriteRequest,
    check_choice,
    check_positive,
    is_whole_number,
)

if TYPE_CHECKING:
    from types import TracebackType

    import pandas as pd
    import pyarrow as pa
    from lance import LanceDataset
    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_lancens.spark.blobs import BlobRange
    from airflow_provider_lancens.spark.bookmarks import Bookmark, UnreadVersions
    from airflow_provider_lancens.spark.changes.read_changes import IfUnavailable
    from airflow_provider_lancens.spark.lance_catalog import LanceCatalog
    from airflow_provider_lancens.spark.maintenance import CompactionOptions, IndexSpec, Thresholds
    from airflow_provider_lancens.spark.results import (
        CatalogResult,
        CheckResult,
        CompactionResult,
        ComputeResult,
        ExpireResult,
        FreshnessResult,
        IndexResult,
        MaintenanceResult,
        OrphansResult,
        RestoreResult,
        SchemaResult,
        WriteResult,
    )
    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
    from airflow_provider_lancens.spark.table.version_lookup import VersionLike
    from airflow_provider_lancens.spark.table_info import IndexInfo, TableStats, Tag, VersionInfo

Key: TypeAlias = "str | WriteIdentity | None"
Columns: TypeAlias = "Sequence[str] | None"
IfMissing: TypeAlias = Literal["fail", "skip"]

P = ParamSpec("P")
T = TypeVar("T")


def _verb(
    doing: str, *, writes: bool = False
) -> Callable[[Callable[Concatenate[Table, P], T]], Callable[Concatenate[Table, P], T]]:
    """Make a method one of a table's: it says what failed, and is refused at a version if it writes."""

    def decorated(method: Callable[Concatenate[Table, P], T]) -> Callable[Concatenate[Table, P], T]:
        @functools.wraps(method)
        def called(self: Table, *args: P.args, **kwargs: P.kwargs) -> T:
            self.lake.execution.check_given(method, args, kwargs)
            with self.lake.attempt(f"{doing} table {self.name!r}"):
                check_arguments(method, args, kwargs)
                if writes and self.is_pinned:
                    raise spec_errors.InvalidInputError(
                        f"table {self.name} is opened at version {self._at}, and read-only; write to its "
                        f"newest version: lake.table({self.name!r}).{method.__name__}(...)"
                    )
                return method(self, *args, **kwargs)

        return cast("Callable[Concatenate[Table, P], T]", called)

    return decorated


class Table:
    """A table of a catalog; made by `LanceCatalog.table`.

    It reads the newest version, resolved by each call. Opened at a version, it reads exactly that version,
    and is read-only.
    """

    declaration: CatalogResult | None
    """What `LanceCatalog.declare_table` or `register_table` did, which returned this object; else None."""

    def __init__(
        self,
        lake: LanceCatalog,
        table: TableId,
        at: int | None = None,
        previous: int | None = None,
        declaration: CatalogResult | None = None,
        *,
        location: str | None = None,
    ) -> None:
        self.declaration = declaration
        self.lake = lake
        self._table = table
        self._at = at
        self._previous = previous
        """The version after which its rows are changes, if it was opened by a result that says so."""
        self._location = location
        """Where the dataset was that has the version `_at`; None if it isn't known."""

    @classmethod
    def of_result(cls, lake: LanceCatalog, result: Mapping[str, Any]) -> Self:
        """Return the table of a result, an XCom or an asset event, opened at its version.

        If it has a location, the methods that read data, versions or names of versions refuse another table
        that has the name by then.

        Raises:
            InvalidInputError: (13) it has no table, or no version, or its location isn't text.
        """
        if "table" not in result or not {"version", "staged_version"} & set(result):
            raise spec_errors.InvalidInputError(
                "table: expected an identifier, or a mapping with 'table' and 'version' such as the XCom "
                f"of a sensor or of a write; got a mapping with {', '.join(map(repr, result)) or 'nothing'}"
            )
        try:
            table = TableId.of_result(result["table"])
        except InvalidIdentifierError as error:
            raise spec_errors.InvalidInputError(f"table={result['table']!r}: {error}") from error
        staged = result.get("staged_version")
        version = staged_number(staged) if staged else _number_in(result, "version")
        if staged and version is None:
            raise spec_errors.InvalidInputError(
                f"staged_version: expected the name of a staged version, such as staged-…, got {staged!r}"
            )
        if version is None:
            raise spec_errors.InvalidInputError(
                f"table {table}: its version is None; the task that it is taken from has written nothing"
            )
        # The rows of a first version are changes since version 0.
        previous = _number_in(result, "previous_version") or 0 if "previous_version" in result else None
        return cls(lake, table, version, previous, location=_parsed_location(result.get("location")))

    def __repr__(self) -> str:
        return f"Table({self.name!r}{f', version {self._at}' if self.is_pinned else ''})"

    @property
    def id(self) -> tuple[str, ...]:
        """The levels of the table's identifier."""
        return self._table.parts

    @property
    def name(self) -> str:
        """The table's identifier as it is printed, ``database$table``."""
        return str(self._table)

    @property
    def is_pinned(self) -> bool:
        """Whether it is opened at a version, and read-only."""
        return self._at is not None

    @property
    @_verb("looking up")
    def version(self) -> int | None:
        """The version that it is opened at, else the newest one, asked each time; None without data."""
        if self._at is not None:
            return self._at
        with self._resolved() as target:
            return target.latest_version()

    @_verb("looking up a version of")
    def at(self, version: VersionLike | None = None) -> Table:
        """Return the table opened at a version, which is looked up once, here.

        Args:
            version: its number; a time with a time zone, which means the version that was newest then; or
                text: digits, a time in ISO 8601, or the name of a tag or of a staged version. None is the
                version that is newest now.

        Raises:
            TableNotFoundError: (4) the table isn't declared.
            TableTagNotFoundError: (8) it has no such tag.
            TableVersionNotFoundError: (11) it has no such version, or none at all yet.
            InvalidInputError: (13) `version` is none of these, or is ambiguous.
        """
        if version is None and self._at is not None:
            return self
        with self._resolved() as target:
            number = self._number_of(target, version)
            if version is not None:
                target.check_version(number)
            return self._opened_at(target, number)

    @property
    @_verb("reading the schema of")
    def schema(self) -> pa.Schema:
        """The columns of its version.

        Raises:
            TableVersionNotFoundError: (11) it has no data yet.
        """
        with self._opened() as (_, dataset):
            return dataset.schema

    @property
    @_verb("looking up")
    def location(self) -> str:
        """The root of its dataset: of one opened at a version, where the dataset with this version is."""
        if self._location is not None:
            return self._location
        with self._resolved() as target:
            return str(target.dataset.location)

    @property
    @_verb("looking up")
    def properties(self) -> dict[str, str]:
        """The properties of its entry in the catalog."""
        from lance_namespace import DescribeTableRequest

        request = DescribeTableRequest(id=list(self._table.parts), vend_credentials=False)
        return dict(self.lake.namespace.describe_table(request).properties or {})

    @_verb("reading the history of")
    def history(self, *, limit: int = 100) -> list[VersionInfo]:
        """Return the versions that are kept, newest first.

        Args:
            limit: how many.
        """
        from airflow_provider_lancens.spark.table.opened_version import open_version
        from airflow_provider_lancens.spark.table_info import history_of

        if not is_whole_number(limit, at_least=0, at_most=MAX_ROWS):
            raise spec_errors.InvalidInputError(
                f"limit: expected a whole number from 0 to {MAX_ROWS}, got {limit!r}"
            )
        with self._resolved() as target:
            dataset = target.open_latest() if self._at is None else open_version(target, self._at)
            return [] if dataset is None else history_of(target, dataset, limit)

    @_verb("reading the statistics of")
    def stats(self) -> TableStats:
        """Return the size of the newest version, and what maintenance is due; no data is read.

        Raises:
            TableVersionNotFoundError: (11) it has no data yet.
        """
        from airflow_provider_lancens.spark.maintenance.table_state import table_state
        from airflow_provider_lancens.spark.table_info import stats_of

        with table_state(self.lake.source, self._table) as state:
            state.target.check_location(self._location, self._at)
            return stats_of(state)

    # Reads

    @_verb("reading")
    def read(
        self,
        *,
        columns: Columns = None,
        filter: str | None = None,  # noqa: A002 what Lance's own readers call it
        blobs: Mapping[str, BlobRange] | None = None,
    ) -> DataFrame:
        """Return the rows as a Spark DataFrame, of one version however often it is computed.

        Args:
            columns: the columns, in this order; None reads all.
            filter: a condition on the rows, see docs/conditions.md.
            blobs: the blob columns to read the bytes of, see docs/large-values.md.

        Raises:
            TableNotFoundError: (4) the table isn't declared.
            TableTagNotFoundError: (8) it has no such tag.
            TableVersionNotFoundError: (11) it has no such version, or none at all yet.
            TableColumnNotFoundError: (12) it has no such column.
            InvalidInputError: (13) the version, the columns, the filter or `blobs` is invalid, or Spark has
                no type for a column.
        """
        from airflow_provider_lancens.spark.read import read_opened

        spark = self.lake.spark
        with self._opened() as (target, dataset):
            self.lake.execution.record_read(self._table, target.dataset.location, dataset.version)
            return read_opened(spark, target, dataset, columns, filter, blobs)

    @_verb("opening")
    def dataset(self) -> LanceDataset:
        """Return pylance's dataset at the version, with its credentials; no Spark is needed.

        Raises:
            TableVersionNotFoundError: (11) it has no such version, or no data yet.
        """
        with self._opened() as (_, dataset):
            return dataset

    @_verb("reading")
    def to_arrow(
        self,
        *,
        columns: Columns = None,
        filter: str | None = None,  # noqa: A002 what Lance's own readers call it
        limit: int | None = None,
    ) -> pa.Table:
        """Return the rows as an Arrow table in this process; no Spark is needed.

        Args:
            columns: the columns, in this order; None reads all.
            filter: a condition on the rows, see docs/conditions.md.
            limit: the maximum number of rows.

        Raises:
            TableVersionNotFoundError: (11) it has no such version, or no data yet.
            TableColumnNotFoundError: (12) it has no such column.
            InvalidInputError: (13) an argument is invalid.
        """
        from airflow_provider_lancens.spark.table.opened_version import projected_columns

        if limit is not None and not is_whole_number(limit, at_least=0, at_most=MAX_ROWS):
            raise spec_errors.InvalidInputError(
                f"limit: expected a whole number from 0 to {MAX_ROWS}, or None, got {limit!r}"
            )
        with self._opened() as (target, dataset):
            names = projected_columns(target, dataset.schema, columns).names
            condition = self._condition(target, dataset, filter)
            if limit == 0:
                return dataset.schema.empty_table().select(names)
            return dataset.to_table(columns=names, filter=condition, limit=limit)

    def to_pandas(
        self,
        *,
        columns: Columns = None,
        filter: str | None = None,  # noqa: A002 what Lance's own readers call it
        limit: int | None = None,
    ) -> pd.DataFrame:
        """Return the rows as a pandas DataFrame in this process; see `to_arrow`."""
        frame: pd.DataFrame = self.to_arrow(columns=columns, filter=filter, limit=limit).to_pandas()
        return frame

    def to_polars(
        self,
        *,
        columns: Columns = None,
        filter: str | None = None,  # noqa: A002 what Lance's own readers call it
        limit: int | None = None,
    ) -> Any:
        """Return the rows as a Polars DataFrame in this process, if Polars is installed; see `to_arrow`."""
        import importlib

        polars = importlib.import_module("polars")
        return polars.from_arrow(self.to_arrow(columns=columns, filter=filter, limit=limit))

    @_verb("counting the rows of")
    def count_rows(self, *, filter: str | None = None) -> int:  # noqa: A002 what Lance's own readers call it
        """Return the number of rows; no Spark is needed.

        Args:
            filter: a condition on the rows, see docs/conditions.md.

        Raises:
            TableVersionNotFoundError: (11) it has no such version, or no data yet.
            InvalidInputError: (13) the condition is invalid.
        """
        with self._opened() as (target, dataset):
            return int(dataset.count_rows(filter=self._condition(target, dataset, filter)))

    # Writes

    @_verb("appending to", writes=True)
    def append(
        self, rows: Any, *, schema_mode: SchemaMode = "strict", stage: bool = False, key: Key = None
    ) -> WriteResult:
        """Add rows, in one commit; the first write creates the data.

        Args:
            rows: a Spark DataFrame; a `FileSource` or a mapping of its fields; or, written by this process
                without Spark, a table of Arrow, a DataFrame of pandas, whose index isn't written, or Polars,
                or another Arrow stream.
            schema_mode: what to do if the rows have other columns than the table: ``strict`` refuses them,
                ``merge`` adds and widens columns of the table.
            stage: whether to stage the rows, so that readers see them once they are published.
            key: identifies the write: a repetition replaces its earlier rows. Text, or a `WriteIdentity`,
                whose `on_existing_key` can change that; None makes each call another write.

        Raises:
            TableNotFoundError: (4) the table isn't declared.
            InvalidInputError: (13) an argument is invalid, or a column's type can't be stored; or the key was
                committed with another fingerprint, can't be replaced, or has expired; files can't be read.
            ConcurrentModificationError: (14) others changed rows or columns meanwhile in a way that this
                write can't be applied to; nothing was committed.
            ServiceUnavailableError: (17) the storage or the metastore failed; run it again.
            InvalidTableStateError: (19) it cannot be determined whether the key was committed.
            TableSchemaValidationError: (20) the columns don't fit the table, or can't be merged into it; the
                message names them.
        """
        return self._write(rows, Append(schema_mode=schema_mode, stage=stage), key)

    @_verb("overwriting", writes=True)
    def overwrite(
        self,
        rows: Any,
        *,
        where: str | None = None,
        on: Columns = None,
        schema_mode: SchemaMode = "strict",
        stage: bool = False,
        key: Key = None,
    ) -> WriteResult:
        """Replace all rows, the rows that match a condition, or the rows with values that occur in new rows.

        Args:
            rows: see `append`.
            where: the condition on the rows that are replaced, see docs/conditions.md; all new rows must
                match it. None replaces all.
            on: columns, such as ``["day"]``: the rows whose values in them occur in the new rows are
                replaced, and the others stay.
            schema_mode: see `append`; ``overwrite`` replaces the columns too, without `where` and `on` alone.
            stage: see `append`.
            key: see `append`.

        Raises:
            TableNotFoundError: (4) the table isn't declared.
            InvalidInputError: (13) an argument is invalid, or a column's type can't be stored; or the key was
                committed with another fingerprint, can't be replaced, or has expired; files can't be read.
            ConcurrentModificationError: (14) others changed rows or columns meanwhile in a way that this
                write can't be applied to; nothing was committed.
            ServiceUnavailableError: (17) the storage or the metastore failed; run it again.
            InvalidTableStateError: (19) it cannot be determined whether the key was committed.
            TableSchemaValidationError: (20) the columns don't fit the table, or can't be merged into it; the
                message names them.
        """
        return self._write(rows, Overwrite(where=where, on=on, schema_mode=schema_mode, stage=stage), key)

    @_verb("upserting into", writes=True)
    def upsert(
        self,
        rows: Any,
        on: Sequence[str],
        *,
        when_matched: WhenMatched = "update",
        sequence_by: str | None = None,
        delete_when: str | None = None,
        helper_columns: Sequence[str] | None = None,
        update_columns: Sequence[str] | None = None,
        schema_mode: SchemaMode = "strict",
        stage: bool = False,
        key: Key = None,
    ) -> WriteResult:
        """Replace the rows that have the key columns' values of new rows, and add the others, in one commit.

        Args:
            rows: see `append`. A `FileSource` allows none of the arguments that compare rows: `when_matched`,
                `sequence_by`, `delete_when` and `update_columns`.
            on: the key columns.
            when_matched: ``update`` replaces a row that exists, ``keep`` leaves it.
            sequence_by: the column that orders the rows of a key: only later ones are written.
            delete_when: a condition on new rows, such as ``op = 'D'``: their keys are deleted.
            helper_columns: columns of the new rows that only `delete_when` needs, and that are never written.
            update_columns: the only columns that are updated in rows that exist.
            schema_mode: see `append`.
            stage: see `append`.
            key: see `append`.

        Raises:
            TableNotFoundError: (4) the table isn't declared.
            InvalidInputError: (13) an argument is invalid, or a column's type can't be stored; or the key was
                committed with another fingerprint, can't be replaced, or has expired; files can't be read.
            ConcurrentModificationError: (14) others changed rows or columns meanwhile in a way that this
                write can't be applied to; nothing was committed.
            ServiceUnavailableError: (17) the storage or the metastore failed; run it again.
            InvalidTableStateError: (19) it cannot be determined whether the key was committed.
            TableSchemaValidationError: (20) the columns don't fit the table, or can't be merged into it; the
                message names them.
        """
        change = Upsert(
            on=on,
            when_matched=when_matched,
            sequence_by=sequence_by,
            delete_when=delete_when,
            helper_columns=helper_columns,
            update_columns=update_columns,
            schema_mode=schema_mode,
            stage=stage,
        )
        return self._write(rows, change, key)

    @_verb("deleting rows of", writes=True)
    def delete(self, where: str, *, dry_run: bool = False, key: Key = None) -> WriteResult:
        """Delete the rows that match a condition, in one commit; no Spark is needed.

        Args:
            where: the condition, see docs/conditions.md.
            dry_run: only count them; nothing is written, and the key isn't looked up.
            key: see `append`.

        Returns:
            The version without the rows; `deleted` is their number. Of a dry run, the newest version.

        Raises:
            TableNotFoundError: (4) the table isn't declared.
            TableVersionNotFoundError: (11) nothing was written to it yet.
            InvalidInputError: (13) the condition is invalid, or the key has expired, or was committed with
                another condition and `on_existing_key` is ``skip``.
            InvalidTableStateError: (19) it cannot be determined whether the key was committed.
            ConcurrentModificationError: (14) every attempt lost to a commit of another writer.
        """
        from airflow_provider_lancens.spark.commit.delete import delete_rows, planned_deletion

        def commit(identity: WriteIdentity, _: Begin) -> WriteResult:
            return delete_rows(
                self.lake.source,
                self._table,
                where,
                key=identity.key,
                on_existing_key=identity.on_existing_key,
                execution_id=identity.execution_id,
            )

        identity = _identity_of(key, "the condition is that of a deletion")
        if dry_run:
            return planned_deletion(self.lake.source, self._table, where, key=identity.key)
        return self.lake.execution.write(PendingWrite(self._table, identity, commit))

    @_verb("restoring", writes=True)
    def restore(
        self, version: VersionLike, *, dry_run: bool = False, key: Key = None, location: str | None = None
    ) -> RestoreResult:
        """Make an older version the newest again, by a new commit; no Spark is needed.

        Args:
            version: the version to restore, see `at`.
            dry_run: only return the commits that it would undo; nothing is written, and the key isn't looked
                up.
            key: see `append`.
            location: where the table was, from the result or the XCom that `version` is from: if another
                table has the name by then, nothing is restored. None doesn't check it.

        Returns:
            The version that was made, and the commits that it undoes. Of a dry run, the newest version.

        Raises:
            TableNotFoundError: (4) the table isn't declared.
            TableTagNotFoundError: (8) it has no such tag.
            TableVersionNotFoundError: (11) there is no such version, or none at all.
            InvalidInputError: (13) an argument is invalid; the key was committed with other ones, and
                `on_existing_key` is ``skip``; or others have changed rows since the restore that is repeated.
            ConcurrentModificationError: (14) others committed meanwhile, or a clean-up may be removing the
                version; nothing was committed.
            InvalidTableStateError: (19) the version lacks files, or every version does; metastore and storage
                disagree on which version is the newest; or the table is at another location.
        """
        from airflow_provider_lancens.spark.maintenance.restore import planned_restore, restore_version

        identity = _identity_of(key, "the version is that of a restore")
        if version is None:
            raise spec_errors.InvalidInputError("version: expected the version to restore, got None")
        place = _parsed_location(location)
        if dry_run:
            return planned_restore(self.lake.source, self._table, version, key=identity.key, location=place)

        def commit(identity: WriteIdentity, _: Begin) -> RestoreResult:
            return restore_version(
                self.lake.source,
                self._table,
                version,
                key=identity.key,
                on_existing_key=identity.on_existing_key,
                execution_id=identity.execution_id,
                location=place,
            )

        restored = self.lake.execution.write(PendingWrite(self._table, identity, commit))
        return cast("RestoreResult", restored)  # what `commit` has returned

    @_verb("publishing a version of", writes=True)
    def publish(self, staged: str | Mapping[str, Any] | WriteResult) -> WriteResult:
        """Make a staged version the next one, without copying its files; no Spark is needed.

        Args:
            staged: the result of the write that staged it, its XCom, or its `staged_version`.

        Raises:
            TableNotFoundError: (4) the table isn't declared.
            TableVersionNotFoundError: (11) there is no such version: it was discarded, or it has expired.
            InvalidInputError: (13) other rows were published under its idempotency key.
            ConcurrentModificationError: (14) every attempt lost to a commit of others.
            InvalidTableStateError: (19) it conflicts with a commit that others made since it was staged, it
                was staged more than six days ago, files of it were removed, or the result is of another table
                that had the name before.
        """
        from airflow_provider_lancens.spark.publish import publish_version, staged_nothing

        opened, is_empty = self._staged(staged), staged_nothing(staged)
        result = publish_version(
            self.lake.source, self._table, opened._at or 0, is_empty=is_empty, location=opened._location
        )
        self.lake.execution.report(self._table, result)
        return result

    @_verb("discarding a staged version of", writes=True)
    def discard(
        self, staged: str | Mapping[str, Any] | WriteResult, *, if_missing: IfMissing = "fail"
    ) -> bool:
        """Discard a staged version, with the files that were written for it; no Spark is needed.

        Args:
            staged: see `publish`.
            if_missing: whether it is an error if there is no such staged version (``fail``), or nothing is
                done (``skip``).

        Returns:
            False if there was none, or the write had no rows and staged none.

        Raises:
            TableVersionNotFoundError: (11) there is none, and `if_missing` is ``fail``.
            InvalidInputError: (13) it isn't a staged version.
        """
        from airflow_provider_lancens.spark.publish import discard_version, staged_nothing

        version = self._staged(staged)._at or 0
        if staged_nothing(staged):
            return False
        found = discard_version(self.lake.source, self._table, version)
        if not found:
            self._missing(if_missing, spec_errors.TableVersionNotFoundError, f"staged version {version}")
        return found

    @_verb("finding a write to")
    def find_write(self, key: str | WriteIdentity) -> WriteResult | None:
        """Return the result of a write that was committed under a key; None if none was.

        Args:
            key: the key; or the identity of a planned write, for which None also means that an existing write
                would be repeated.

        Raises:
            TableNotFoundError: (4) the table isn't declared.
            InvalidInputError: (13) an argument is invalid, or that call had another fingerprint.
        """
        from airflow_provider_lancens.spark.keys import find_write

        identity = _needed_key(key)
        return find_write(
            self.lake.source,
            self._table,
            identity.key or "",
            fingerprint=identity.fingerprint,
            on_existing_key="skip" if isinstance(key, str) else identity.on_existing_key,
            execution_id=identity.execution_id,
        )

    @_verb("confirming a write to", writes=True)
    def confirm_write(self, key: str) -> None:
        """Record that the rows of a write are in the table, if that can't be determined.

        Args:
            key: the key of the write.

        Raises:
            InvalidInputError: (13) there is no write under the key whose outcome is unknown, or no record of
                it is left.
        """
        from airflow_provider_lancens.spark.keys import confirm_write

        confirm_write(self.lake.source, self._table, _needed_key(key).key or "")

    @_verb("accepting lost keys of", writes=True)
    def accept_lost_keys(self) -> None:
        """Let idempotency keys without records count as never committed, although records were lost.

        The records of keys, beside the data, were removed, and so were versions that would show the commits;
        until this is called, writes under keys without records are refused. Call it if no key of the removed
        versions will be written again, or if such rows may be written twice.

        Raises:
            TableNotFoundError: (4) the table isn't declared.
            InvalidInputError: (13) no records of the table are known to be lost.
        """
        from airflow_provider_lancens.spark.keys import accept_lost_keys

        accept_lost_keys(self.lake.source, self._table)

    # Changes, bookmarks, tags

    @_verb("finding changes of")
    def changes(
        self,
        after_version: VersionLike | None = None,
        *,
        bookmark: str | None = None,
        if_unavailable: IfUnavailable = "fail",
    ) -> Changes:
        """Return the rows that changed up to the table's version; their range is fixed here.

        Used with ``with``, the bookmark moves to that version at the end, unless an exception ends the block.
        In a task, its later tries get the range of the first one, and the default key of a write in the block
        also contains the version of the bookmark at the start.

        Args:
            after_version: the version after which rows are changes, see `at`; 0 makes all rows changes.
            bookmark: a bookmark that names this version; if it is new, all rows are changes. Without both, it
                is the `previous_version` of the result that the table was opened with.
            if_unavailable: what to do if the changes are unknown, or the bookmark expired: ``fail``, or
                ``read_all``, which reads all rows of the version with the type ``snapshot``, unless the
                version of an expired bookmark is still there, and the changes after it are known.

        Raises:
            TableVersionNotFoundError: (11) the table has no data yet, or there is no such version.
            InvalidInputError: (13) an argument is invalid, or the start of the range isn't given.
        """
        check_choice("if_unavailable", if_unavailable, ("fail", "read_all"))
        if after_version is not None and bookmark is not None:
            raise spec_errors.InvalidInputError(
                "after_version, bookmark: expected one of them, since both say after which version"
            )
        if after_version is None and bookmark is None and self._previous is None:
            raise spec_errors.InvalidInputError(
                "after_version, bookmark: expected one of them, or a table that is opened with a result "
                "that has a 'previous_version'; got none"
            )
        with self._resolved() as target:
            if bookmark is not None:
                return self._changes_after(target, bookmark, if_unavailable)
            version = self._number_of(target, None)
            previous = self._previous
            if after_version == 0 and not isinstance(after_version, bool):
                previous = 0
            elif after_version is not None:
                previous = self._number_of(target, after_version, "after_version")
                target.check_version(previous)
            opened = self._opened_at(target, version)
        return Changes(opened, previous or 0, None, None, if_unavailable)

    @_verb("finding changes of")
    def find_changes(self, bookmark: str, *, if_unavailable: IfUnavailable = "fail") -> UnreadVersions:
        """Return the versions that the consumer of a bookmark has not read; the bookmark stays where it is.

        Args:
            bookmark: its name, or the name of any tag; if it is new, all rows are changes.
            if_unavailable: what to do if the bookmark expired: ``fail``, or ``read_all``, with which all rows
                are changes, and `UnreadVersions.bookmark` says when it expired.

        Raises:
            TableNotFoundError: (4) the table isn't declared.
            InvalidInputError: (13) an argument is invalid, or the bookmark expired, and `if_unavailable` is
                ``fail``.
        """
        check_choice("if_unavailable", if_unavailable, ("fail", "read_all"))
        with self._resolved() as target:
            return self._unread(target, bookmark, if_unavailable)

    def _changes_after(self, target: ResolvedTable, bookmark: str, if_unavailable: IfUnavailable) -> Changes:
        unread = self._unread(target, bookmark, if_unavailable)
        found, version = unread.bookmark, unread.version
        if version is None:
            raise target.nothing_written()
        previous = 0 if found is None else min(found.version, version)
        if self._at is None:
            version = self._range_of_task(target, bookmark, previous, version)
        position = None if found is None or found.is_expired else found.version
        return Changes(self._opened_at(target, version), previous, bookmark, position, if_unavailable)

    def _range_of_task(self, target: ResolvedTable, bookmark: str, after: int, version: int) -> int:
        """Return up to which version the running task reads: in its later tries as in the first."""
        from airflow_provider_lancens.spark.bookmarks import fix_range

        execution_id = self.lake.execution.execution_id
        if not execution_id or version <= after:
            return version
        return fix_range(target.dataset.manifests, bookmark, execution_id, after, version)

    @_verb("listing the bookmarks of")
    def bookmarks(self) -> list[Bookmark]:
        """Return the bookmarks of the table's consumers by name, with the expired ones."""
        from airflow_provider_lancens.spark.bookmarks import list_bookmarks

        with self._resolved() as target:
            return list_bookmarks(target)

    @_verb("moving a bookmark of")
    def move_bookmark(
        self,
        name: str,
        version: VersionLike | None = None,
        *,
        expires_after: timedelta | None = None,
        allow_older: bool = False,
    ) -> Bookmark:
        """Move the bookmark of a consumer to a version, which it protects from clean-ups; or create it.

        Args:
            name: the bookmark's name.
            version: see `at`; None is the version that the table is opened at, or the newest.
            expires_after: how long the version is kept, if the bookmark isn't moved again, after this move
                or, if later, after the commit of the next version. None never expires.
            allow_older: whether it may move to an older version than it names.

        Returns:
            The bookmark as it is now.

        Raises:
            TableNotFoundError: (4) the table isn't declared.
            TableVersionNotFoundError: (11) there is no such version.
            InvalidInputError: (13) an argument is invalid, or the version is staged or, unless `allow_older`,
                older than the bookmark's.
            ConcurrentModificationError: (14) a clean-up may be removing the version, or others kept changing
                the tag meanwhile; the bookmark wasn't moved.
            ServiceUnavailableError: (17) the storage or the metastore failed.
        """
        from airflow_provider_lancens.spark.bookmarks import move_bookmark

        with self._resolved() as target:
            number = self._number_of(target, version)
            return move_bookmark(target, name, number, expires_after=expires_after, allow_older=allow_older)

    @_verb("deleting a bookmark of")
    def delete_bookmark(self, name: str, *, if_missing: IfMissing = "fail") -> bool:
        """Delete a bookmark, and the record of its expiry.

        Args:
            name: the bookmark's name.
            if_missing: whether it is an error if there is none (``fail``), or nothing is done (``skip``).

        Returns:
            False if there was none.

        Raises:
            TableTagNotFoundError: (8) there is none, and `if_missing` is ``fail``.
        """
        return self._delete_name(name, if_missing, "bookmark")

    @_verb("listing the tags of")
    def tags(self) -> list[Tag]:
        """Return the tags of the table by name; bookmarks are tags too."""
        from airflow_provider_lancens.spark.table_info import tags_of

        with self._resolved() as target:
            latest = target.open_latest()
            return [] if latest is None else tags_of(latest)

    @_verb("tagging a version of")
    def tag(
        self,
        name: str,
        version: VersionLike | None = None,
        *,
        if_exists: Literal["skip", "replace", "fail"] = "skip",
    ) -> Tag:
        """Tag a version, which protects it from clean-ups until the tag is deleted.

        Args:
            name: letters, digits, ``.``, ``-`` and ``_``.
            version: see `at`; None is the version that the table is opened at, or the newest.
            if_exists: ``skip`` leaves a tag of the same version, and refuses one of another; ``replace``
                moves it; ``fail`` is an error.

        Raises:
            TableVersionNotFoundError: (11) there is no such version.
            TableTagAlreadyExistsError: (9) there is a tag of this name, see `if_exists`.
        """
        from airflow_provider_lancens.namespace.storage.version_tags import create_tag, set_tag
        from airflow_provider_lancens.spark.table.opened_version import open_version
        from airflow_provider_lancens.spark.table_info import Tag, tags_of

        check_choice("if_exists", if_exists, ("skip", "replace", "fail"))
        with self._resolved() as target:
            number = self._number_of(target, version)
            dataset, files = open_version(target, number), target.dataset.manifests
            if if_exists == "replace":
                set_tag(dataset, files, name, number)
            elif not create_tag(dataset, files, name, number):
                present = next((existing for existing in tags_of(dataset) if existing.name == name), None)
                if if_exists == "fail" or present != Tag(name, number):
                    of_branch = f" of branch {present.branch!r}" if present and present.branch else ""
                    raise spec_errors.TableTagAlreadyExistsError(
                        f"table {self.name}: tag {name!r} exists, of version "
                        f"{None if present is None else present.version}{of_branch}; if_exists='replace' "
                        "moves it"
                    )
        return Tag(name, number)

    @_verb("deleting a tag of")
    def delete_tag(self, name: str, *, if_missing: IfMissing = "fail") -> bool:
        """Delete a tag; a clean-up may then remove the version that it protected.

        Args:
            name: the tag's name.
            if_missing: whether it is an error if there is none (``fail``), or nothing is done (``skip``).

        Returns:
            False if there was none.

        Raises:
            TableTagNotFoundError: (8) there is none, and `if_missing` is ``fail``.
        """
        return self._delete_name(name, if_missing, "tag")

    # Columns

    @_verb("adding columns to", writes=True)
    def add_columns(
        self,
        columns: Mapping[str, str | pa.DataType] | None = None,
        *,
        expressions: Mapping[str, str] | None = None,
    ) -> SchemaResult:
        """Add columns; existing columns are left unchanged. No Spark is needed.

        Args:
            columns: types of columns without values, by name: ``bigint``, ``struct<x: double, y: double>`` or
                a PyArrow type; docs/schema-changes.md lists them.
            expressions: expressions by name, such as ``price * quantity``.

        Raises:
            TableNotFoundError: (4) the table isn't declared.
            TableVersionNotFoundError: (11) nothing was written to it yet.
            InvalidInputError: (13) a name, a type or an expression is invalid.
            ConcurrentModificationError: (14) every attempt lost to a commit of another writer.
            ServiceUnavailableError: (17) the storage or the metastore failed; run it again.
            InvalidTableStateError: (19) a direct writer bypassed the metastore that decides the versions.
            TableSchemaValidationError: (20) a column exists with another type.
        """
        from airflow_provider_lancens.spark.schema import add_columns

        return add_columns(self.lake.source, self._table, columns, expressions=expressions)

    @_verb("altering columns of", writes=True)
    def alter_columns(
        self,
        *,
        rename: Mapping[str, str] | None = None,
        types: Mapping[str, str | pa.DataType] | None = None,
        nullable: Sequence[str] | None = None,
        drop_indices: bool = False,
    ) -> SchemaResult:
        """Rename columns, widen their types, and allow nulls in them. No Spark is needed.

        Args:
            rename: new names by the current ones. A column that has the new name already, while none has the
                old one, counts as renamed.
            types: types by the columns' new names, such as ``bigint``; each must represent all values of the
                present type. The new type of a struct may also have further fields.
            nullable: columns to allow nulls in, by their new names.
            drop_indices: whether indices on columns that are widened may be dropped; otherwise they are
                refused.

        Raises:
            TableNotFoundError: (4) the table isn't declared.
            TableVersionNotFoundError: (11) nothing was written to it yet.
            TableColumnNotFoundError: (12) there is no such column.
            InvalidInputError: (13) a name or a type is invalid, both names of a `rename` exist, or an index
                covers a column that is to be widened.
            ConcurrentModificationError: (14) every attempt lost to a commit of another writer.
            ServiceUnavailableError: (17) the storage or the metastore failed; run it again.
            InvalidTableStateError: (19) a direct writer bypassed the metastore that decides the versions.
            TableSchemaValidationError: (20) a type can't represent all values of the present one, or Lance
                can't convert to it.
        """
        from airflow_provider_lancens.spark.schema import alter_columns

        return alter_columns(
            self.lake.source,
            self._table,
            rename=rename,
            types=types,
            nullable=nullable,
            drop_indices=drop_indices,
        )

    @_verb("dropping columns of", writes=True)
    def drop_columns(self, columns: Sequence[str], *, drop_indices: bool = False) -> SchemaResult:
        """Drop columns; columns that don't exist count as dropped. No Spark is needed.

        Args:
            columns: the columns.
            drop_indices: whether indices on the columns may be dropped with them; otherwise they are refused.

        Raises:
            TableNotFoundError: (4) the table isn't declared.
            TableVersionNotFoundError: (11) nothing was written to it yet.
            InvalidInputError: (13) these are all columns of the table, or the only ones with values in some
                fragments, or an index covers one of them.
            ConcurrentModificationError: (14) every attempt lost to a commit of another writer.
            ServiceUnavailableError: (17) the storage or the metastore failed; run it again.
            InvalidTableStateError: (19) a direct writer bypassed the metastore that decides the versions.
        """
        from airflow_provider_lancens.spark.schema import drop_columns

        return drop_columns(self.lake.source, self._table, columns, drop_indices=drop_indices)

    @_verb("computing a column of", writes=True)
    def compute_column(
        self,
        column: str,
        function: Any,
        columns: Sequence[str],
        *,
        dtype: str | pa.DataType | None = None,
        setup: Any = None,
        where: str | None = None,
        batch_rows: int | None = None,
        commit_every: int | None = None,
        max_tasks: int | None = None,
    ) -> ComputeResult:
        """Compute a column by a Python function on Spark's executors; no other column is rewritten.

        Args:
            column: the column; if it doesn't exist, it is added.
            function: ``function(batch)`` gets a `pyarrow.RecordBatch` with `columns`, and returns a
                `pyarrow.Array` with a value for each row, or a record batch with `column`. Or its path, such
                as ``module.function``. A row for which it returns null counts as missing in the next run.
            columns: the columns that the function gets.
            dtype: the type of a column that is added, such as ``float[768]`` or a PyArrow type; None calls
                the function with a batch without rows to find out.
            setup: a function, or its path, that is called once in each Python worker; its result is the
                second argument of `function`. Load models here.
            where: a condition: the rows that match it are computed, whether they have a value or not
                (``TRUE`` computes all); later tries of a task skip fragments that the same call of an earlier
                try has committed. None computes the rows without a value.
            batch_rows: the maximum number of rows that the function gets at once.
            commit_every: the number of finished fragments to commit at once; by default a quarter of the
                tasks that run at once, and all finished ones after a minute.
            max_tasks: the maximum number of fragments that are computed at the same time; by default as many
                as the session's executors can run (8 with Spark Connect, where this is unknown).

        Raises:
            UnsupportedOperationError: (0) the table has Lance's first file format, or data overlays.
            TableNotFoundError: (4) the table isn't declared.
            TableVersionNotFoundError: (11) nothing was written to it yet.
            TableColumnNotFoundError: (12) one of `columns` doesn't exist.
            InvalidInputError: (13) an argument is invalid, or the function returned something invalid.
            ConcurrentModificationError: (14) others changed the column or kept rewriting the table.
            ServiceUnavailableError: (17) the storage or the metastore failed.
            InvalidTableStateError: (19) a direct writer bypassed the metastore that decides the versions.
            TableSchemaValidationError: (20) the column exists with a type other than `dtype`.
            ColumnFunctionError: the function raised an exception; finished fragments are committed.
        """
        from airflow_provider_lancens.spark.compute.compute_column import compute_column

        sized: dict[str, Any] = {} if batch_rows is None else {"batch_rows": batch_rows}
        what = columns, getattr(function, "__code__", function)  # of a lambda made anew, too
        with self.lake.execution.computing(self._table, column, where, what) as execution_id:
            return compute_column(
                self._spark,
                self.lake.source,
                self._table,
                column,
                function,
                columns,
                dtype=dtype,
                setup=setup,
                where=where,
                commit_every=commit_every,
                max_tasks=max_tasks,
                execution_id=execution_id,
                **sized,
            )

    # Maintenance

    @_verb("maintaining", writes=True)
    def maintain(
        self,
        *,
        indices: Sequence[IndexSpec | Mapping[str, Any]] = (),
        segments: int = DEFAULT_SEGMENTS,
        older_than: timedelta = DEFAULT_AGE,
        keep_versions: int = 1,
        keys_older_than: timedelta | None = None,
        orphans_older_than: timedelta | None = None,
        thresholds: Thresholds | Mapping[str, Any] | None = None,
        compaction_options: CompactionOptions | Mapping[str, Any] | None = None,
        dry_run: bool = False,
    ) -> MaintenanceResult:
        """Compact the table, extend its indices and remove old versions, each if it is due.

        Spark is needed only if a compaction or an index is due.

        Args:
            indices: the indices to build and extend.
            segments: the maximum number of segments that an index is built with.
            older_than: the least time since a version to remove was replaced.
            keep_versions: the number of newest versions to keep whatever their age.
            keys_older_than: the age at which an idempotency key expires; None keeps all.
            orphans_older_than: the least age of files of failed writes to remove; None leaves them.
            thresholds: when each step is due; None is by default.
            compaction_options: which fragments to rewrite, and how.
            dry_run: only return the steps that are due, with what they would do; no Spark is needed.

        Raises:
            LanceNamespaceError: the error of the first step that failed, with the step's name; see `compact`,
                `create_index`, `expire_versions` and `remove_orphans`.
        """
        from airflow_provider_lancens.spark.maintenance.maintain import maintain_table, planned_maintenance
        from airflow_provider_lancens.spark.maintenance.maintenance_options import (
            DEFAULT_THRESHOLDS,
            CompactionOptions,
            MaintenancePlan,
            Thresholds,
        )

        with _invalid_arguments():
            plan = MaintenancePlan(
                compaction=_options("compaction_options", CompactionOptions, compaction_options)
                or CompactionOptions(),
                indices=tuple(_index_spec(f"indices[{n}]", index) for n, index in enumerate(indices)),
                segments=segments,
                older_than=older_than,
                keep_versions=keep_versions,
                keys_older_than=keys_older_than,
                orphans_older_than=orphans_older_than,
                thresholds=_options("thresholds", Thresholds, thresholds) or DEFAULT_THRESHOLDS,
            )
        if dry_run:
            return planned_maintenance(self.lake.source, self._table, plan)
        return maintain_table(self._spark, self.lake.source, self._table, plan)

    @_verb("compacting", writes=True)
    def compact(
        self,
        *,
        thresholds: Thresholds | Mapping[str, Any] | None = None,
        compaction_options: CompactionOptions | Mapping[str, Any] | None = None,
        dry_run: bool = False,
    ) -> CompactionResult:
        """Merge small fragments and remove deleted rows; Spark is needed only if there is work.

        Args:
            thresholds: when that is due, decided by the table's metadata alone; None is whenever there is
                work.
            compaction_options: which fragments to rewrite, and how.
            dry_run: only return how many fragments would be rewritten; no Spark is needed.

        Raises:
            TableNotFoundError: (4) the table isn't declared.
            TableVersionNotFoundError: (11) nothing was written to it yet.
            InvalidInputError: (13) an argument is invalid.
            ConcurrentModificationError: (14) others changed rows of the same fragments meanwhile.
            ServiceUnavailableError: (17) the storage or the metastore failed.
            InvalidTableStateError: (19) a direct writer bypassed the metastore that decides the versions.
        """
        from airflow_provider_lancens.spark.maintenance import CompactionOptions, Thresholds
        from airflow_provider_lancens.spark.maintenance.compact import compact_table, planned_compaction

        with _invalid_arguments():
            options = _options("compaction_options", CompactionOptions, compaction_options)
            when = _options("thresholds", Thresholds, thresholds)
        if dry_run:
            return planned_compaction(self.lake.source, self._table, options=options, thresholds=when)
        return compact_table(self._spark, self.lake.source, self._table, options=options, thresholds=when)

    @_verb("building an index of", writes=True)
    def create_index(
        self,
        column: str,
        index_type: str,
        *,
        name: str | None = None,
        if_exists: Literal["skip", "extend", "replace", "fail"] = "skip",
        segments: int = DEFAULT_SEGMENTS,
        thresholds: Thresholds | Mapping[str, Any] | None = None,
        index_options: Mapping[str, Any] | None = None,
    ) -> IndexResult:
        """Build an index over all rows, on Spark.

        Args:
            column: the column.
            index_type: for filters ``BTREE``, ``BITMAP``, ``LABEL_LIST``, ``NGRAM``, ``ZONEMAP`` and
                ``BLOOMFILTER``; for full-text search ``INVERTED``; for nearest neighbors ``IVF_FLAT``,
                ``IVF_SQ``, ``IVF_PQ``, and the same with ``IVF_HNSW_``.
            name: the name of the index; by default ``<column>_idx``.
            if_exists: whether an index of that name, column and type is left unchanged (``skip``), extended
                by the rows that aren't in it (``extend``), rebuilt over all rows (``replace``) or an error
                (``fail``). Extending merges small segments if there are many. An index is rebuilt instead if
                its files are lost, if its column was computed anew since, or if it is a vector index that was
                trained with other options, or on less than a quarter of the rows.
            segments: the maximum number of segments, each built by a Spark task; a query searches all of
                them.
            thresholds: when extending or replacing the index is due, decided by the table's metadata alone;
                None is always.
            index_options: options of the type, such as ``metric``.

        Raises:
            TableNotFoundError: (4) the table isn't declared.
            TableIndexAlreadyExistsError: (7) there is an index of that name, and `if_exists` is ``fail``; or
                it is on another column or, unless `if_exists` is ``replace``, of another type.
            TableVersionNotFoundError: (11) nothing was written to it yet.
            TableColumnNotFoundError: (12) there is no such column.
            InvalidInputError: (13) the column can't have this index, there are too few rows for it, or an
                argument is invalid.
            ConcurrentModificationError: (14) others rewrote the rows or made the same index meanwhile.
            ServiceUnavailableError: (17) the storage or the metastore failed.
            InvalidTableStateError: (19) a direct writer bypassed the metastore that decides the versions.
        """
        from airflow_provider_lancens.spark.maintenance import IndexSpec, Thresholds
        from airflow_provider_lancens.spark.maintenance.index import build_index

        check_choice("if_exists", if_exists, IF_INDEX_EXISTS)
        with _invalid_arguments():
            check_positive("segments", segments)
            spec = IndexSpec(column, index_type, name or "", index_options or {})
            when = _options("thresholds", Thresholds, thresholds)
        return build_index(
            self._spark,
            self.lake.source,
            self._table,
            spec,
            if_exists=if_exists,
            segments=segments,
            thresholds=when,
        )

    @_verb("dropping an index of", writes=True)
    def drop_index(self, name: str, *, if_missing: IfMissing = "fail") -> bool:
        """Drop an index; no Spark is needed.

        Args:
            name: its name.
            if_missing: whether it is an error if there is none (``fail``), or nothing is done (``skip``).

        Returns:
            False if there was none.

        Raises:
            TableIndexNotFoundError: (6) there is none, and `if_missing` is ``fail``.
        """
        from airflow_provider_lancens.spark.maintenance.index import drop_index

        found = drop_index(self.lake.source, self._table, name)
        if not found:
            self._missing(if_missing, spec_errors.TableIndexNotFoundError, f"index {name!r}")
        return found

    @_verb("listing the indices of")
    def indices(self) -> list[IndexInfo]:
        """Return the indices of the version by name, and how much of it they cover.

        Raises:
            TableVersionNotFoundError: (11) it has no data yet.
        """
        from airflow_provider_lancens.spark.table_info import indices_of

        with self._opened() as (_, dataset):
            return indices_of(dataset)

    @_verb("removing old versions of", writes=True)
    def expire_versions(
        self,
        *,
        older_than: timedelta = DEFAULT_AGE,
        keep_versions: int = 1,
        keys_older_than: timedelta | None = None,
        thresholds: Thresholds | Mapping[str, Any] | None = None,
        dry_run: bool = False,
    ) -> ExpireResult:
        """Remove old versions, and the files that only they refer to; no Spark is needed.

        Args:
            older_than: the time for which a replaced version is kept, and which a reader without a tag has.
            keep_versions: the number of newest versions to keep whatever their age.
            keys_older_than: the age at which an idempotency key expires; None keeps all.
            thresholds: when a clean-up is due, decided by the table's metadata alone; None is always.
            dry_run: only report what would be removed.

        Raises:
            TableNotFoundError: (4) the table isn't declared.
            TableVersionNotFoundError: (11) nothing was written to it yet.
            InvalidInputError: (13) an argument is invalid.
            ConcurrentModificationError: (14) a write has been running for so long that its files could be
                removed; nothing was removed.
            ServiceUnavailableError: (17) the storage or the metastore failed; a part may have been removed.
            UnsupportedOperationError: (0) a symbolic link or another dataset is among the table's own files,
                or the table has branches, and registered shallow clones.
            InvalidTableStateError: (19) metastore and storage disagree on which version is the newest.
        """
        from airflow_provider_lancens.spark.maintenance import Thresholds
        from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
        from airflow_provider_lancens.spark.maintenance.maintenance_options import check_retention

        with _invalid_arguments():
            check_retention(older_than, keep_versions, keys_older_than=keys_older_than)
            when = _options("thresholds", Thresholds, thresholds)
        return clean_up_versions(
            self.lake.source,
            self._table,
            older_than=older_than,
            keep_versions=keep_versions,
            keys_older_than=keys_older_than,
            dry_run=dry_run,
            thresholds=when,
        )

    @_verb("removing orphaned files of", writes=True)
    def remove_orphans(
        self, *, older_than: timedelta = DEFAULT_ORPHAN_AGE, dry_run: bool = False
    ) -> OrphansResult:
        """Remove the files of failed writes; no Spark is needed.

        Args:
            older_than: the age from which a file counts as orphaned, and a write without a heartbeat as dead.
            dry_run: only report what would be removed.

        Raises:
            UnsupportedOperationError: (0) it has branches, or detached versions that weren't staged by this
                package, which may refer to anything.
            TableNotFoundError: (4) the table isn't declared.
            InvalidInputError: (13) an argument is invalid.
            ServiceUnavailableError: (17) the storage didn't answer; run it again.
            InvalidTableStateError: (19) a write is presumed dead, and can't be fenced off while metastore
                and storage disagree.
        """
        from airflow_provider_lancens.spark.maintenance.orphans import remove_orphans

        return remove_orphans(self.lake.source, self._table, older_than=older_than, dry_run=dry_run)

    # Catalog

    @_verb("checking")
    def check(self, *, if_inconsistent: Literal["fail", "report", "adopt"] = "fail") -> CheckResult:
        """Compare the catalog's version with the storage's, and find files that versions lack.

        Every version is opened, newest first, so it takes long on a table with many versions. No Spark is
        needed.

        Args:
            if_inconsistent: ``fail`` raises an error, ``report`` returns what was found, and ``adopt`` lets
                the catalog accept the storage's version, unless files are missing or both have other commits.

        Raises:
            TableNotFoundError: (4) the table isn't declared.
            InvalidInputError: (13) `if_inconsistent` is none of these.
            ServiceUnavailableError: (17) the storage or the metastore didn't answer.
            InvalidTableStateError: (19) they disagree or the newest version lacks files, and
                `if_inconsistent` is ``fail``; or it can't be adopted.
        """
        from airflow_provider_lancens.spark.maintenance.restore import check_files, check_result

        check_choice("if_inconsistent", if_inconsistent, ("fail", "report", "adopt"))
        started, adopts = time.monotonic(), if_inconsistent == "adopt"
        compare = getattr(self.lake.namespace, "adopt_table" if adopts else "compare_table", None)
        if compare is None and adopts:
            self._managing("adopt_table")
        compared = None if compare is None else compare(self._table.parts)
        is_known = compared is None or adopts or compared.verdict in ("consistent", "files_missing")
        files = check_files(self.lake.source, self._table) if is_known else None
        result = check_result(self._table, compared, files, started, adopted=adopts)
        fails = {"fail": result.verdict != "consistent", "adopt": result.verdict == "files_missing"}
        if fails.get(if_inconsistent):
            raise spec_errors.InvalidTableStateError(result.reason)
        return result

    @_verb("checking the age of the data of")
    def check_freshness(
        self, *, max_age: timedelta | str | None = None, if_late: Literal["fail", "report"] = "fail"
    ) -> FreshnessResult:
        """Check how old the newest data are; compactions, indices and clean-ups aren't new data.

        Args:
            max_age: their maximum age, a duration or text such as ``PT6H``; by default the table's property
                ``lancens.expected_update_interval``.
            if_late: ``fail`` raises an error, ``report`` returns what was found.

        Raises:
            TableNotFoundError: (4) the table isn't declared.
            InvalidInputError: (13) an argument or the property is invalid, or there is neither.
            InvalidTableStateError: (19) the data are older, or there are none, and `if_late` is ``fail``.
        """
        from airflow_provider_lancens.spark.freshness import expected_age, freshness
        from airflow_provider_lancens.spark.observed import Ended, notify

        check_choice("if_late", if_late, ("fail", "report"))
        with self._resolved() as target:
            expected = expected_age(target.expected_update, max_age)
            if expected is None:
                raise spec_errors.InvalidInputError(
                    f"table {self.name}: max_age is not given, and the table has no property "
                    f"{EXPECTED_UPDATE!r} that says how often it gets new data"
                )
            dataset = target.open_latest() if self._at is None else target.open(self._at)
            found = freshness(self._table, dataset, expected)
            notify(target.namespace, Ended(found))
        if found.is_late and if_late == "fail":
            raise spec_errors.InvalidTableStateError(f"table {self.name}: {found.reason}")
        return found

    @_verb("advancing the version of", writes=True)
    def advance(self, version: int, *, expected_version: int) -> bool:
        """Advance the version that the catalog has of a catalog-managed table, by compare-and-set.

        Args:
            version: the version to advance to; its manifest must exist on the storage.
            expected_version: the version that the catalog must currently have.

        Returns:
            False if the table was already at the version.

        Raises:
            UnsupportedOperationError: (0) the catalog has no versions of its own.
            ConcurrentModificationError: (14) the table is at neither version; a PassedVersionError if it is
                past `expected_version`.
            InvalidTableStateError: (19) the storage is the version authority, or lacks the version.
        """
        advanced = self._managing("advance_table_version")(
            self._table.parts, expected=expected_version, new=version
        )
        return bool(advanced)

    @_verb("changing the version authority of", writes=True)
    def set_version_authority(self, authority: Literal["catalog", "storage"]) -> bool:
        """Let the catalog, or the storage, decide the versions of the table from now on.

        Args:
            authority: ``catalog``, which must support compare-and-set, or ``storage``.

        Returns:
            False if it was the authority already.

        Raises:
            UnsupportedOperationError: (0) the catalog can't decide versions.
            InvalidInputError: (13) `authority` is neither.
            ConcurrentModificationError: (14) concurrent writers won every attempt.
            InvalidTableStateError: (19) catalog and storage disagree.
        """
        check_choice("authority", authority, tuple(VERSION_AUTHORITIES))
        convert = self._managing("convert_table")
        return bool(convert(self._table.parts, managed_by=VERSION_AUTHORITIES[authority]))

    def _managing(self, name: str) -> Callable[..., Any]:
        """Return an operation on the versions that a catalog of this package has."""
        found = getattr(self.lake.namespace, name, None)
        if found is None:
            raise spec_errors.UnsupportedOperationError(
                f"table {self.name}: {self.lake.namespace.namespace_id()} has no versions of tables: the "
                "storage decides them"
            )
        operation: Callable[..., Any] = found
        return operation

    def _write(self, rows: Any, change: Change, key: Key) -> WriteResult:
        from airflow_provider_lancens.spark.file_source import FileSource
        from airflow_provider_lancens.spark.write.row_sources import rows_of
        from airflow_provider_lancens.spark.write.write_rows import write_rows

        given = WriteIdentity.of(key)
        WriteRequest(change, given)  # refuses what contradicts before anything is read
        if isinstance(rows, Mapping):
            with _invalid_arguments("rows: "):
                rows = FileSource(**rows)
        given_rows = rows_of(rows, change, lambda: self.lake.spark, fingerprint=given.fingerprint)

        def commit(identity: WriteIdentity, begin: Begin) -> WriteResult:
            with self._resolved() as target:
                return write_rows(given_rows.rows, begin(target, WriteRequest(change, identity)))

        return self.lake.execution.write(
            PendingWrite(self._table, given, commit, given_rows.digest, change.conditions)
        )

    def _spark(self) -> SparkSession:
        return self.lake.spark

    @contextmanager
    def _resolved(self) -> Iterator[ResolvedTable]:
        from airflow_provider_lancens.spark.table.resolved_table import resolved_table

        with resolved_table(self.lake.source, self._table) as target:
            target.check_location(self._location, self._at)
            yield target

    def _opened_at(self, target: ResolvedTable, version: int) -> Table:
        return Table(self.lake, self._table, version, location=str(target.dataset.location))

    @contextmanager
    def _opened(self) -> Iterator[tuple[ResolvedTable, LanceDataset]]:
        from airflow_provider_lancens.spark.table.opened_version import open_version

        with self._resolved() as target:
            yield target, open_version(target, self._at)

    def _condition(self, target: ResolvedTable, dataset: LanceDataset, text: str | None) -> str | None:
        from airflow_provider_lancens.spark.table.opened_version import parse_filter

        return None if text is None else parse_filter(target, dataset, text).lance_sql

    def _number_of(
        self, target: ResolvedTable, version: VersionLike | None, argument: str = "version"
    ) -> int:
        """Return the number that an argument means, by default of the version that the table is opened at.

        Whether there is a version of a number that was given isn't looked up.

        Raises:
            TableVersionNotFoundError: (11) nothing was written yet, or there is no version of that time.
        """
        from airflow_provider_lancens.spark.table.version_lookup import WantedVersion

        if version is None and self._at is not None:
            return self._at
        number = WantedVersion.of(version, argument).find(target)
        if number is None:
            number = target.latest_version()
        if number is None:
            raise target.nothing_written()
        return number

    def _unread(self, target: ResolvedTable, bookmark: str, if_unavailable: IfUnavailable) -> UnreadVersions:
        from airflow_provider_lancens.spark.bookmarks import find_unread

        unread = find_unread(target, bookmark)
        found = unread.bookmark
        if found is not None and found.is_expired and if_unavailable == "fail":
            raise spec_errors.InvalidInputError(
                f"table {self.name}: bookmark {bookmark!r} has expired: it was at version {found.version}, "
                f"last moved at {found.moved_at}, and a clean-up at {found.expired_at} stopped protecting "
                "that version, so changes after it may be lost; read the whole table, such as with "
                "if_unavailable='read_all', replace the earlier results, and move the bookmark to the "
                "version that was read"
            )
        return unread if self._at is None else replace(unread, version=self._at)

    def _delete_name(self, name: str, if_missing: str, kind: str) -> bool:
        from airflow_provider_lancens.spark.bookmarks import delete_bookmark

        with self._resolved() as target:
            found = delete_bookmark(target, name)
        if not found:
            self._missing(if_missing, spec_errors.TableTagNotFoundError, f"{kind} {name!r}")
        return found

    def _staged(self, staged: Any) -> Table:
        """Return the table opened at a staged version, or at the version of a result that staged nothing."""
        if hasattr(staged, "as_dict"):
            staged = staged.as_dict()
        if isinstance(staged, Mapping):
            other = Table.of_result(self.lake, staged)
            if other.id != self.id:
                raise spec_errors.InvalidInputError(
                    f"staged: a result of table {self.name} is expected, got one of table {other.name}"
                )
            return other
        number = staged_number(staged)
        if number is None:
            raise spec_errors.InvalidInputError(
                "staged: expected the result of a write with stage=True, or its staged_version, got "
                f"{staged!r}"
            )
        return Table(self.lake, self._table, number)

    def _missing(self, if_missing: str, error: type[Exception], what: str) -> None:
        check_choice("if_missing", if_missing, ("fail", "skip"))
        if if_missing == "fail":
            raise error(f"table {self.name} has no {what}")


class Changes:
    """The rows of a table that changed between two versions; made by `Table.changes`."""

    def __init__(
        self,
        table: Table,
        previous: int,
        bookmark: str | None,
        position: int | None,
        if_unavailable: IfUnavailable,
    ) -> None:
        self.table = table
        """The table, opened at the last version of the range."""
        self._previous = previous
        self._bookmark = bookmark
        self._position = position
        """The bookmark's version when the range was fixed; None if it was new or expired."""
        self._if_unavailable = if_unavailable

    def __repr__(self) -> str:
        return f"Changes({self.table.name!r}, after version {self._previous}, up to {self.version})"

    @property
    def previous_version(self) -> int:
        """The version after which rows are changes; 0 if all are."""
        return self._previous

    @property
    def version(self) -> int:
        """The last version of the range."""
        return self.table._at or 0

    @property
    def is_empty(self) -> bool:
        """Whether no version of the range changed rows or columns, but at most maintenance was committed."""
        from airflow_provider_lancens.spark.table.history import is_maintenance, transactions_of

        table = self.table
        with table.lake.attempt(f"finding changes of table {table.name!r}"), table._opened() as (_, dataset):
            if not self._previous:
                return int(dataset.count_rows()) == 0
            if self._previous >= self.version:
                return True
            commits = transactions_of(dataset, self._previous)
            return all(commit is not None and is_maintenance(commit) for _, commit in commits)

    def read(
        self,
        *,
        columns: Columns = None,
        filter: str | None = None,  # noqa: A002 what Lance's own readers call it
    ) -> DataFrame:
        """Return the changed rows as a Spark DataFrame, with ``_change_type`` and ``_commit_version``.

        Args:
            columns: the columns, in this order; None reads all. ``_change_type`` and ``_commit_version``
                follow in any case.
            filter: a condition on the rows, see docs/conditions.md.

        Raises:
            TableNotFoundError: (4) the table isn't declared.
            TableVersionNotFoundError: (11) there is no such version, or it was cleaned up.
            TableColumnNotFoundError: (12) there is no such column.
            InvalidInputError: (13) a version is invalid, `version` is older than `after_version`, the filter
                is invalid or on columns that have changed, a column contains blobs, is listed twice or is
                named like a label, or the changes are unknown.
        """
        from airflow_provider_lancens.spark.changes.read_changes import read_changes

        table = self.table
        with table.lake.attempt(f"reading changes of table {table.name!r}"):
            check_arguments(Changes.read, (), {"columns": columns, "filter": filter})
            spark, execution = table.lake.spark, table.lake.execution
            with table._resolved() as target:
                execution.record_read(table._table, target.dataset.location, self.version, self._previous)
                return read_changes(
                    spark,
                    target,
                    after_version=self._previous,
                    version=self.version,
                    columns=columns,
                    filter=filter,
                    if_unavailable=self._if_unavailable,
                )

    def __enter__(self) -> Self:
        if self._bookmark is None:
            raise spec_errors.InvalidInputError(
                "changes: `with` moves a bookmark at the end, and none was given; pass bookmark=..."
            )
        if self.version >= FIRST_STAGED:
            raise spec_errors.InvalidInputError(
                f"changes: `with` moves bookmark {self._bookmark!r} to the version that is read, and version "
                f"{self.version} is staged, so that no other version follows it; publish it first, or read "
                "its changes without `with`"
            )
        start = f"{self._bookmark}@{self.table.name}/{self._previous}"
        is_new = self.version > self._previous
        self.table.lake.execution.begin_range(start if is_new else f"{start}/empty")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        table, execution = self.table, self.table.lake.execution
        execution.end_range()
        if kind is not None or self._bookmark is None or self.version <= (self._position or 0):
            return
        from airflow_provider_lancens.spark.bookmarks import advance_bookmark, common_end, forget_range

        moving = f"moving bookmark {self._bookmark!r} of table {table.name!r}"
        execution_id, version = execution.execution_id, self.version
        with table.lake.attempt(moving), table._resolved() as target:
            files = target.dataset.manifests
            if execution_id:
                version = common_end(files, self._bookmark, execution_id, self._previous, version)
            advance_bookmark(target, self._bookmark, expected=self._position, version=version)
            if execution_id:
                forget_range(files, self._bookmark, execution_id)


def _number_in(result: Mapping[str, Any], field: str) -> int | None:
    """Return a version in a result, which a template may have rendered as text."""
    value = result.get(field)
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        return int(value)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise spec_errors.InvalidInputError(f"{field}: expected a whole number of at least 0, got {value!r}")


def _parsed_location(value: Any) -> str | None:
    """Return the location of a result; None if it has none.

    Raises:
        InvalidInputError: (13) it isn't text, or not a location that a table may have.
    """
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise spec_errors.InvalidInputError(f"location: expected text, got {value!r}")
    return str(Location.of(described_location(value)))


def _needed_key(key: object) -> WriteIdentity:
    identity = WriteIdentity.of(key)  # type: ignore[arg-type]
    if identity.key is None:
        raise spec_errors.InvalidInputError("key: expected text that identifies a write, got None")
    return identity


def _identity_of(key: Key, derived: str) -> WriteIdentity:
    """Return the identity of a write whose fingerprint isn't given, since its arguments are known."""
    identity = WriteIdentity.of(key)
    if identity.fingerprint is not None:
        raise spec_errors.InvalidInputError(f"fingerprint: expected None here, since {derived}")
    return identity


def _options(argument: str, kind: type[T], value: Any) -> T | None:
    check_fields(argument, value, kind)
    return kind(**value) if isinstance(value, Mapping) else value


def _index_spec(argument: str, value: Any) -> IndexSpec:
    from airflow_provider_lancens.spark.maintenance import IndexSpec

    with _invalid_arguments(f"{argument}: "):
        return _options(argument, IndexSpec, value) or value


@contextmanager
def _invalid_arguments(argument: str = "") -> Iterator[None]:
    """Convert the errors of options, which name what is invalid, to the specification's."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if isinstance(error, spec_errors.LanceNamespaceError):
            raise
        raise spec_errors.InvalidInputError(f"{argument}{error}") from error
