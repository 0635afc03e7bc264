"""The data source itself: what Spark asks it for, on the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NoReturn

from lance_namespace.errors import InvalidInputError, UnsupportedOperationError
from pyspark.sql.datasource import DataSource

from airflow_provider_lancens.spark.datasource.options import ReadWords, namespace_of, write_order
from airflow_provider_lancens.spark.datasource.reader import LanceReader, reader_class
from airflow_provider_lancens.spark.datasource.writer import LanceWriter
from airflow_provider_lancens.spark.reader import plan_read

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from airflow_provider_lancens.spark.target import NamespaceSpec
    from airflow_provider_lancens.spark.tasks import ReadTask


class LanceDataSource(DataSource):
    """Lance tables as ``format("lancens")``; `docs/data-source.md` has the options.

    Register it by ``spark.dataSource.register(LanceDataSource)``. Where its namespace needs a
    secret, register what `lance_data_source` makes instead: options are no place for one.
    """

    format_name: ClassVar[str] = "lancens"
    namespace: ClassVar[NamespaceSpec | None] = None
    """The namespace of all its tables; None where the options ``namespace.*`` say it."""

    _task: ReadTask | None = None

    @classmethod
    def name(cls) -> str:
        """What goes into `format`."""
        return cls.format_name

    def schema(self) -> StructType:
        """The columns that are read. The version is settled here: Spark keeps this very instance.

        Raises:
            TableNotFoundError: (4) the table isn't declared.
            TableVersionNotFoundError: (11) it has no such version, or none at all yet.
            TableColumnNotFoundError: (12) it has no such column.
            InvalidInputError: (13) an option is wrong, or Spark has no type for a column.
        """
        words = ReadWords.of(self.options)
        schema, self._task = plan_read(
            namespace_of(self.options, self.namespace),
            words.table,
            version=words.version,
            columns=words.columns,
            condition=words.filter,
        )
        return schema

    def reader(self, schema: StructType) -> LanceReader:  # noqa: ARG002 it is what `schema` answered
        """Read what `schema` settled.

        Raises:
            InvalidInputError: (13) the caller gave a schema, so that there was no asking for it.
        """
        if self._task is None:
            raise InvalidInputError(
                "schema: a table has its own, and takes none of spark.read.schema(...) or CREATE TABLE; "
                "choose columns by the option 'columns'"
            )
        return reader_class()(self._task)

    def writer(self, schema: StructType, overwrite: bool) -> LanceWriter:
        """Plan a write; this is where it is refused, before anything is written.

        Raises:
            TableNotFoundError: (4) the table isn't declared.
            InvalidInputError: (13) an option is wrong, a column's type can't be stored, or the key was
                committed with other data.
            TableSchemaValidationError: (20) the columns don't fit.
        """
        table, order = write_order(self.options, overwrite)
        return LanceWriter.plan(namespace_of(self.options, self.namespace), table, order, schema)

    def streamReader(self, schema: StructType) -> NoReturn:  # noqa: ARG002, N802 Spark's signature
        """Not offered.

        Raises:
            UnsupportedOperationError: (0) always.
        """
        raise _no_streams("readStream", "wait for a version and read it")

    def streamWriter(self, schema: StructType, overwrite: bool) -> NoReturn:  # noqa: ARG002, N802
        """Not offered.

        Raises:
            UnsupportedOperationError: (0) always.
        """
        raise _no_streams(
            "writeStream", "write each micro-batch by foreachBatch, with its number in the idempotency_key"
        )


def lance_data_source(namespace: NamespaceSpec, name: str = "lancens") -> type[LanceDataSource]:
    """A data source of one namespace, whose secrets then stand in no option, and so in no plan or page.

    Args:
        namespace: the words that make it. They travel within the class, wherever Spark takes that.
        name: what goes into `format`; of several namespaces each needs its own.

    Returns:
        A class for ``spark.dataSource.register``.
    """
    # Made on the spot, so that it pickles by value, and with it what it is bound to.
    return type("BoundLanceDataSource", (LanceDataSource,), {"namespace": namespace, "format_name": name})


def _no_streams(method: str, instead: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(f"{method}: Lance tables are not read or written as streams; {instead}")
