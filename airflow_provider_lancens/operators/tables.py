"""Tables come and go: declared, registered, deregistered, dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_lancens.hooks.arguments import check_choice, parse_settings, parse_table
from airflow_provider_lancens.links import LanceGlueTableLink, LanceS3Link
from airflow_provider_lancens.operators.base import SKIP, SKIP_OR_FAIL, IfExists, IfMissing, LanceOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_lancens.identifiers import TableId
    from airflow_provider_lancens.namespace.base import MetastoreNamespace

_REPLACE = "replace"


class LanceDeclareTableOperator(LanceOperator):
    """Declare a table: write its entry into the metastore, and no data set.

    Its XCom is ``{"table": str, "location": str, "created": bool}``; ``created`` is false, and
    ``location`` that of the existing one, where it was there already.

    Args:
        table: its identifier, ``database$table``. Templated.
        location: the root of its data set, an absolute path or a URL; where None, a folder below the
            namespace's location. Templated.
        properties: kept as the entry's parameters. Templated.
        if_exists: ``skip`` leaves an existing Lance table as it is, ``fail`` fails the task for good. A
            table of that name that isn't Lance always fails it.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "location", "properties", "lance_conn_id")
    template_fields_renderers = {"properties": "json"}
    operator_extra_links = (LanceGlueTableLink(), LanceS3Link())

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
        """Declare it.

        Raises:
            AirflowFailException: it exists and ``if_exists`` is ``fail``, or can't be declared.
            LanceRetryableError: the metastore didn't answer.
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
                self.log.info("Table %s exists at %s; left as it is", table, location)
                return {"table": str(table), "location": location, "created": False}
        self.log.info("Declared table %s at %s", table, location)
        return {"table": str(table), "location": location, "created": True}


class LanceRegisterTableOperator(LanceOperator):
    """Register a table: write an entry for a data set that lies somewhere already.

    Its XCom is ``{"table": str, "location": str, "created": bool}``; ``created`` is false where an entry
    for this location was there already.

    Args:
        table: its identifier, ``database$table``. Templated.
        location: the root of its data set, an absolute path or a URL. Templated.
        properties: kept as the entry's parameters. Templated.
        if_exists: ``skip`` leaves an existing Lance table as it is where it lies at this location, and
            fails the task for good where it lies elsewhere; ``replace`` writes the entry anew, and no data
            goes; ``fail`` fails the task for good. A table of that name that isn't Lance always fails it.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "location", "properties", "lance_conn_id")
    template_fields_renderers = {"properties": "json"}
    operator_extra_links = (LanceGlueTableLink(), LanceS3Link())

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
        """Register it.

        Raises:
            AirflowFailException: it exists elsewhere, or ``if_exists`` is ``fail``, or it can't be.
            LanceRetryableError: the metastore didn't answer.
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
                f"registering table {str(table)!r}: it exists and lies at {location!r}, not at "
                f"{self.location!r}; give that location, or if_exists='replace'"
            )
        self.log.info("Table %s is registered at %s already; left as it is", table, location)
        return location


class LanceDeregisterTableOperator(LanceOperator):
    """Take a table's entry out of the metastore; its data stays where it is.

    Its XCom is ``{"table": str, "location": str | None, "deregistered": bool}``; ``deregistered`` is
    false, and there is no location, where it wasn't there.

    Args:
        table: its identifier, ``database$table``. Templated.
        if_missing: ``skip`` lets the task succeed where there is none, ``fail`` fails it for good.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "lance_conn_id")
    operator_extra_links = (LanceS3Link(),)

    def __init__(self, *, table: str, if_missing: IfMissing = "skip", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.if_missing = check_choice("if_missing", if_missing, SKIP_OR_FAIL)

    def execute(self, context: Context) -> dict[str, Any]:
        """Deregister it.

        Raises:
            AirflowFailException: it isn't a Lance table, or is missing and ``if_missing`` is ``fail``.
            LanceRetryableError: the metastore didn't answer.
        """
        from lance_namespace import DeregisterTableRequest
        from lance_namespace.errors import NamespaceNotFoundError, TableNotFoundError

        table = parse_table(self.table)
        request = DeregisterTableRequest(id=list(table.parts))
        with self.connected(f"deregistering table {str(table)!r}") as metastore:
            try:
                location = metastore.deregister_table(request).location
            except (NamespaceNotFoundError, TableNotFoundError):
                if self.if_missing != SKIP:
                    raise
                self.log.info("Table %s is not there; nothing to deregister", table)
                return {"table": str(table), "location": None, "deregistered": False}
        self.log.info("Deregistered table %s; its data stays at %s", table, location)
        return {"table": str(table), "location": location, "deregistered": True}


class LanceDropTableOperator(LanceOperator):
    """Drop a table with its data: Lance's own files at its location, then its entry.

    Nothing else that lies there goes, and nothing at all where another entry points at the same data.

    Its XCom is ``{"table": str, "location": str | None, "dropped": bool}``; ``dropped`` is false, and
    there is no location, where it wasn't there.

    Args:
        table: its identifier, ``database$table``. Templated.
        if_missing: ``skip`` lets the task succeed where there is none, ``fail`` fails it for good.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "lance_conn_id")

    def __init__(self, *, table: str, if_missing: IfMissing = "skip", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.if_missing = check_choice("if_missing", if_missing, SKIP_OR_FAIL)

    def execute(self, context: Context) -> dict[str, Any]:
        """Drop it; a task that was stopped halfway goes on where it is tried again.

        Raises:
            AirflowFailException: it isn't a Lance table, shares its data, or is missing and ``if_missing``
                is ``fail``.
            LanceRetryableError: the metastore or the storage didn't answer.
        """
        from lance_namespace import DropTableRequest
        from lance_namespace.errors import NamespaceNotFoundError, TableNotFoundError

        table = parse_table(self.table)
        request = DropTableRequest(id=list(table.parts))
        with self.connected(f"dropping table {str(table)!r} and its data") as metastore:
            try:
                location = metastore.drop_table(request).location
            except (NamespaceNotFoundError, TableNotFoundError):
                if self.if_missing != SKIP:
                    raise
                self.log.info("Table %s is not there; nothing to drop", table)
                return {"table": str(table), "location": None, "dropped": False}
        self.log.info("Dropped table %s and its data at %s", table, location)
        return {"table": str(table), "location": location, "dropped": True}
