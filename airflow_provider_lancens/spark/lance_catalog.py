"""A catalog of Lance tables: the object from which tables are opened, declared and dropped.

Light to import: code that reads and writes is loaded when it is called.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Self, TypeAlias, TypeVar, cast

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import InvalidIdentifierError, NamespaceId, TableId
from airflow_provider_lancens.namespace.paging import all_names
from airflow_provider_lancens.spark.argument_checks import check_arguments, check_texts
from airflow_provider_lancens.spark.execution import NO_TASK, Execution
from airflow_provider_lancens.spark.options import (
    authority_property,
    check_choice,
    check_flag,
    layout_property,
)
from airflow_provider_lancens.spark.results import CatalogResult

if TYPE_CHECKING:
    import pyarrow as pa
    from lance_namespace import DropTableResponse, LanceNamespace
    from pyspark.sql import SparkSession

    from airflow_provider_lancens.namespace.operations.cascade import CascadePlan
    from airflow_provider_lancens.namespace.storage.purge import DropPlan
    from airflow_provider_lancens.spark.lance_table import Table
    from airflow_provider_lancens.spark.options import TableLayout
    from airflow_provider_lancens.spark.release_sets import ReleaseSet
    from airflow_provider_lancens.spark.results import Outcome
    from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec

IMPLEMENTATIONS = {
    "hive2": "airflow_provider_lancens.namespace.Hive2Namespace",
    "hive3": "airflow_provider_lancens.namespace.Hive3Namespace",
    "glue": "airflow_provider_lancens.namespace.GlueNamespace",
    "dir": "airflow_provider_lancens.namespace.CatalogNamespace",
    "rest": "rest",
}
"""The names of implementations, with what `lance_namespace.connect` calls them."""

TableRef: TypeAlias = "str | TableId | Mapping[str, Any]"
"""A table by its identifier, or by a result or XCom that names the version to open it at."""
Source: TypeAlias = "NamespaceSpec | LanceNamespace"
Attempt: TypeAlias = Callable[[str], AbstractContextManager[object]]
"""Runs what begins with this description, such as ``reading table 'db$t'``, and converts its errors."""

_log = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
_Id = TypeVar("_Id", NamespaceId, TableId)
_PAGE = 1000


def _checked(
    doing: str,
) -> Callable[[Callable[Concatenate[LanceCatalog, P], T]], Callable[Concatenate[LanceCatalog, P], T]]:
    """Check the types of a method's arguments first; an error says what was attempted."""

    def decorated(
        method: Callable[Concatenate[LanceCatalog, P], T],
    ) -> Callable[Concatenate[LanceCatalog, P], T]:
        @functools.wraps(method)
        def called(self: LanceCatalog, *args: P.args, **kwargs: P.kwargs) -> T:
            with self.attempt(doing):
                check_arguments(method, args, kwargs)
            return method(self, *args, **kwargs)

        return cast("Callable[Concatenate[LanceCatalog, P], T]", called)

    return decorated


def connect(
    impl: str, properties: Mapping[str, str] | None = None, *, spark: SparkSession | None = None
) -> LanceCatalog:
    """Return the catalog of a metastore, a folder or a service, which connects when it is first needed.

    Args:
        impl: ``hive2``, ``hive3``, ``glue``, ``dir`` (tables in a folder), ``rest``, or the dotted path of a
            `lance_namespace.LanceNamespace`.
        properties: the properties of the implementation, such as ``{"uri": "thrift://metastore:9083"}``; they
            are sent to Spark's executors. ``dir`` takes the properties of `CatalogNamespace`.
        spark: the session for methods that need Spark; by default the active one.

    Raises:
        InvalidInputError: (13) there is no such implementation, or a property isn't text.
    """
    path = IMPLEMENTATIONS.get(impl) if isinstance(impl, str) else None
    if path is None and (not isinstance(impl, str) or "." not in impl):
        raise spec_errors.InvalidInputError(
            f"impl: expected one of {', '.join(IMPLEMENTATIONS)}, or a dotted path, got {impl!r}"
        )
    if properties is not None:
        check_texts("properties", properties)

    def source() -> Source:
        from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec

        return NamespaceSpec(path or impl, dict(properties or {}))

    return LanceCatalog(source, spark=spark)


