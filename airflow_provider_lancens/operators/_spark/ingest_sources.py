"""Sources of an ingestion: a function of tables, or files."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException, airflow_errors
from airflow_provider_lancens.hooks.mapped_tasks import with_lists
from airflow_provider_lancens.hooks.template_args import check_condition, parse_mapping
from airflow_provider_lancens.operators._spark.fingerprints import fingerprint_of
from airflow_provider_lancens.operators._spark.pinned_inputs import parse_input
from airflow_provider_lancens.spark.file_source import FileSource
from airflow_provider_lancens.spark.function_inputs import WHOLE, FunctionInput, FunctionInputs, Reading

if TYPE_CHECKING:
    from airflow_provider_lancens.hooks.lance_hook import LanceHook
    from airflow_provider_lancens.identifiers import TableId
    from airflow_provider_lancens.lineage.task_lineage import DerivedColumn, FileRead, TableRead
    from airflow_provider_lancens.spark.execution import Execution
    from airflow_provider_lancens.spark.lance_catalog import LanceCatalog
    from airflow_provider_lancens.spark.options import Change
    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
    from airflow_provider_lancens.spark.write.files.file_writer import FileRows
    from airflow_provider_lancens.spark.write.row_sources import Rows

Source = Callable[..., Any]
"""A function ``source(spark, **inputs, **op_kwargs)`` that returns rows, see `rows_of`."""


class IngestSource(Protocol):
    """The source of an ingestion, after its templates are rendered."""

    def pinned(self, hook: LanceHook) -> Self:
        """Return it with the versions of its tables looked up, where only their identifiers are given."""

    def readings(self) -> Sequence[Reading]:
        """Return its possible reads, as far as the key and the fingerprint depend on them."""

    def fingerprint(self, target: ResolvedTable, reading: Reading) -> str | None:
        """Return text that differs if the content to write differs; None if it can't be determined."""

    def expect(self, fingerprint: str) -> None:
        """Take the fingerprint that the content must have, if it is of the kind that is checked again."""

    def rows(self, spark: Any, hook: LanceHook, change: Change) -> tuple[Rows, Reading]:
        """Return the rows to write by a change, and what was read; `hook` is the hook of the tables."""

    def reads(self, reading: Reading) -> Sequence[TableRead | FileRead]:
        """Return what is read, for OpenLineage."""

    def ranges(self, reading: Reading) -> Sequence[str]:
        """Return the start of each range of changes that was read."""

    def derived_columns(self, rows: Any) -> Mapping[str, DerivedColumn]:
        """Return the origins of the written columns, as far as they are known."""


