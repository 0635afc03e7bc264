"""Sources of an ingestion: a function of pinned tables, or files."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_lancens.hooks.template_args import parse_mapping, parse_table, parse_version
from airflow_provider_lancens.operators._spark.write_naming import fingerprint_of
from airflow_provider_lancens.spark.file_source import FileSource

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace

    from airflow_provider_lancens.identifiers import TableId
    from airflow_provider_lancens.lineage.task_lineage import DerivedColumn, FileRead, TableRead
    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
    from airflow_provider_lancens.spark.write.files.file_rows import FileRows
    from airflow_provider_lancens.spark.write.row_sources import Rows

Source = Callable[..., Any]
"""A function ``source(spark, **inputs, **op_kwargs)`` that returns a DataFrame."""


class IngestSource(Protocol):
    """The source of an ingestion, after its templates are rendered."""

    def fingerprint(self, target: ResolvedTable) -> str | None:
        """Return text that differs if the content to write differs; None if it can't be determined."""

    def rows(self, spark: Any, namespace: LanceNamespace) -> Rows:
        """Return the rows to write; `namespace` is that of the tables that are read."""

    def reads(self) -> Sequence[TableRead | FileRead]:
        """Return what is read, for OpenLineage."""

    def derived_columns(self, rows: Any) -> Mapping[str, DerivedColumn]:
        """Return where the columns of rows that were written come from, as far as it is known."""