class LanceCatalog:
    """The tables of a metastore, a folder or a service; made by `connect`, a hook or `lance_spark`.

    Args:
        source: returns the namespace, or a specification to connect to it; called when it is first needed.
        spark: the session for methods that need Spark, or a function that opens it; by default the active
            one.
        attempt: wraps calls of the catalog and its tables, to convert errors.
        execution: identifies the writes of its tables, and records what is read and written.
    """

    def __init__(
        self,
        source: Callable[[], Source],
        *,
        spark: SparkSession | Callable[[], SparkSession] | None = None,
        attempt: Attempt = nullcontext,
        execution: Execution = NO_TASK,
    ) -> None:
        self._open = source
        self._spark = spark
        self.attempt = attempt
        self.execution = execution

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        opened = self.__dict__.get("namespace")
        return f"LanceCatalog({'not connected' if opened is None else opened.namespace_id()})"

    @property
    def spark(self) -> SparkSession:
        """The Spark session.

        Raises:
            InvalidInputError: (13) there is none.
        """
        session = self._spark() if callable(self._spark) else self._spark
        if session is None:
            try:
                from pyspark.sql import SparkSession
            except ImportError as error:
                raise _no_spark("PySpark isn't installed: install the extra [spark]") from error
            session = SparkSession.getActiveSession()
        if session is None:
            raise _no_spark(
                "no session is active: create one, or pass spark=... to connect; in a task, open the tables "
                "with lance_spark()"
            )
        return session

    @cached_property
    def namespace(self) -> LanceNamespace:
        """The namespace, for pylance and LanceDB.

        Raises:
            InvalidInputError: (13) the implementation can't be found, or it refused the properties.
        """
        from airflow_provider_lancens.redaction import redact, shareable_cause
        from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec

        opened = self._open()
        if not isinstance(opened, NamespaceSpec):
            return opened
        try:
            return opened.connect()
        except ValueError as error:
            message = redact(str(error.__cause__ or error))
            raise spec_errors.InvalidInputError(
                f"connecting to {opened.impl!r}: {message}"
            ) from shareable_cause(error)

    @cached_property
    def source(self) -> Source:
        """The namespace, or how to connect to it, as functions of this package take it.

        A namespace of this package vends the storage options of its tables; others have them among their
        properties, and only they say how executors connect.
        """
        from airflow_provider_lancens.spark.table.resolved_table import vends_options

        opened = self._open()
        if not vends_options(self.namespace):
            return opened
        return self.namespace

    def close(self) -> None:
        """Close idle connections; the next call opens new ones."""
        opened = self.__dict__.get("namespace")
        if opened is not None and hasattr(opened, "close"):
            opened.close()

    def table(self, ref: TableRef) -> Table:
        """Return a table; nothing is requested.

        Args:
            ref: its identifier, ``database.table``: the newest version, which can be written to. Or a result,
                an XCom or an asset event with ``table`` and ``version``: exactly this version, only to be
                read.

        Raises:
            InvalidInputError: (13) the identifier is invalid, or the mapping has no table or no version.
        """
        from airflow_provider_lancens.spark.lance_table import Table

        with self.attempt("opening a table"):
            if isinstance(ref, TableId):
                return Table(self, ref)
            if hasattr(ref, "as_dict"):
                ref = ref.as_dict()
            if isinstance(ref, Mapping):
                return Table.of_result(self, ref)
            return Table(self, _parsed("table", ref, TableId.written))

    def release_set(self, table: TableRef) -> ReleaseSet:
        """Return a release set: versions of several tables that belong together; nothing is requested.

        Args:
            table: the identifier of its table; or a result, an XCom or an asset event of it with a version,
                whose tables it then returns.

        Raises:
            InvalidInputError: (13) the identifier is invalid, or the mapping has no table or no version.
        """
        from airflow_provider_lancens.spark.release_sets import ReleaseSet

        with self.attempt("opening a release set"):
            opened = self.table(table)
            return ReleaseSet(self, TableId(opened.id), opened._at, opened._location)

    @_checked("declaring a table")
    def declare_table(
        self,
        table: str | TableId,
        *,
        schema: pa.Schema | Mapping[str, str] | None = None,
        location: str | None = None,
        layout: TableLayout | Mapping[str, Any] | None = None,
        version_authority: Literal["storage", "catalog"] | None = None,
        properties: Mapping[str, str] | None = None,
        if_exists: Literal["skip", "fail"] = "skip",
    ) -> Table:
        """Declare a table: create its entry in the catalog, and with a schema version 1, without rows.

        Args:
            table: its identifier, ``database.table``.
            schema: its columns: Arrow's schema, or types by column, such as
                ``{"id": "bigint", "v": "float[768]"}``; by default the first write creates them.
            location: where its data will be; by default the catalog chooses.
            layout: the storage layout of the data, a `TableLayout` or a mapping of its fields; the catalog
                must store properties of tables.
            version_authority: the authority that decides its versions: ``storage``, or ``catalog`` for the
                metastore; by default the namespace's.
            properties: properties of the entry.
            if_exists: ``skip`` leaves an existing table unchanged, and refuses it if it has another
                location, version authority or layout, or another type of a column that `schema` has;
                ``fail`` is an error.

        Returns:
            The table; `Table.declaration` says whether its entry was created.

        Raises:
            NamespaceNotFoundError: (1) there is no such database.
            TableAlreadyExistsError: (5) it exists, and `if_exists` is ``fail``.
            InvalidInputError: (13) an argument is invalid, the table exists and differs, or the catalog
                doesn't store the layout.
        """
        from airflow_provider_lancens.spark.declaration import declare

        identifier = self._id(table)
        with self.attempt(f"declaring table {str(identifier)!r}"):
            check_choice("if_exists", if_exists, ("skip", "fail"))
            stored = {
                **(properties or {}),
                **layout_property(layout),
                **authority_property(version_authority, properties),
            }
            declaration = declare(
                self.namespace,
                identifier,
                location=location,
                properties=stored,
                schema=schema,
                may_exist=if_exists == "skip",
            )
        return self._declared(identifier, declaration)

    @_checked("registering a table")
    def register_table(
        self,
        table: str | TableId,
        location: str,
        *,
        version_authority: Literal["storage", "catalog"] | None = None,
        properties: Mapping[str, str] | None = None,
        if_exists: Literal["skip", "replace", "fail"] = "skip",
    ) -> Table:
        """Register a table: create the entry of data that exists.

        Args:
            table: its identifier, ``database.table``.
            location: the root of its dataset.
            version_authority: the authority that decides its versions: ``storage``, or ``catalog`` for the
                metastore; by default the namespace's.
            properties: properties of the entry.
            if_exists: ``skip`` leaves an existing table unchanged, and refuses another location or version
                authority; ``replace`` replaces the entry, and deletes no data; ``fail`` is an error.

        Returns:
            The table; `Table.declaration` says whether its entry was created.

        Raises:
            NamespaceNotFoundError: (1) there is no such database.
            TableAlreadyExistsError: (5) it exists, and `if_exists` is ``fail``.
            InvalidInputError: (13) an argument is invalid, or it exists at another location.
        """
        from airflow_provider_lancens.spark.declaration import register

        identifier = self._id(table)
        with self.attempt(f"registering table {str(identifier)!r} at {location!r}"):
            check_choice("if_exists", if_exists, ("skip", "replace", "fail"))
            stored = {**(properties or {}), **authority_property(version_authority, properties)}
            declaration = register(
                self.namespace, identifier, location, properties=stored, if_exists=if_exists
            )
        return self._declared(identifier, declaration)

    def _declared(self, table: TableId, declaration: CatalogResult) -> Table:
        from airflow_provider_lancens.spark.lance_table import Table

        return Table(self, table, declaration=declaration)

    def deregister_table(
        self, table: str | TableId, *, if_missing: Literal["fail", "skip"] = "fail"
    ) -> CatalogResult:
        """Remove a table from the catalog; its data stays.

        Args:
            table: its identifier, ``database.table``.
            if_missing: whether it is an error if there is no such table (``fail``), or nothing is done
                (``skip``).

        Raises:
            TableNotFoundError: (4) there is none, and `if_missing` is ``fail``.
        """
        from lance_namespace import DeregisterTableRequest

        identifier = self._id(table)
        request = DeregisterTableRequest(id=list(identifier.parts))
        doing = f"deregistering table {str(identifier)!r}"
        outcome, location = self._removed(
            doing,
            if_missing,
            lambda: self.namespace.deregister_table(request).location,
            spec_errors.TableNotFoundError,
        )
        if outcome == "done":
            _log.info("table %s deregistered; its data stays at %s", identifier, location)
        return CatalogResult(
            operation="deregister_table", outcome=outcome, table=str(identifier), location=location
        )

    def drop_table(
        self, table: str | TableId, *, if_missing: Literal["fail", "skip"] = "fail", dry_run: bool = False
    ) -> CatalogResult:
        """Drop a table with its data: first Lance's own files, then the entry in the catalog.

        Args:
            table: its identifier, ``database.table``.
            if_missing: whether it is an error if there is no such table (``fail``), or nothing is done
                (``skip``).
            dry_run: only count what would be deleted: the result's ``plan`` has the number of ``files`` and
                ``bytes``, the ``tags``, and how many ``other_files`` would be kept.

        Raises:
            TableNotFoundError: (4) there is none, and `if_missing` is ``fail``.
            InvalidInputError: (13) another table or a clone refers to the data.
            ConcurrentModificationError: (14) a write is running.
            UnsupportedOperationError: (0) the catalog has no dry run.
        """
        from lance_namespace import DropTableRequest

        identifier = self._id(table)
        request = DropTableRequest(id=list(identifier.parts))

        def drop() -> DropTableResponse | DropPlan:
            if not dry_run:
                return self.namespace.drop_table(request)
            plan: DropPlan = self._plan(
                "plan_drop_table", request, "dry_run=True: not supported by this catalog"
            )
            _log.info("dropping table %s would delete %s", identifier, plan)
            return plan

        doing = f"dropping table {str(identifier)!r} and its data"
        outcome, dropped = self._removed(
            doing, if_missing, drop, spec_errors.TableNotFoundError, dry_run=dry_run
        )
        location = None if dropped is None else dropped.location
        if outcome == "done":
            _log.info("table %s and its data at %s dropped", identifier, location)
        return CatalogResult(
            operation="drop_table",
            outcome=outcome,
            table=str(identifier),
            location=location,
            plan=cast("DropPlan", dropped).as_dict() if outcome == "planned" else None,
        )

    def table_exists(self, table: str | TableId) -> bool:
        """Return whether a table is declared or registered."""
        from lance_namespace import TableExistsRequest

        identifier = self._id(table)
        with self.attempt(f"looking up table {str(identifier)!r}"):
            try:
                self.namespace.table_exists(TableExistsRequest(id=list(identifier.parts)))
            except (spec_errors.NamespaceNotFoundError, spec_errors.TableNotFoundError):
                return False
        return True

    @_checked("listing tables")
    def list_tables(self, database: str = "") -> list[str]:
        """Return the identifiers of the tables of a database, sorted, as `table` takes them.

        Args:
            database: its name; empty is the root of the catalog.

        Raises:
            NamespaceNotFoundError: (1) there is no such database.
        """
        from lance_namespace import ListTablesRequest

        parts = self._database_id(database).parts
        with self.attempt(f"listing the tables of {database!r}"):

            def page(token: str | None) -> tuple[Sequence[str], str | None]:
                request = ListTablesRequest(
                    id=list(parts), page_token=token, limit=_PAGE, include_declared=True
                )
                response = self.namespace.list_tables(request)
                return list(response.tables), response.page_token

            return sorted(str(TableId((*parts, name))) for name in all_names(page))

    def list_databases(self, parent: str = "") -> list[str]:
        """Return the names of the databases, sorted; of Hive 3, the databases of a catalog.

        Args:
            parent: the catalog; empty is the root.

        Raises:
            NamespaceNotFoundError: (1) there is no such catalog.
        """
        from lance_namespace import ListNamespacesRequest

        parts = self._database_id(parent).parts
        with self.attempt("listing databases"):

            def page(token: str | None) -> tuple[Sequence[str], str | None]:
                request = ListNamespacesRequest(id=list(parts), page_token=token, limit=_PAGE)
                response = self.namespace.list_namespaces(request)
                return list(response.namespaces), response.page_token

            return sorted(str(NamespaceId((*parts, name))) for name in all_names(page))

    @_checked("creating a namespace")
    def create_namespace(
        self,
        database: str | NamespaceId,
        *,
        properties: Mapping[str, str] | None = None,
        if_exists: Literal["skip", "fail"] = "skip",
    ) -> CatalogResult:
        """Create a database.

        Args:
            database: its name.
            properties: its properties.
            if_exists: whether an existing database is left unchanged (``skip``), or is an error (``fail``).

        Raises:
            NamespaceAlreadyExistsError: (2) it exists, and `if_exists` is ``fail``.
        """
        from lance_namespace import CreateNamespaceRequest

        identifier = self._database_id(database)
        request = CreateNamespaceRequest(id=list(identifier.parts), properties=dict(properties or {}) or None)
        outcome: Outcome = "done"
        with self.attempt(f"creating namespace {str(identifier)!r}"):
            check_choice("if_exists", if_exists, ("skip", "fail"))
            try:
                self.namespace.create_namespace(request)
            except spec_errors.NamespaceAlreadyExistsError:
                if if_exists == "fail":
                    raise
                outcome = "unchanged"
        _log.info("namespace %s %s", identifier, "created" if outcome == "done" else "exists; not changed")
        return CatalogResult(operation="create_namespace", outcome=outcome, namespace=str(identifier))

    @_checked("dropping a namespace")
    def drop_namespace(
        self,
        database: str | NamespaceId,
        *,
        cascade: bool = False,
        foreign_tables: Sequence[str] = (),
        if_missing: Literal["fail", "skip"] = "fail",
        dry_run: bool = False,
        on_plan: Callable[[CascadePlan], object] | None = None,
    ) -> CatalogResult:
        """Drop a database from the catalog; no file is deleted.

        Args:
            database: its name.
            cascade: whether its Lance tables are removed from the catalog first; else it must be empty.
            foreign_tables: identifiers of tables of other formats that a cascade may remove too; ``["*"]``
                for any.
            if_missing: whether it is an error if there is no such database (``fail``), or nothing is done
                (``skip``).
            dry_run: only return the plan of what would be dropped; fails where the drop would.
            on_plan: called with the plan of a cascade or a dry run, before anything is dropped.

        Raises:
            NamespaceNotFoundError: (1) there is none, and `if_missing` is ``fail``.
            NamespaceNotEmptyError: (3) it has tables, and `cascade` isn't set, or doesn't allow them; or it
                has changed since the plan was made.
            UnsupportedOperationError: (0) the catalog has no cascade.
        """
        from lance_namespace import DropNamespaceRequest

        identifier = self._database_id(database)
        parts = list(identifier.parts)

        def drop() -> CascadePlan | None:
            check_flag("cascade", cascade)
            namespace: Any = self.namespace
            if not cascade and not dry_run:
                namespace.drop_namespace(DropNamespaceRequest(id=parts))
                return None
            plan: CascadePlan = self._plan(
                "plan_drop_namespace",
                {"id": parts},
                "cascade=True: not supported by this catalog, nor a dry run; drop or deregister its tables "
                "first",
            )
            if on_plan is not None:
                on_plan(plan)
            if dry_run:
                namespace.check_planned_namespace(plan, foreign_tables, cascade=cascade)
            else:
                namespace.drop_planned_namespace(plan, foreign_tables)
            return plan

        extent = " and its tables" if cascade else ""
        outcome, plan = self._removed(
            f"dropping namespace {str(identifier)!r}{extent}", if_missing, drop, dry_run=dry_run
        )
        if outcome == "done":
            _log.info("namespace %s dropped", identifier)
        return CatalogResult(
            operation="drop_namespace",
            outcome=outcome,
            namespace=str(identifier),
            plan=None if plan is None else plan.as_dict(),
        )

    def _plan(self, operation: str, request: object, refusal: str) -> Any:
        """Return the plan of a removal by an operation of this package's namespaces, which others lack."""
        plan = getattr(self.namespace, operation, None)
        if plan is None:
            raise spec_errors.UnsupportedOperationError(refusal)
        return plan(request)

    def _removed(
        self,
        doing: str,
        if_missing: str,
        remove: Callable[[], T],
        *also_missing: type[Exception],
        dry_run: bool = False,
    ) -> tuple[Outcome, T | None]:
        """Return what a removal returns, or None with ``unchanged`` if there is nothing to remove.

        Args:
            doing: what is done, for messages.
            if_missing: whether it is an error if there is nothing.
            remove: removes it.
            also_missing: the errors that say so, besides that there is no such database.
            dry_run: whether it is only planned.
        """
        with self.attempt(doing):
            check_choice("if_missing", if_missing, ("fail", "skip"))
            check_flag("dry_run", dry_run)
            missing: tuple[type[Exception], ...] = (spec_errors.NamespaceNotFoundError, *also_missing)
            try:
                return "planned" if dry_run else "done", remove()
            except missing:
                if if_missing == "fail":
                    raise
        return "unchanged", None

    def _id(self, table: str | TableId) -> TableId:
        with self.attempt("reading the identifier of a table"):
            return table if isinstance(table, TableId) else _parsed("table", table, TableId.written)

    def _database_id(self, database: str | NamespaceId) -> NamespaceId:
        if isinstance(database, NamespaceId):
            return database
        with self.attempt("reading the name of a database"):
            return _parsed("database", database, NamespaceId.written)


def _parsed(argument: str, text: Any, parse: Callable[[str], _Id]) -> _Id:
    try:
        return parse(text)
    except InvalidIdentifierError as error:
        raise spec_errors.InvalidInputError(f"{argument}={text!r}: {error}") from error


def _no_spark(problem: str) -> Exception:
    return spec_errors.InvalidInputError(f"this needs Spark, and {problem}")
