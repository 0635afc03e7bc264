"""What an ingesting task writes: what a function makes of pinned tables, or what is in files."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol, Self

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_lancens.hooks.arguments import parse_mapping, parse_table, parse_version
from airflow_provider_lancens.operators.naming import fingerprint_of
from airflow_provider_lancens.spark.files.source import FileSource

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace

    from airflow_provider_lancens.spark.options import WriteResult

Source = Callable[..., Any]
"""A function ``source(spark, **inputs, **op_kwargs)`` that returns a DataFrame."""


class IngestSource(Protocol):
    """What is written, once all words are rendered."""

    def fingerprint(self, namespace: LanceNamespace, table: str) -> str | None:
        """Words that differ where what is written does; None where nothing can be said."""

    def write(self, spark: Any, namespace: LanceNamespace, table: str, **how: Any) -> WriteResult:
        """Write it, with the arguments that `write_table` and `write_files` share."""


@dataclass(frozen=True, slots=True)
class FilesOfTask:
    """Files that executors read themselves."""

    files: FileSource

    @staticmethod
    def words_of(source: FileSource | Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a source, to be rendered.

        Raises:
            TypeError, ValueError: it is none, a field is unknown, or a field holds what Airflow's pages
                would show; the message names it.
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
                "source: storage_options: Airflow's pages would show them; the files are read with those of "
                "the lance connection"
            )
        # Airflow renders what is in lists, not in tuples of our own making.
        return {name: list(value) if isinstance(value, tuple) else value for name, value in source.items()}

    @classmethod
    def parse(cls, words: Mapping[str, Any]) -> Self:
        """The source that rendered fields describe.

        Raises:
            AirflowFailException: a field can't be what it is; the message names it.
        """
        try:
            return cls(FileSource.parse(words))
        except ValueError as error:
            raise AirflowFailException(f"source: {error}") from error

    def fingerprint(self, namespace: LanceNamespace, table: str) -> str | None:
        """See `IngestSource.fingerprint`."""
        from airflow_provider_lancens.spark.files.fingerprint import fingerprint_files

        return fingerprint_files(self.files, namespace, table)

    def write(self, spark: Any, namespace: LanceNamespace, table: str, **how: Any) -> WriteResult:
        """See `IngestSource.write`."""
        from airflow_provider_lancens.spark.files.writer import write_files

        return write_files(spark, self.files, namespace, table, **how)


@dataclass(frozen=True, slots=True)
class FunctionOfTask:
    """A function that makes a DataFrame."""

    function: Source
    inputs: Mapping[str, PinnedTable]
    op_kwargs: Mapping[str, Any]

    @classmethod
    def parse(cls, function: Source, inputs: Any, op_kwargs: Any) -> Self:
        """The function with its pinned inputs, once it is clear that it can be called with them.

        Raises:
            AirflowFailException: it can't, or an input can't be what it is; the message names it.
        """
        inputs, op_kwargs = parse_mapping("inputs", inputs), parse_mapping("op_kwargs", op_kwargs)
        both = sorted(set(inputs) & set(op_kwargs))
        if both:
            raise AirflowFailException(
                f"inputs and op_kwargs both give {', '.join(both)} to source; rename one"
            )
        try:
            inspect.signature(function).bind(None, **{**inputs, **op_kwargs})
        except TypeError as error:
            raise AirflowFailException(
                f"source={_name(function)}: it can't be called with (spark, "
                f"{', '.join([*inputs, *op_kwargs])}): {error}"
            ) from error
        pinned = {name: PinnedTable.parse(f"inputs[{name!r}]", value) for name, value in inputs.items()}
        return cls(function, pinned, op_kwargs)

    def fingerprint(self, namespace: LanceNamespace, table: str) -> str:
        """See `IngestSource.fingerprint`."""
        return fingerprint_of({name: astuple(pin) for name, pin in self.inputs.items()}, self.op_kwargs)

    def write(self, spark: Any, namespace: LanceNamespace, table: str, **how: Any) -> WriteResult:
        """See `IngestSource.write`."""
        from airflow_provider_lancens.spark.reader import read_table
        from airflow_provider_lancens.spark.writer import write_table

        frames = {
            name: read_table(spark, namespace, pinned.table, version=pinned.version)
            for name, pinned in self.inputs.items()
        }
        return write_table(self._frame(spark, frames), namespace, table, **how)

    def _frame(self, spark: Any, frames: Mapping[str, Any]) -> Any:
        frame = self.function(spark, **frames, **self.op_kwargs)
        if not hasattr(frame, "mapInArrow"):
            raise AirflowFailException(
                f"source={_name(self.function)}: it returned {type(frame).__name__}; "
                "it has to return a DataFrame"
            )
        return frame


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """A table at a version, as a sensor or an ingestion hands it on."""

    table: str
    version: int

    @classmethod
    def parse(cls, argument: str, value: Any) -> Self:
        """Read it from an XCom; what else stands in there is left alone.

        Raises:
            AirflowFailException: table or version is missing or can't be what it is; the message names
                the argument.
        """
        if not isinstance(value, Mapping) or not {"table", "version"} <= set(value):
            raise AirflowFailException(
                f"{argument}={value!r}; allowed: a mapping with 'table' and 'version', such as the XCom of "
                "LanceTableVersionSensor or of another ingestion"
            )
        version = parse_version(f"{argument}['version']", value["version"])
        if version is None:
            raise AirflowFailException(f"{argument}: its version is {value['version']!r}; pin it by a number")
        return cls(str(parse_table(str(value["table"]))), version)


def _name(function: Source) -> str:
    return getattr(function, "__qualname__", repr(function))
