"""Hive tables with data, made without Hive and without Spark: files by Arrow, and entries by Thrift."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from hmsclient.genthrift.hive_metastore import ThriftHiveMetastore, ttypes
from pyarrow import csv, orc, parquet
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

QL = "org.apache.hadoop.hive.ql.io"
NULL = "__HIVE_DEFAULT_PARTITION__"


class HiveFormat(NamedTuple):
    """Classes of a format, and what writes a file of it."""

    reads: str
    writes: str
    serde: str
    write: Any


def _write_text(table: pa.Table, path: Path) -> None:
    csv.write_csv(table, path, csv.WriteOptions(include_header=False, delimiter="\x01", quoting_style="none"))


FORMATS = {
    "parquet": HiveFormat(
        f"{QL}.parquet.MapredParquetInputFormat",
        f"{QL}.parquet.MapredParquetOutputFormat",
        f"{QL}.parquet.serde.ParquetHiveSerDe",
        parquet.write_table,
    ),
    "orc": HiveFormat(
        f"{QL}.orc.OrcInputFormat", f"{QL}.orc.OrcOutputFormat", f"{QL}.orc.OrcSerde", orc.write_table
    ),
    "text": HiveFormat(
        "org.apache.hadoop.mapred.TextInputFormat",
        f"{QL}.HiveIgnoreKeyTextOutputFormat",
        "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
        _write_text,
    ),
}
TYPES = {
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.string(): "string",
    pa.date32(): "date",
}


class HiveDatabase:
    """A database of a metastore of Hive 2 or 3, with its tables in a folder."""

    def __init__(self, client: Any, name: str, folder: Path) -> None:
        self.name = name
        self._client = client
        self._folder = folder
        client.create_database(ttypes.Database(name, "", f"file:{folder}", {}))

    def create(
        self, name: str, rows: pa.Table, kind: str = "parquet", partitioned_by: Sequence[str] = ()
    ) -> None:
        """Create an external table with rows; its partitions are the values of the last columns."""
        columns = [field for field in rows.schema if field.name not in partitioned_by]
        keys = [rows.schema.field(column) for column in partitioned_by]
        folder = self._folder / name
        self.create_entry(name, kind, _described(columns), _described(keys), folder)
        if not keys:
            _write(rows, folder, kind)
            return
        names = [field.name for field in columns]
        partitions = []
        for values in rows.group_by(list(partitioned_by)).aggregate([]).to_pylist():
            texts = [NULL if value is None else str(value) for value in values.values()]
            part = folder.joinpath(*(f"{key}={text}" for key, text in zip(values, texts, strict=True)))
            _write(rows.filter(_matches(rows, values)).select(names), part, kind)
            storage = _storage(kind, _described(columns), part)
            partitions.append(
                ttypes.Partition(values=texts, dbName=self.name, tableName=name, sd=storage, parameters={})
            )
        self._client.add_partitions(partitions)

    def create_entry(
        self,
        name: str,
        kind: str = "parquet",
        columns: Sequence[Any] = (),
        keys: Sequence[Any] = (),
        folder: Path | None = None,
        table_type: str = "EXTERNAL_TABLE",
        serde: str | None = None,
        **parameters: str,
    ) -> None:
        """Create an entry without data."""
        described = columns or [ttypes.FieldSchema("x", "int", "")]
        storage = _storage(kind, described, folder or self._folder / name)
        if serde:
            storage.serdeInfo.serializationLib = serde
        is_view = table_type.endswith("VIEW")
        external = {"EXTERNAL": "TRUE"} if table_type == "EXTERNAL_TABLE" else {}
        self._client.create_table(
            ttypes.Table(
                tableName=name,
                dbName=self.name,
                tableType=table_type,
                sd=storage,
                partitionKeys=list(keys),
                parameters={**external, **parameters},
                viewOriginalText="SELECT 1" if is_view else None,
                viewExpandedText="SELECT 1" if is_view else None,
            )
        )


@contextmanager
def hive_database(uri: str, name: str, folder: Path) -> Iterator[HiveDatabase]:
    """Create a database, and connect for the block."""
    host, port = uri.removeprefix("thrift://").split(":")
    transport = TBufferedTransport(TSocket(host, int(port)))
    transport.open()
    try:
        yield HiveDatabase(ThriftHiveMetastore.Client(TBinaryProtocol(transport)), name, folder)
    finally:
        transport.close()


def _described(fields: Sequence[pa.Field]) -> list[Any]:
    return [ttypes.FieldSchema(field.name, _type(field.type), "") for field in fields]


def _type(arrow: pa.DataType) -> str:
    if pa.types.is_decimal(arrow):
        return f"decimal({arrow.precision},{arrow.scale})"
    return TYPES[arrow]


def _storage(kind: str, columns: Sequence[Any], folder: Path) -> Any:
    of = FORMATS[kind]
    return ttypes.StorageDescriptor(
        cols=list(columns),
        location=f"file:{folder}",
        inputFormat=of.reads,
        outputFormat=of.writes,
        serdeInfo=ttypes.SerDeInfo(serializationLib=of.serde, parameters={}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )


def _write(rows: pa.Table, folder: Path, kind: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)  # an entry of the metastore makes it, too
    FORMATS[kind].write(rows, folder / "000000_0")


def _matches(rows: pa.Table, values: Mapping[str, Any]) -> Any:
    mask = None
    for column, value in values.items():
        given = rows[column]
        found = given.is_null() if value is None else pc.fill_null(pc.equal(given, value), False)
        mask = found if mask is None else pc.and_(mask, found)
    return mask
