"""The data source: its entry points for Spark, on the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pyspark.sql.datasource import DataSource

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.datasource.batch_source import LanceReader, LanceWriter
from airflow_provider_lancens.spark.datasource.source_options import (
    ReadConfig,
    StreamReadConfig,
    epoch_request,
    is_stream,
    namespace_of,
    write_request,
)
from airflow_provider_lancens.spark.datasource.stream_source import (
    LanceStreamReader,
    LanceStreamWriter,
    plan_stream,
    stream_reader,
)
from airflow_provider_lancens.spark.read import plan_read

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from airflow_provider_lancens.spark.read import ReadTask
    from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec


class LanceDataSource(DataSource):
    """Lance tables as ``format("lancens")``; `docs/data-source.md` has the options.

    Register it by ``spark.dataSource.register(LanceDataSource)``. If its namespace needs a
    secret, register the class that `lance_data_source` returns instead: Spark may log options.
    """

    format_name: ClassVar[str] = "lancens"
    namespace: ClassVar[NamespaceSpec | None] = None
    """The namespace of all its tables; None to use the options ``namespace.*``."""

    _task: ReadTask | None = None
    _version: int | None = None
    """The version whose columns `schema` has returned; a stream follows them from there."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return cls.format_name

    def schema(self) -> StructType:
        """Return the columns to read. The version is fixed here: Spark keeps this very instance.

        Raises:
            TableNotFoundError: (4) the table isn't declared.
            TableVersionNotFoundError: (11) it has no such version, or none at all yet.
            TableColumnNotFoundError: (12) it has no such column.
            InvalidInputError: (13) an option is invalid, or Spark has no type for a column.
        """
        if is_stream(self.options):
            stream = StreamReadConfig.of(self.options)
            schema, self._version = plan_stream(namespace_of(self.options, self.namespace), stream)
            return schema
        config = ReadConfig.of(self.options)
        schema, self._task = plan_read(
            namespace_of(self.options, self.namespace),
            config.table,
            wanted=config.wanted,
            columns=config.columns,
            condition=config.filter,
            blobs=config.blobs,
        )
        self._version = self._task.version
        return schema

    def reader(self, schema: StructType) -> LanceReader:  # noqa: ARG002 it is what `schema` answered
        """Return the reader that `schema` planned.

        Raises:
            InvalidInputError: (13) the caller gave a schema, so that Spark didn't call `schema`.
        """
        if is_stream(self.options):
            ReadConfig.of(self.options)  # which refuses the options of a stream
        if self._task is None:
            raise spec_errors.InvalidInputError(
                "schema: a Lance table has its own, which spark.read.schema(...) and CREATE TABLE "
                "cannot set; select columns with the option 'columns'"
            )
        return LanceReader(self._task)

    def writer(self, schema: StructType, overwrite: bool) -> LanceWriter:
        """Plan a write, or refuse it before anything is written.

        Raises:
            TableNotFoundError: (4) the table isn't declared.
            InvalidInputError: (13) an option is invalid, a column's type can't be stored, or the key was
                committed with other data.
            TableSchemaValidationError: (20) the columns don't fit.
        """
        table, request = write_request(self.options, overwrite)
        return LanceWriter.plan(namespace_of(self.options, self.namespace), table, request, schema)

    def streamReader(self, schema: StructType) -> LanceStreamReader:
        """Return a reader of the rows that the table gains.

        Raises:
            InvalidInputError: (13) an option is invalid, or needs a newer PySpark.
        """
        config = StreamReadConfig.of(self.options)
        return stream_reader(namespace_of(self.options, self.namespace), config, schema, self._version)

    def streamWriter(self, schema: StructType, overwrite: bool) -> LanceStreamWriter:
        """Return a writer of epochs; each is planned when Spark sends it to the executors.

        Raises:
            InvalidInputError: (13) an option is invalid.
        """
        table, request, query_id = epoch_request(self.options, overwrite)
        namespace = namespace_of(self.options, self.namespace)
        return LanceStreamWriter(namespace, table, request, schema, query_id)


def lance_data_source(namespace: NamespaceSpec, name: str = "lancens") -> type[LanceDataSource]:
    """Return a data source of one namespace, whose secrets then appear in no option, plan or web page.

    Args:
        namespace: the namespace; it is pickled with the class.
        name: the name for `format`; each of several namespaces needs its own.

    Returns:
        A class for ``spark.dataSource.register``.
    """
    # Created dynamically, so that it is pickled by value, including its namespace.
    return type("BoundLanceDataSource", (LanceDataSource,), {"namespace": namespace, "format_name": name})
