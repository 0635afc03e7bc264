"""Operators that declare, register, deregister and drop tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.template_args import (
    check_choice,
    check_flag,
    check_mapping,
    is_template,
    parse_mapping,
    parse_settings,
    parse_table,
    parse_tables,
)
from airflow_provider_lancens.links import LanceGlueTableLink, LancePageLink, LanceS3Link
from airflow_provider_lancens.operators.lance_operator import (
    SKIP,
    SKIP_OR_FAIL,
    IfExists,
    IfMissing,
    LanceOperator,
)

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_lancens.spark.results import CatalogResult

_REPLACE = "replace"


class LanceDeclareTableOperator(LanceOperator):
    """Declare one or several tables: create their catalog tables in the metastore without writing any rows.

    Its XCom is ``{"table": str, "operation": str, "outcome": str, "location": str}``, for a list a dictionary
    of these by table. If the table already exists, ``outcome`` is ``unchanged``, and ``location`` is
    the existing table's.

    Args:
        table: table identifier, ``database$table``, or a list of these. Templated.
        schema: the types of its columns by name, such as ``{"id": "bigint", "v": "float[768]"}``, in the
            spelling of Arrow or Spark SQL: version 1 then has these columns and no rows. By default the first
            write creates the columns. Templated.
        location: root of its dataset, an absolute path or a URL; by default a new folder beside the
            namespace's location, never below it. Only for a single table. Templated.
        version_authority: the authority that decides the table's versions, see docs/managed-tables.md:
            ``storage``, or ``catalog`` for the metastore, which must support compare-and-set. By default the
            value of the connection's field. The catalog table stores it as ``managed_by``, ``storage`` or
            ``impl``. Templated.
        layout: the storage layout of the data that the first write by any client of this package creates:
            fields of `airflow_provider_lancens.spark.TableLayout`, such as
            ``{"stable_row_ids": True}``. Stored as a parameter of the catalog table. Templated.
        properties: stored as parameters of the catalog table. Templated.
        if_exists: ``skip`` leaves an existing Lance table unchanged if it has the `location`, the
            `version_authority`, the `layout` and the columns of `schema` that are given, and otherwise fails
            the task without retries; ``fail`` fails it in any case. An existing table that isn't Lance always
            fails it.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = (
        "table",
        "schema",
        "location",
        "version_authority",
        "layout",
        "properties",
        "lance_conn_id",
    )
    template_fields_renderers = {"schema": "json", "layout": "json", "properties": "json"}
    operator_extra_links = (LancePageLink(), LanceGlueTableLink(), LanceS3Link())

    def __init__(
        self,
        *,
        table: str | Sequence[str],
        schema: Mapping[str, str] | None = None,
        location: str | None = None,
        version_authority: str | None = None,
        layout: Mapping[str, Any] | None = None,
        properties: Mapping[str, str] | None = None,
        if_exists: IfExists = "skip",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if location is not None and isinstance(table, list | tuple):
            raise ValueError("location: allowed with a single table only, since each has its own")
        _check_entry(version_authority, properties, layout)
        if schema is not None and not is_template(schema):
            check_mapping("schema", schema)
        self.schema = schema
        self.layout = layout
        self.table = table
        self.location = location
        self.version_authority = version_authority
        self.properties = properties
        self.if_exists = check_choice("if_exists", if_exists, SKIP_OR_FAIL)

    def execute(self, context: Context) -> dict[str, Any]:
        """Declare the table, or each of the tables.

        Raises:
            AirflowFailException: the table exists at another location or with another version authority, or
                exists and ``if_exists`` is ``fail``, or it can't be declared.
            LanceRetryableError: the metastore is unavailable.
        """
        tables = parse_tables(self.table)
        if self.location and len(tables) > 1:
            raise AirflowFailException(f"location={self.location!r}: allowed with a single table only")
        schema = None if self.schema is None else parse_mapping("schema", self.schema)
        layout = parse_mapping("layout", self.layout) or None
        properties = parse_settings("properties", self.properties)
        with self.opened(context) as lake:
            declared = {
                str(table): lake.declare_table(
                    table,
                    schema=schema,
                    location=self.location or None,
                    layout=layout,
                    version_authority=self.version_authority,  # type: ignore[arg-type]  # checked there
                    properties=properties,
                    if_exists=self.if_exists,
                )
                for table in tables
            }
        results = {
            table: cast("CatalogResult", opened.declaration).as_dict() for table, opened in declared.items()
        }
        return results[str(tables[0])] if isinstance(self.table, str) else results


class LanceRegisterTableOperator(LanceOperator):
    """Register a table: create a catalog table for an existing dataset.

    Its XCom is ``{"table": str, "operation": str, "outcome": str, "location": str}``; ``outcome`` is
    ``unchanged`` if a table at this location was already registered.

    Args:
        table: table identifier, ``database$table``. Templated.
        location: root of its dataset, an absolute path or a URL. Templated.
        version_authority: as for `LanceDeclareTableOperator`. Templated.
        properties: stored as parameters of the catalog table. Templated.
        if_exists: ``skip`` leaves an existing Lance table unchanged if it has the same location and the
            `version_authority` that is given, and otherwise fails the task without retries; ``replace``
            replaces the catalog table and deletes no data; ``fail`` fails the task without retries. An
            existing table that isn't Lance always fails it, except that ``replace`` repairs a Lance table
            whose ``table_type`` another client dropped.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = (
        "table",
        "location",
        "version_authority",
        "properties",
        "lance_conn_id",
    )
    template_fields_renderers = {"properties": "json"}
    operator_extra_links = (LancePageLink(), LanceGlueTableLink(), LanceS3Link())

    def __init__(
        self,
        *,
        table: str,
        location: str,
        version_authority: str | None = None,
        properties: Mapping[str, str] | None = None,
        if_exists: Literal["skip", "replace", "fail"] = "skip",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        _check_entry(version_authority, properties)
        self.table = table
        self.location = location
        self.version_authority = version_authority
        self.properties = properties
        self.if_exists = check_choice("if_exists", if_exists, (*SKIP_OR_FAIL, _REPLACE))

    def execute(self, context: Context) -> dict[str, Any]:
        """Register the table.

        Raises:
            AirflowFailException: the table exists at another location or with another version authority, or
                exists and ``if_exists`` is ``fail``, or can't be registered.
            LanceRetryableError: the metastore is unavailable.
        """
        table = parse_table(self.table)
        with self.opened(context) as lake:
            registered = lake.register_table(
                table,
                self.location,
                version_authority=self.version_authority,  # type: ignore[arg-type]  # checked there
                properties=parse_settings("properties", self.properties),
                if_exists=self.if_exists,
            )
        return cast("CatalogResult", registered.declaration).as_dict()


class LanceDeregisterTableOperator(LanceOperator):
    """Remove a table from the metastore without deleting its data.

    Its XCom is ``{"table": str, "operation": str, "outcome": str, "location": str | None}``. If there is no
    such table, ``outcome`` is ``unchanged``, and ``location`` is None.

    Args:
        table: table identifier, ``database$table``. Templated.
        if_missing: if there is no such table, ``fail`` fails the task without retries, unless it is a later
            try, since an earlier one has then removed it; ``skip`` lets it succeed.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "lance_conn_id")
    operator_extra_links = (LanceS3Link(),)

    def __init__(self, *, table: str, if_missing: IfMissing = "fail", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.if_missing = check_choice("if_missing", if_missing, SKIP_OR_FAIL)

    def execute(self, context: Context) -> dict[str, Any]:
        """Deregister the table.

        Raises:
            AirflowFailException: it isn't a Lance table, or it doesn't exist and ``if_missing`` is ``fail``.
            LanceRetryableError: the metastore is unavailable.
        """
        table = parse_table(self.table)
        with self.opened(context) as lake:
            result = lake.deregister_table(table, if_missing=SKIP)
        if not result.is_done:
            self.accept_missing(f"table {str(table)!r}", self.if_missing, context)
        return result.as_dict()


class LanceDropTableOperator(LanceOperator):
    """Drop a table and its data: first Lance's own files at its location, then the catalog table.

    Other files at the location are kept. Nothing is deleted if another catalog table refers to the same
    data.

    Its XCom is ``{"table": str, "operation": str, "outcome": str, "location": str | None}``. If there is no
    such table, ``outcome`` is ``unchanged``, and ``location`` is None. With ``dry_run``, ``outcome`` is
    ``planned``, and it also contains ``plan``: ``{"files": int, "bytes": int, "tags": [str],
    "other_files": int}``.

    Args:
        table: table identifier, ``database$table``. Templated.
        if_missing: if there is no such table, ``fail`` fails the task without retries, unless it is a later
            try, since an earlier one has then removed it; ``skip`` lets it succeed.
        dry_run: only count the files that would be deleted, and the files that would be kept; fails where a
            drop would.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "lance_conn_id")

    def __init__(
        self, *, table: str, if_missing: IfMissing = "fail", dry_run: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.if_missing = check_choice("if_missing", if_missing, SKIP_OR_FAIL)
        self.is_dry_run = check_flag("dry_run", dry_run)  # `dry_run` is a method of every operator

    def execute(self, context: Context) -> dict[str, Any]:
        """Drop the table; a retry resumes an interrupted drop.

        Raises:
            AirflowFailException: it isn't a Lance table, shares its data with another table, or doesn't
                exist and ``if_missing`` is ``fail``.
            LanceRetryableError: the metastore or the storage is unavailable.
        """
        table = parse_table(self.table)
        with self.opened(context) as lake:
            result = lake.drop_table(table, if_missing=SKIP, dry_run=self.is_dry_run)
        if result.outcome == "unchanged":
            self.accept_missing(f"table {str(table)!r}", self.if_missing, context)
        return result.as_dict()


def _check_entry(version_authority: str | None, properties: Any, layout: Any = None) -> None:
    """Refuse an invalid version authority, two of them, or an invalid layout, while the DAG is parsed."""
    from airflow_provider_lancens import spec_errors
    from airflow_provider_lancens.spark.options import authority_property, layout_property

    try:
        if not is_template(version_authority):
            authority_property(version_authority, properties if isinstance(properties, Mapping) else None)
        if layout is not None and not is_template(layout):
            layout_property(check_mapping("layout", layout))
    except spec_errors.InvalidInputError as error:
        raise ValueError(str(error)) from error
