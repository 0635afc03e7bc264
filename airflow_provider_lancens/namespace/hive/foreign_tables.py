"""Tables of a database that aren't Lance's: their format, and why Spark may not be able to read one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_VIEWS = {"VIRTUAL_VIEW": "a view", "MATERIALIZED_VIEW": "a materialized view"}
_FORMATS = {
    "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe": "parquet",
    "org.apache.hadoop.hive.ql.io.orc.OrcSerde": "orc",
    "org.apache.hadoop.hive.serde2.avro.AvroSerDe": "avro",
    "org.apache.hadoop.hive.serde2.OpenCSVSerde": "csv",
    "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe": "text",
    "org.apache.hadoop.hive.serde2.RegexSerDe": "text",
    "org.apache.hadoop.hive.serde2.columnar.ColumnarSerDe": "rcfile",
    "org.apache.hadoop.hive.serde2.columnar.LazyBinaryColumnarSerDe": "rcfile",
}
"""SerDes that Spark has, or has a reader of its own for."""
_PROVIDER, _TABLE_TYPE = "spark.sql.sources.provider", "table_type"
_FORMATS_OF_SPARK = ("parquet", "orc", "csv", "json", "text", "avro")
_LAKES = {"delta": "a Delta table", "iceberg": "an Iceberg table", "hudi": "a Hudi table"}


@dataclass(frozen=True, slots=True)
class ForeignTable:
    """A table or a view of the metastore that is not a Lance table."""

    name: str
    """Name of the table in its database."""
    format: str | None
    """Format of its files, such as ``parquet`` or ``delta``; None for a view, or where it is unknown."""
    partitioned_by: tuple[str, ...]
    """The columns whose values are in the names of its folders."""
    obstacle: str | None
    """Why Spark, without further jars, can't read it, such as ``is a view``; None if it can."""


def foreign_table(raw: Any) -> ForeignTable:
    """Describe a table, as the metastore returns it, that isn't a Lance table."""
    parameters = {key.lower(): value for key, value in (raw.parameters or {}).items()}
    serde = raw.sd.serdeInfo.serializationLib if raw.sd and raw.sd.serdeInfo else None
    kind = _lake_of(parameters) or _format_of(parameters, serde)
    return ForeignTable(
        name=raw.tableName,
        format=None if raw.tableType in _VIEWS else kind,
        partitioned_by=tuple(column.name for column in raw.partitionKeys or ()),
        obstacle=_obstacle(raw.tableType, parameters, serde, kind),
    )


def _lake_of(parameters: Mapping[str, str]) -> str | None:
    named = {parameters.get(key, "").lower() for key in (_PROVIDER, _TABLE_TYPE)}
    return next((lake for lake in _LAKES if lake in named), None)


def _format_of(parameters: Mapping[str, str], serde: str | None) -> str | None:
    provider = parameters.get(_PROVIDER, "").lower()
    return provider if provider in _FORMATS_OF_SPARK else _FORMATS.get(serde or "")


def _obstacle(
    table_type: str, parameters: Mapping[str, str], serde: str | None, kind: str | None
) -> str | None:
    if table_type in _VIEWS:
        return f"is {_VIEWS[table_type]}"
    if parameters.get("transactional", "").lower() == "true":
        return "is an ACID table (transactional=true), whose files only Hive can merge"
    if kind in _LAKES:
        return f"is {_LAKES[kind]}, which Spark reads with the jars of that format"
    if handler := parameters.get("storage_handler"):
        return f"has the storage handler {handler}"
    if kind is None and (provider := parameters.get(_PROVIDER)):
        return f"has Spark's provider {provider}"
    if kind is None:
        return f"has the SerDe {serde}, which Spark doesn't have" if serde else "has no SerDe"
    return None