@dataclass(frozen=True, slots=True)
class FilesOfTask:
    """Files that executors read directly."""

    files: FileSource

    @staticmethod
    def template_of(source: FileSource | Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a source as a mapping to render.

        Raises:
            TypeError, ValueError: it isn't a source, a field is unknown, or a field holds secrets that
                Airflow's UI would show; the message names it.
        """
        if isinstance(source, FileSource):
            source = {field.name: getattr(source, field.name) for field in fields(source)}
        if not isinstance(source, Mapping):
            raise TypeError(
                f"source={source!r}; allowed: a function source(spark, **inputs, **op_kwargs), a FileSource "
                "or the mapping of its fields"
            )
        try:
            FileSource.check_names(source)
        except ValueError as error:
            raise ValueError(f"source: {error}") from error
        if source.get("storage_options"):
            raise ValueError(
                "source: storage_options: not allowed, since Airflow's UI would show them; the "
                "files are read with the storage options of the Lance connection"
            )
        # Airflow renders what is in lists, not in tuples of our own making.
        return {name: list(value) if isinstance(value, tuple) else value for name, value in source.items()}

    @classmethod
    def parse(cls, rendered: Mapping[str, Any]) -> Self:
        """Create the source from its rendered fields.

        Raises:
            AirflowFailException: a field is invalid; the message names it.
        """
        try:
            return cls(FileSource.parse(rendered))
        except ValueError as error:
            raise AirflowFailException(f"source: {error}") from error

    def fingerprint(self, target: ResolvedTable) -> str | None:
        """See `IngestSource.fingerprint`."""
        from airflow_provider_lancens.spark.write.files.fingerprint import fingerprint_of_files

        return fingerprint_of_files(self.files, target.dataset.storage_options)

    def rows(self, spark: Any, namespace: LanceNamespace) -> FileRows:
        """See `IngestSource.rows`."""
        from airflow_provider_lancens.spark.write.files.file_rows import FileRows

        return FileRows(spark, self.files)

    def reads(self) -> Sequence[FileRead]:
        """See `IngestSource.reads`."""
        from airflow_provider_lancens.lineage.task_lineage import FileRead

        return [FileRead(path) for path in self.files.paths]

    def derived_columns(self, rows: FileRows) -> Mapping[str, DerivedColumn]:
        """See `IngestSource.derived_columns`: each is a column of the files, or a cast of one."""
        from airflow_provider_lancens.lineage.task_lineage import DerivedColumn

        return {
            name: DerivedColumn([origin], is_copy=origin not in self.files.casts)
            for name, origin in rows.origins.items()
        }


@dataclass(frozen=True, slots=True)
class FunctionOfTask:
    """A function that returns a DataFrame."""

    function: Source
    inputs: Mapping[str, Input]
    op_kwargs: Mapping[str, Any]

    @classmethod
    def parse(cls, function: Source, inputs: Any, op_kwargs: Any) -> Self:
        """Check that the function can be called with its inputs, and parse them.

        Raises:
            AirflowFailException: it can't be called so, or an input is invalid; the message names it.
        """
        inputs, op_kwargs = parse_mapping("inputs", inputs), parse_mapping("op_kwargs", op_kwargs)
        both = sorted(set(inputs) & set(op_kwargs))
        if both:
            raise AirflowFailException(
                f"inputs and op_kwargs both pass {', '.join(both)} to source; rename one of them"
            )
        try:
            inspect.signature(function).bind(None, **{**inputs, **op_kwargs})
        except TypeError as error:
            raise AirflowFailException(
                f"source={_name(function)}: it cannot be called with (spark, "
                f"{', '.join([*inputs, *op_kwargs])}): {error}"
            ) from error
        parsed = {name: _input(f"inputs[{name!r}]", value) for name, value in inputs.items()}
        return cls(function, parsed, op_kwargs)

    def fingerprint(self, target: ResolvedTable) -> str:
        """See `IngestSource.fingerprint`."""
        return fingerprint_of({name: one.identity for name, one in self.inputs.items()}, self.op_kwargs)

    def rows(self, spark: Any, namespace: LanceNamespace) -> Rows:
        """See `IngestSource.rows`.

        Raises:
            AirflowFailException: see `frame`.
        """
        from airflow_provider_lancens.spark.write.row_sources import FrameRows

        return FrameRows(self.frame(spark, namespace))

    def reads(self) -> Sequence[TableRead]:
        """See `IngestSource.reads`: the pinned tables; what else a function reads isn't known."""
        return [one.lineage() for one in self.inputs.values()]

    def derived_columns(self, rows: Any) -> Mapping[str, DerivedColumn]:
        """See `IngestSource.derived_columns`: a function may compute its columns from anything."""
        return {}

    def frame(self, spark: Any, namespace: LanceNamespace) -> Any:
        """Return the DataFrame that the function returns.

        Args:
            spark: the session.
            namespace: the namespace of the tables that are read.

        Raises:
            AirflowFailException: the function returned something else than a DataFrame.
        """
        frames = {name: one.read(spark, namespace) for name, one in self.inputs.items()}
        frame = self.function(spark, **frames, **self.op_kwargs)
        if not hasattr(frame, "mapInArrow"):
            raise AirflowFailException(
                f"source={_name(self.function)}: it returned {type(frame).__name__}; it must return "
                "a DataFrame"
            )
        return frame


class Input(Protocol):
    """What a function gets as a DataFrame."""

    @property
    def identity(self) -> tuple[Any, ...]:
        """What decides its rows, for the fingerprint of an ingestion."""

    def read(self, spark: Any, namespace: LanceNamespace) -> Any:
        """Return its rows as a DataFrame."""

    def lineage(self) -> TableRead:
        """Describe it for OpenLineage."""


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """A table at a version, as in the XCom of a sensor or of an ingestion."""

    table: TableId
    version: int

    @classmethod
    def parse(cls, argument: str, value: Any) -> Self:
        """Parse an XCom, ignoring its other keys.

        Raises:
            AirflowFailException: table or version is missing or invalid; the message names the argument.
        """
        if not isinstance(value, Mapping) or not {"table", "version"} <= set(value):
            raise AirflowFailException(
                f"{argument}={value!r}; allowed: a mapping with 'table' and 'version', such as the XCom of "
                "LanceTableVersionSensor or of another ingestion"
            )
        version = parse_version(f"{argument}['version']", value["version"])
        if version is None:
            raise AirflowFailException(f"{argument}: its version is {value['version']!r}; expected a number")
        return cls(parse_table(str(value["table"])), version)

    @property
    def identity(self) -> tuple[str, int]:
        """See `Input.identity`."""
        return (str(self.table), self.version)

    def read(self, spark: Any, namespace: LanceNamespace) -> Any:
        """See `Input.read`."""
        from airflow_provider_lancens.spark.read.table_reader import read_table

        return read_table(spark, namespace, self.table, version=self.version)

    def lineage(self) -> TableRead:
        """See `Input.lineage`."""
        from airflow_provider_lancens.lineage.task_lineage import TableRead

        return TableRead(self.table, self.version)


_READ_OPTIONS = {"filter", "if_unavailable"}


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """What changed in a table between two versions, as in the XCom of a sensor."""

    after_version: int | None
    pinned: PinnedTable

    @classmethod
    def parse(cls, argument: str, value: Any) -> Self:
        """Parse an XCom, ignoring its other keys.

        Raises:
            AirflowFailException: the table or a version is missing or invalid, or arguments of
                `read_changes` are among the keys; the message names it.
        """
        pinned = PinnedTable.parse(argument, value)
        if options := sorted(_READ_OPTIONS & set(value)):
            raise _no_options(argument, options)
        if "previous_version" not in value:
            raise AirflowFailException(
                f"{argument}={value!r}; allowed: a mapping with 'table', 'previous_version' and 'version', "
                "such as the XCom of LanceTableVersionSensor or LanceFindChangesOperator"
            )
        return cls(parse_version(f"{argument}['previous_version']", value["previous_version"]), pinned)

    @property
    def identity(self) -> tuple[str, int, int | None]:
        """See `Input.identity`."""
        return (*self.pinned.identity, self.after_version)

    def read(self, spark: Any, namespace: LanceNamespace, **arguments: Any) -> Any:
        """See `Input.read`.

        Args:
            spark: the session.
            namespace: that of the table.
            arguments: further ones of `read_changes`.
        """
        from airflow_provider_lancens.spark.changes.read_changes import read_changes

        given = {"after_version": self.after_version, "version": self.pinned.version, **arguments}
        return read_changes(spark, namespace, self.pinned.table, **given)

    def lineage(self) -> TableRead:
        """See `Input.lineage`."""
        return replace(self.pinned.lineage(), reads_changes=True, after_version=self.after_version)


def _input(argument: str, value: Any) -> Input:
    if isinstance(value, Mapping) and "changes" in value:
        if options := sorted(set(value) - {"changes"}):
            raise _no_options(argument, options)
        return ChangedRows.parse(f"{argument}['changes']", value["changes"])
    return PinnedTable.parse(argument, value)


def _no_options(argument: str, options: list[str]) -> AirflowFailException:
    return AirflowFailException(
        f"{argument}: {options} aren't allowed here; pass them as arguments of lake.read_changes or "
        "read_changes"
    )


def _name(function: Source) -> str:
    return getattr(function, "__qualname__", repr(function))
