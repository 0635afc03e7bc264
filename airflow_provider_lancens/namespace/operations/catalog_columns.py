"""The columns of a dataset as its catalog table describes them, for clients that list or describe tables.

Lance never reads them. Names are in lower case, as metastores store them, and types are Hive's; a type that
Hive lacks is described by the nearest type that holds its values.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.error_types import StaleTableError
from airflow_provider_lancens.namespace.locations import normalize
from airflow_provider_lancens.namespace.metastore_protocol import (
    CatalogTable,
    Column,
    Metastore,
    ParameterChange,
)

if TYPE_CHECKING:
    import pyarrow as pa

_NAMES = {
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "uint8": "smallint",
    "uint16": "int",
    "uint32": "bigint",
    "uint64": "decimal(20,0)",
    "halffloat": "float",
    "float": "float",
    "double": "double",
    "date32[day]": "date",
    "date64[ms]": "date",
    "null": "void",
}
"""Hive's names by Arrow's; what isn't here is described as text."""
_TEXT = "string"
_FIELD_NAME = re.compile(r"[a-z_][a-z0-9_]*")
"""Names of a struct's fields that Hive's and Spark's grammars of types can both express."""
_MOST_DIGITS = 38
_BLOB = "lance.blob.v2"
_BYTES = "binary"


def update_catalog_columns(
    metastore: Metastore, table: TableId, schema: pa.Schema, location: str | None = None
) -> bool:
    """Describe the columns of a dataset in its catalog table.

    Args:
        metastore: the table's metastore.
        table: the table.
        schema: the columns of its newest version.
        location: where that version is stored; None for a table at any location.

    Returns:
        False if the catalog table described them already.

    Raises:
        StaleTableError: (14) the table of that name is at another location.
        TableNotFoundError: (4) there is no such table.
        InvalidInputError: (13) two names differ only in case, so the metastore can't describe both.
    """
    columns = catalog_columns(schema)

    def decide(found: CatalogTable) -> ParameterChange | None:
        if location is not None and normalize(found.location or "") != normalize(location):
            raise StaleTableError(f"table {table}: it was declared again while it was written to")
        return None if found.columns == columns else ParameterChange(set={}, columns=columns)

    return metastore.update_table(table, decide).changed


def catalog_columns(schema: pa.Schema) -> tuple[Column, ...]:
    """Return the columns of a schema as catalog tables describe them.

    Raises:
        InvalidInputError: (13) two names differ only in case.
    """
    columns = tuple(Column(field.name.lower(), hive_type(field.type)) for field in schema)
    names = [column.name for column in columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise spec_errors.InvalidInputError(
            f"column {twice!r}: a metastore cannot describe names that differ only in case"
        )
    return columns


def hive_type(arrow: pa.DataType) -> str:
    """Return Hive's name of a type."""
    import pyarrow as pa

    if isinstance(arrow, pa.BaseExtensionType):
        return _BYTES if arrow.extension_name == _BLOB else hive_type(arrow.storage_type)
    if pa.types.is_dictionary(arrow):
        return hive_type(arrow.value_type)
    if pa.types.is_struct(arrow):
        return _struct_type([arrow.field(i) for i in range(arrow.num_fields)])
    if pa.types.is_map(arrow):
        return f"map<{hive_type(arrow.key_type)},{hive_type(arrow.item_type)}>"
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow):
        return f"array<{hive_type(arrow.value_type)}>"
    return _plain_type(arrow)


def _struct_type(fields: Sequence[pa.Field]) -> str:
    names = [field.name.lower() for field in fields]
    # A type that Hive can't parse makes SHOW TABLE EXTENDED fail for all tables of the database.
    if not fields or len(set(names)) < len(names) or not all(map(_FIELD_NAME.fullmatch, names)):
        return _TEXT
    types = (hive_type(field.type) for field in fields)
    return f"struct<{','.join(f'{name}:{kind}' for name, kind in zip(names, types, strict=True))}>"


def _decimal_type(precision: int, scale: int) -> str:
    digits = max(precision - min(scale, 0), scale)
    return f"decimal({digits},{max(scale, 0)})" if digits <= _MOST_DIGITS else _TEXT


def _plain_type(arrow: pa.DataType) -> str:
    import pyarrow as pa

    if pa.types.is_decimal(arrow):
        return _decimal_type(arrow.precision, arrow.scale)
    if pa.types.is_timestamp(arrow):
        return "timestamp"
    if any(kind(arrow) for kind in (pa.types.is_binary, pa.types.is_large_binary)):
        return _BYTES
    if pa.types.is_fixed_size_binary(arrow) or pa.types.is_binary_view(arrow):
        return _BYTES
    return _NAMES.get(str(arrow), _TEXT)