@dataclass(slots=True)
class FileIngestSource:
    """Files that executors read directly."""

    files: FileSource
    _fingerprint: str | None = field(default=None, init=False)
    """The newest fingerprint of the files, which they must still have when they are read."""

    @staticmethod
    def template_of(source: FileSource | Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a source as a mapping to render.

        Raises:
            TypeError, ValueError: it isn't a source, a field is unknown, or a field holds secrets that
                Airflow's UI would show; the message names it.
        """
        if isinstance(source, FileSource):
            source = {item.name: getattr(source, item.name) for item in fields(source)}
        if not isinstance(source, Mapping):
            raise TypeError(
                "source: expected a function source(spark, **inputs, **op_kwargs), a FileSource or a mapping "
                f"of its fields, got {source!r}"
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
            AirflowFailException: a field is invalid, or the filter is the text of True or False; the message
                names it.
        """
        check_condition("source: filter", rendered.get("filter"))
        try:
            return cls(FileSource.parse(rendered))
        except ValueError as error:
            raise AirflowFailException(f"source: {error}") from error

    def pinned(self, hook: LanceHook) -> Self:
        """See `IngestSource.pinned`."""
        return self

    def readings(self) -> Sequence[Reading]:
        """See `IngestSource.readings`: no changes."""
        return [WHOLE]

    def fingerprint(self, target: ResolvedTable, reading: Reading = WHOLE) -> str | None:
        """See `IngestSource.fingerprint`."""
        from airflow_provider_lancens.spark.write.files.file_plan import fingerprint_of_files

        self._fingerprint = fingerprint_of_files(self.files, target.dataset.storage_options)
        return self._fingerprint

    def expect(self, fingerprint: str) -> None:
        """See `IngestSource.expect`: a fingerprint of `fingerprint_files` is checked again."""
        from airflow_provider_lancens.spark.write.files.file_plan import is_of_files

        if is_of_files(fingerprint):
            self._fingerprint = fingerprint

    def rows(self, spark: Any, hook: LanceHook, change: Change) -> tuple[FileRows, Reading]:
        """See `IngestSource.rows`."""
        from airflow_provider_lancens.spark.write.files.file_writer import FileRows

        return FileRows(spark, self.files, self._fingerprint), WHOLE

    def reads(self, reading: Reading = WHOLE) -> Sequence[FileRead]:
        """See `IngestSource.reads`."""
        from airflow_provider_lancens.lineage.task_lineage import FileRead

        return [FileRead(path) for path in self.files.paths]

    def ranges(self, reading: Reading = WHOLE) -> Sequence[str]:
        """See `IngestSource.ranges`."""
        return []

    def derived_columns(self, rows: FileRows) -> Mapping[str, DerivedColumn]:
        """See `IngestSource.derived_columns`: each is a column of the files, or a cast of one."""
        from airflow_provider_lancens.lineage.task_lineage import DerivedColumn

        return {
            name: DerivedColumn([origin], is_copy=origin not in self.files.casts)
            for name, origin in rows.origins.items()
        }


@dataclass(frozen=True, slots=True)
class FunctionIngestSource:
    """A function that returns rows."""

    function: Source
    inputs: FunctionInputs
    """The inputs that are not in `newest`."""
    op_kwargs: Mapping[str, Any]
    newest: Mapping[str, TableId] = field(default_factory=dict)
    """The inputs whose version is still to be looked up."""

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
        _check_parameters(function, inputs, op_kwargs)
        parsed = {name: parse_input(f"inputs[{name!r}]", value) for name, value in inputs.items()}
        pinned = {name: value for name, value in parsed.items() if isinstance(value, FunctionInput)}
        newest = {name: value for name, value in parsed.items() if not isinstance(value, FunctionInput)}
        return cls(function, FunctionInputs(pinned), with_lists(op_kwargs), newest)

    def pinned(self, hook: LanceHook) -> Self:
        """See `IngestSource.pinned`."""
        if not self.newest:
            return self
        found = {name: hook.table(str(table)).at() for name, table in self.newest.items()}
        tables = {
            name: FunctionInput(table.name, table.version or 0, location=table.location)
            for name, table in found.items()
        }
        return replace(self, inputs=FunctionInputs({**self.inputs.tables, **tables}), newest={})

    def readings(self) -> Sequence[Reading]:
        """See `IngestSource.readings`."""
        return self.inputs.readings()

    def fingerprint(self, target: ResolvedTable, reading: Reading) -> str:
        """See `IngestSource.fingerprint`."""
        return fingerprint_of(self.inputs.identity(reading), self.op_kwargs)

    def expect(self, fingerprint: str) -> None:
        """See `IngestSource.expect`: pinned inputs don't change."""

    def rows(self, spark: Any, hook: LanceHook, change: Change) -> tuple[Rows, Reading]:
        """See `IngestSource.rows`.

        Raises:
            AirflowFailException: the function returned something else than rows, or the change isn't possible
                with such rows.
        """
        from airflow_provider_lancens.spark.write.row_sources import rows_of

        returned, reading = self.returned(spark, hook)
        with airflow_errors(f"writing what source={_name(self.function)} has returned"):
            return rows_of(returned, change, lambda: spark).rows, reading

    def reads(self, reading: Reading) -> Sequence[TableRead]:
        """See `IngestSource.reads`: the inputs; what else a function reads isn't known."""
        from airflow_provider_lancens.identifiers import TableId
        from airflow_provider_lancens.lineage.task_lineage import TableRead

        return [
            TableRead(
                TableId.parse(table.table),
                table.version,
                reads_changes=name in reading,
                after_version=(table.previous_version or None) if name in reading else None,
            )
            for name, table in self.inputs.tables.items()
        ]

    def ranges(self, reading: Reading) -> Sequence[str]:
        """See `IngestSource.ranges`."""
        return self.inputs.ranges(reading)

    def derived_columns(self, rows: Any) -> Mapping[str, DerivedColumn]:
        """See `IngestSource.derived_columns`: a function may compute its columns from anything."""
        return {}

    def returned(self, spark: Any, hook: LanceHook) -> tuple[Any, Reading]:
        """Return what the function returns, and what it has read.

        Args:
            spark: the session.
            hook: the hook of the tables that are read.
        """

        def catalog(execution: Execution) -> LanceCatalog:
            return hook.catalog(spark=spark, execution=execution)

        return self.inputs.call(self.function, spark, catalog, self.op_kwargs)


def _check_parameters(function: Source, inputs: Mapping[str, Any], op_kwargs: Mapping[str, Any]) -> None:
    """Check that a function takes the session, and what is passed to it by name.

    Raises:
        AirflowFailException: it doesn't; the message has its parameters, the call, and what differs.
    """
    signature = inspect.signature(function)
    try:
        signature.bind(None, **{**inputs, **op_kwargs})
    except TypeError as error:
        reasons = _misfits(signature, inputs, op_kwargs) or [str(error)]
    else:
        return
    called = ", ".join(["spark", *(f"{name}=…" for name in (*inputs, *op_kwargs))])
    raise AirflowFailException(
        f"source={_name(function)}: its parameters are {_shown(signature)}, but it is called with "
        f"({called}): {'; '.join(reasons)}. Expected: a function source(spark, **inputs, **op_kwargs) that "
        "returns rows"
    )


def _misfits(signature: inspect.Signature, inputs: Collection[str], op_kwargs: Collection[str]) -> list[str]:
    """Return what differs between a function's parameters and what is passed to it."""
    every = signature.parameters
    takes = {
        name: parameter for name, parameter in every.items() if parameter.kind in (*_BY_POSITION, *_NAMED)
    }
    first = next((name for name, parameter in takes.items() if parameter.kind in _BY_POSITION), None)
    has_any_name = any(parameter.kind is parameter.VAR_KEYWORD for parameter in every.values())
    has_any_position = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in every.values())
    reasons = []
    if first is None and not has_any_position:
        reasons.append("it has no parameter for the session, which is passed first, by position")
    elif first in inputs or first in op_kwargs:
        reasons.append(f"its first parameter, {first!r}, gets the session: put one for the session before it")
    for argument, names in (("inputs", inputs), ("op_kwargs", op_kwargs)):
        reasons += [
            f"{argument} passes {name!r}, and it has no parameter of that name"
            for name in names
            if not has_any_name and name not in takes
        ]
    reasons += [
        f"its parameter {name!r} gets no value: pass it in inputs or op_kwargs, or give it a default"
        for name, parameter in takes.items()
        if name != first
        and parameter.default is parameter.empty
        and name not in inputs
        and name not in op_kwargs
    ]
    return reasons


_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _shown(signature: inspect.Signature) -> str:
    """Return the parameters without types and defaults, which may be long."""
    plain = [
        parameter.replace(
            annotation=parameter.empty,
            default=parameter.empty if parameter.default is parameter.empty else ...,
        )
        for parameter in signature.parameters.values()
    ]
    return str(inspect.Signature(plain)).replace("Ellipsis", "…")


def _name(function: Source) -> str:
    return getattr(function, "__qualname__", repr(function))
