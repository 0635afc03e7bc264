"""Declare or register a table: create its catalog entry, or compare the existing entry.

With a schema, a declaration also creates the table's first version, without rows.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.locations import described_location, normalize
from airflow_provider_lancens.namespace.table_properties import BY_IMPLEMENTATION, LAYOUT, MANAGED_BY
from airflow_provider_lancens.namespace.update_interval import EXPECTED_UPDATE
from airflow_provider_lancens.spark.blobs import is_blob, with_blobs
from airflow_provider_lancens.spark.options import Create, TableLayout, WriteRequest
from airflow_provider_lancens.spark.results import CatalogResult
from airflow_provider_lancens.spark.table.resolved_table import resolved_table
from airflow_provider_lancens.spark.type_names import parse_type
from airflow_provider_lancens.spark.write.row_sources import ArrowRows
from airflow_provider_lancens.spark.write.write_context import WriteContext
from airflow_provider_lancens.spark.write.write_rows import write_rows

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace

    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

_log = logging.getLogger(__name__)


def declare(
    namespace: LanceNamespace,
    table: TableId,
    *,
    location: str | None = None,
    properties: Mapping[str, str] | None = None,
    schema: pa.Schema | Mapping[str, str] | None = None,
    may_exist: bool = True,
) -> CatalogResult:
    """Declare a table; a repeated call completes an earlier one.

    Args:
        namespace: the namespace.
        table: its identifier.
        location: the root of its dataset; None leaves it to the catalog.
        properties: properties of the entry, with the layout and the version authority if they are chosen.
        schema: its columns, as Arrow's schema or the types by column, see `parse_type`: version 1 has them,
            and no rows. None leaves both to the first write.
        may_exist: whether a table that exists, and is the same as far as it is described here, is left as it
            is; otherwise it is an error.

    Raises:
        NamespaceNotFoundError: (1) there is no such database.
        TableAlreadyExistsError: (5) it exists, and may not.
        InvalidInputError: (13) an argument is invalid; the table exists with another location, version
            authority, layout or another type of a column; or the catalog doesn't store the layout.
    """
    from lance_namespace import DeclareTableRequest

    columns = None if schema is None else _columns(schema)
    given = dict(properties or {})
    request = DeclareTableRequest(id=list(table.parts), location=location, properties=given or None)
    try:
        found, created = described_location(str(namespace.declare_table(request).location)), True
    except spec_errors.TableAlreadyExistsError:
        if not may_exist:
            raise
        created = False
    if created and {EXPECTED_UPDATE, LAYOUT} & set(given):
        _check_stored(namespace, table, given)
    if not created:
        found = _checked_location(namespace, table, location, given)
    if columns is not None:
        with resolved_table(namespace, table) as target:
            _create_columns(target, columns, _layout(given))
    return _result("declare_table", table, found, created=created)


def _check_stored(namespace: LanceNamespace, table: TableId, given: Mapping[str, str]) -> None:
    """Check that the catalog keeps the properties by which this package reads or writes the table.

    Raises:
        InvalidInputError: (13) it doesn't keep the layout; without the others, the table can be used.
    """
    from lance_namespace import DescribeTableRequest

    stored = namespace.describe_table(DescribeTableRequest(id=list(table.parts))).properties or {}
    if EXPECTED_UPDATE in given and EXPECTED_UPDATE not in stored:
        _log.warning(
            "table %s: its catalog doesn't keep the property %s; pass max_age to check_freshness",
            table,
            EXPECTED_UPDATE,
        )
    if LAYOUT in given and LAYOUT not in stored:
        raise spec_errors.InvalidInputError(
            f"table {table} is declared, but without its layout, since the catalog keeps no properties of "
            "tables; leave out the layout, and give it to the first write: options of a write operator"
        )


def register(
    namespace: LanceNamespace,
    table: TableId,
    location: str,
    *,
    properties: Mapping[str, str] | None = None,
    if_exists: Literal["skip", "replace", "fail"] = "skip",
) -> CatalogResult:
    """Register a table: create the entry of data that exists.

    Args:
        namespace: the namespace.
        table: its identifier.
        location: the root of its dataset.
        properties: properties of the entry, with the version authority if it is chosen.
        if_exists: ``skip`` leaves a table that exists, and is the same as far as it is described here, as it
            is; ``replace`` replaces the entry, and deletes no data; ``fail`` is an error.

    Raises:
        NamespaceNotFoundError: (1) there is no such database.
        TableAlreadyExistsError: (5) it exists, and `if_exists` is ``fail``.
        InvalidInputError: (13) an argument is invalid, or it exists with another location or version
            authority.
    """
    from lance_namespace import RegisterTableRequest

    given = dict(properties or {})
    request = RegisterTableRequest(
        id=list(table.parts),
        location=location,
        properties=given or None,
        mode="overwrite" if if_exists == "replace" else "create",
    )
    try:
        found, created = str(namespace.register_table(request).location), True
    except spec_errors.TableAlreadyExistsError:
        if if_exists != "skip":
            raise
        found, created = _checked_location(namespace, table, location, given), False
    return _result("register_table", table, found, created=created)


def _result(operation: str, table: TableId, location: str, *, created: bool) -> CatalogResult:
    if created:
        _log.info("table %s: its entry was created, at %s", table, location)
    else:
        _log.info("table %s already exists at %s; not changed", table, location)
    return CatalogResult(
        operation=operation,
        outcome="done" if created else "unchanged",
        table=str(table),
        location=location,
    )


def _columns(schema: pa.Schema | Mapping[str, str]) -> pa.Schema:
    if isinstance(schema, pa.Schema):
        columns = schema
    elif isinstance(schema, Mapping):
        types = {name: parse_type(text, f"schema[{name!r}]") for name, text in _texts(schema).items()}
        columns = pa.schema(types.items())
    else:
        raise spec_errors.InvalidInputError(
            f"schema: expected a pyarrow.Schema or a mapping of columns to types, got {schema!r}"
        )
    if not columns.names:
        raise spec_errors.InvalidInputError("schema: expected at least one column")
    return columns


def _texts(schema: Mapping[Any, Any]) -> dict[str, str]:
    for name, text in schema.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise spec_errors.InvalidInputError(
                f"schema: expected types as text by column, got {name!r}: {text!r}"
            )
    return dict(schema)


def _checked_location(
    namespace: LanceNamespace, table: TableId, location: str | None, given: Mapping[str, str]
) -> str:
    """Return the location of an existing table, after checking that it is as declared.

    Raises:
        InvalidInputError: (13) it isn't.
    """
    from lance_namespace import DescribeTableRequest

    described = namespace.describe_table(DescribeTableRequest(id=list(table.parts)))
    found = described_location(str(described.location))
    if location and normalize(found).rstrip("/") != normalize(location).rstrip("/"):
        raise spec_errors.InvalidInputError(
            f"table {table} already exists at {found!r}, not at location={location!r}; pass that location or "
            "none, or replace the catalog entry by registering the table with if_exists='replace'"
        )
    if (managed_by := given.get(MANAGED_BY)) is not None:
        has, asked = bool(described.managed_versioning), managed_by.strip().lower() == BY_IMPLEMENTATION
        if has != asked:
            raise spec_errors.InvalidInputError(
                f"table {table} already exists with version_authority={_AUTHORITY[has]!r}, not "
                f"{_AUTHORITY[asked]!r}; pass that one, or convert the table by LanceConvertTableOperator or "
                "set_version_authority"
            )
    declared, layout = (described.properties or {}).get(LAYOUT), given.get(LAYOUT)
    if layout is None or layout == declared:
        return found
    if declared is None and _has_layout(namespace, table, _layout(given)):
        return found
    raise spec_errors.InvalidInputError(
        f"table {table} already exists with layout={declared or '{}'}, not {layout}: the layout is chosen "
        "when a table is declared, in a catalog that stores properties of tables"
    )


def _layout(properties: Mapping[str, str]) -> TableLayout:
    """Return the layout in these properties.

    Raises:
        InvalidInputError: (13) it isn't one.
    """
    try:
        return TableLayout.from_json(properties.get(LAYOUT, "{}"))
    except (TypeError, ValueError) as error:
        raise spec_errors.InvalidInputError(f"properties[{LAYOUT!r}]: is no layout: {error}") from error


def _has_layout(namespace: LanceNamespace, table: TableId, layout: TableLayout) -> bool:
    """Return whether the data of a table have a layout that its entry lacks, as after it was registered."""
    with resolved_table(namespace, table) as target:
        latest = target.open_latest()
    if latest is None:
        return False
    types = {field.name: field.type for field in latest.schema}
    return (
        latest.has_stable_row_ids >= layout.stable_row_ids
        and layout.data_storage_version in (None, latest.data_storage_version)
        and all(is_blob(types[name]) for name in layout.blob_columns if name in types)
        and all(
            pa.types.is_fixed_size_list(types[name]) and types[name].list_size == dimension
            for name, dimension in layout.vector_columns.items()
            if name in types
        )
    )


_AUTHORITY = {True: "catalog", False: "storage"}


def _create_columns(target: ResolvedTable, columns: pa.Schema, given: TableLayout) -> None:
    """Create version 1 with these columns and no rows, or compare the table's columns with them."""
    rows = ArrowRows(columns.empty_table())
    latest = target.open_latest()
    if latest is None:
        try:
            write_rows(rows, WriteContext.begin(target, WriteRequest(Create())))
        except spec_errors.TableAlreadyExistsError:  # another client created the table meanwhile
            latest = target.open_latest()
    if latest is None:
        return
    layout = given.over(target.layout)
    expected = with_blobs(rows.schema({}, layout.vector_columns), layout.blob_columns)
    for field in expected:
        number = latest.schema.get_field_index(field.name)
        has = None if number < 0 else latest.schema.field(number).type
        if has != field.type:
            raise spec_errors.InvalidInputError(
                f"table {target.id} already exists, and its column {field.name!r} is "
                f"{'missing' if has is None else has}, not {field.type} as schema says; change the columns "
                "by LanceAlterTableOperator, or the schema that is given"
            )
