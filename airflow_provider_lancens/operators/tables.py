"""Operators that declare, register, deregister and drop tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.template_args import check_choice, parse_settings, parse_table
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

    from airflow_provider_lancens.identifiers import TableId
    from airflow_provider_lancens.namespace.base import MetastoreNamespace

_REPLACE = "replace"


class LanceDeclareTableOperator(LanceOperator):
    """Declare a table: create its catalog table in the metastore without writing any data.

    Its XCom is ``{"table": str, "location": str, "created": bool}``. If the table already exists,
    ``created`` is false and ``location`` is that of the existing table.

    Args:
        table: table identifier, ``database$table``. Templated.
        location: root of its dataset, an absolute path or a URL; by default a new folder beside the
            namespace's location, never below it. Templated.
        properties: stored as parameters of the catalog table. Templated.
        if_exists: ``skip`` leaves an existing Lance table unchanged, ``fail`` fails the task without
            retries. An existing table that isn't Lance always fails it.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "location", "properties", "lance_conn_id")
    template_fields_renderers = {"properties": "json"}
    operator_extra_links = (LancePageLink(), LanceGlueTableLink(), LanceS3Link())

    def __init__(
        self,
        *,
        table: str,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        if_exists: IfExists = "skip",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.location = location
        self.properties = properties
        self.if_exists = check_choice("if_exists", if_exists, SKIP_OR_FAIL)

    def execute(self, context: Context) -> dict[str, Any]:
        """Declare the table.

        Raises:
            AirflowFailException: the table exists and ``if_exists`` is ``fail``, or it can't be declared.
            LanceRetryableError: the metastore is unavailable.
        """
        from lance_namespace import DeclareTableRequest, DescribeTableRequest
        from lance_namespace.errors import TableAlreadyExistsError

        table = parse_table(self.table)
        parts = list(table.parts)
        properties = parse_settings("properties", self.properties)
        request = DeclareTableRequest(id=parts, location=self.location or None, properties=properties)
        with self.connected(f"declaring table {str(table)!r}") as metastore:
            try:
                location = metastore.declare_table(request).location
            except TableAlreadyExistsError:
                if self.if_exists != SKIP:
                    raise
                location = metastore.describe_table(DescribeTableRequest(id=parts)).location
                self.log.info("Table %s already exists at %s; not changed", table, location)
                return {"table": str(table), "location": location, "created": False}
        self.log.info("Declared table %s at %s", table, location)
        return {"table": str(table), "location": location, "created": True}


class LanceRegisterTableOperator(LanceOperator):
    """Register a table: create a catalog table for an existing dataset.

    Its XCom is ``{"table": str, "location": str, "created": bool}``; ``created`` is false if a table at
    this location was already registered.

    Args:
        table: table identifier, ``database$table``. Templated.
        location: root of its dataset, an absolute path or a URL. Templated.
        properties: stored as parameters of the catalog table. Templated.
        if_exists: ``skip`` leaves an existing Lance table unchanged if it has the same location, and
            otherwise fails the task without retries; ``replace`` replaces the catalog table and deletes no
            data; ``fail`` fails the task without retries. An existing table that isn't Lance always fails
            it, except that ``replace`` repairs a Lance table whose ``table_type`` another client dropped.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "location", "properties", "lance_conn_id")
    template_fields_renderers = {"properties": "json"}
    operator_extra_links = (LancePageLink(), LanceGlueTableLink(), LanceS3Link())

    def __init__(
        self,
        *,
        table: str,
        location: str,
        properties: Mapping[str, str] | None = None,
        if_exists: Literal["skip", "replace", "fail"] = "skip",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.location = location
        self.properties = properties
        self.if_exists = check_choice("if_exists", if_exists, (*SKIP_OR_FAIL, _REPLACE))

    def execute(self, context: Context) -> dict[str, Any]:
        """Register the table.

        Raises:
            AirflowFailException: the table exists at another location, or exists and ``if_exists`` is
                ``fail``, or can't be registered.
            LanceRetryableError: the metastore is unavailable.
        """
        from lance_namespace import RegisterTableRequest
        from lance_namespace.errors import TableAlreadyExistsError

        table = parse_table(self.table)
        request = RegisterTableRequest(
            id=list(table.parts),
            location=self.location,
            properties=parse_settings("properties", self.properties),
            mode="overwrite" if self.if_exists == _REPLACE else "create",
        )
        with self.connected(f"registering table {str(table)!r} at {self.location!r}") as metastore:
            try:
                location = metastore.register_table(request).location
            except TableAlreadyExistsError:
                if self.if_exists != SKIP:
                    raise
                location = self._existing(metastore, table)
                return {"table": str(table), "location": location, "created": False}
        self.log.info("Registered table %s at %s", table, location)
        return {"table": str(table), "location": location, "created": True}

    def _existing(self, metastore: MetastoreNamespace, table: TableId) -> str:
        from lance_namespace import DescribeTableRequest

        from airflow_provider_lancens.namespace.locations import normalize

        location = str(metastore.describe_table(DescribeTableRequest(id=list(table.parts))).location)
        if normalize(location) != normalize(self.location):
            raise AirflowFailException(
                f"registering table {str(table)!r}: it already exists at {location!r}, not at "
                f"{self.location!r}; pass that location, or if_exists='replace'"
            )
        self.log.info("Table %s is already registered at %s; not changed", table, location)
        return location


class LanceDeregisterTableOperator(LanceOperator):
    """Remove a table from the metastore without deleting its data.

    Its XCom is ``{"table": str, "location": str | None, "deregistered": bool}``. If there is no such
    table, ``deregistered`` is false and ``location`` is None.

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
        from lance_namespace import DeregisterTableRequest
        from lance_namespace.errors import NamespaceNotFoundError, TableNotFoundError

        table = parse_table(self.table)
        request = DeregisterTableRequest(id=list(table.parts))
        with self.connected(f"deregistering table {str(table)!r}") as metastore:
            try:
                location = metastore.deregister_table(request).location
            except (NamespaceNotFoundError, TableNotFoundError) as error:
                self.accept_missing(f"table {str(table)!r}", self.if_missing, context, error)
                return {"table": str(table), "location": None, "deregistered": False}
        self.log.info("Deregistered table %s; its data is kept at %s", table, location)
        return {"table": str(table), "location": location, "deregistered": True}


class LanceDropTableOperator(LanceOperator):
    """Drop a table and its data: first Lance's own files at its location, then the catalog table.

    Other files at the location are kept. Nothing is deleted if another catalog table refers to the same
    data.

    Its XCom is ``{"table": str, "location": str | None, "dropped": bool}``. If there is no such table,
    ``dropped`` is false and ``location`` is None.

    Args:
        table: table identifier, ``database$table``. Templated.
        if_missing: if there is no such table, ``fail`` fails the task without retries, unless it is a later
            try, since an earlier one has then removed it; ``skip`` lets it succeed.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "lance_conn_id")

    def __init__(self, *, table: str, if_missing: IfMissing = "fail", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.if_missing = check_choice("if_missing", if_missing, SKIP_OR_FAIL)

    def execute(self, context: Context) -> dict[str, Any]:
        """Drop the table; a retry resumes an interrupted drop.

        Raises:
            AirflowFailException: it isn't a Lance table, shares its data with another table, or doesn't
                exist and ``if_missing`` is ``fail``.
            LanceRetryableError: the metastore or the storage is unavailable.
        """
        from lance_namespace import DropTableRequest
        from lance_namespace.errors import NamespaceNotFoundError, TableNotFoundError

        table = parse_table(self.table)
        request = DropTableRequest(id=list(table.parts))
        with self.connected(f"dropping table {str(table)!r} and its data") as metastore:
            try:
                location = metastore.drop_table(request).location
            except (NamespaceNotFoundError, TableNotFoundError) as error:
                self.accept_missing(f"table {str(table)!r}", self.if_missing, context, error)
                return {"table": str(table), "location": None, "dropped": False}
        self.log.info("Dropped table %s and its data at %s", table, location)
        return {"table": str(table), "location": location, "dropped": True}
