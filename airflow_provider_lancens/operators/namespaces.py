"""Operators that create and drop namespaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.hooks.template_args import (
    check_choice,
    parse_list,
    parse_namespace,
    parse_settings,
)
from airflow_provider_lancens.links import LanceGlueDatabaseLink, LancePageLink
from airflow_provider_lancens.operators.lance_operator import (
    SKIP,
    SKIP_OR_FAIL,
    IfExists,
    IfMissing,
    LanceOperator,
    catalog_result,
)

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_lancens.namespace.operations.cascade import CascadePlan

_NAMES_IN_AN_XCOM = 1000


class LanceCreateNamespaceOperator(LanceOperator):
    """Create a namespace: a database in the metastore.

    Its XCom is ``{"namespace": str, "operation": str, "outcome": str}``; ``outcome`` is ``unchanged`` if it
    already exists.

    Args:
        namespace: namespace identifier, ``database``. Templated.
        properties: properties of the namespace; ``database.location-uri``, ``database.description`` and
            ``database.owner`` are stored in the metastore's own fields where it has them. Templated.
        if_exists: ``skip`` leaves an existing namespace unchanged, ``fail`` fails the task without retries.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("namespace", "properties", "lance_conn_id")
    template_fields_renderers = {"properties": "json"}
    operator_extra_links = (LancePageLink(), LanceGlueDatabaseLink())

    def __init__(
        self,
        *,
        namespace: str,
        properties: Mapping[str, str] | None = None,
        if_exists: IfExists = "skip",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.namespace = namespace
        self.properties = properties
        self.if_exists = check_choice("if_exists", if_exists, SKIP_OR_FAIL)

    def execute(self, context: Context) -> dict[str, Any]:
        """Create the namespace.

        Raises:
            AirflowFailException: it exists and ``if_exists`` is ``fail``, or can't be created.
            LanceRetryableError: the metastore is unavailable.
        """
        from lance_namespace import CreateNamespaceRequest
        from lance_namespace.errors import NamespaceAlreadyExistsError

        namespace = parse_namespace(self.namespace)
        properties = parse_settings("properties", self.properties)
        request = CreateNamespaceRequest(id=list(namespace.parts), properties=properties)
        with self.connected(f"creating namespace {str(namespace)!r}") as metastore:
            try:
                metastore.create_namespace(request)
            except NamespaceAlreadyExistsError:
                if self.if_exists != SKIP:
                    raise
                self.log.info("Namespace %s already exists; not changed", namespace)
                return catalog_result(namespace, "create_namespace", "unchanged")
        self.log.info("Created namespace %s", namespace)
        return catalog_result(namespace, "create_namespace", "done")


class LanceDropNamespaceOperator(LanceOperator):
    """Drop a namespace from the metastore without deleting any files.

    Its XCom is ``{"namespace": str, "operation": str, "outcome": str}``; ``outcome`` is ``unchanged`` if
    there is no such namespace, and ``planned`` with ``dry_run``. With ``cascade`` or ``dry_run`` it also
    contains ``plan``, which is logged and pushed before anything is dropped: ``{"namespaces": [str],
    "lance_tables": [str], "foreign_tables": [str], "lance_table_count": int, "foreign_table_count": int}``,
    each list truncated to 1,000 names.

    Args:
        namespace: namespace identifier, ``database``. Templated.
        cascade: first drop the Lance tables of the namespace from the metastore; by default a namespace that
            isn't empty is refused. It drops exactly what its plan contains, and refuses if there are
            non-Lance tables that `foreign_tables` doesn't list, or if another client has created or replaced
            tables since the plan was made; clear the task for a new plan.
        foreign_tables: identifiers of non-Lance tables that a cascade may also drop from the metastore;
            ``["*"]`` for any. Templated.
        dry_run: only compute the plan.
        if_missing: if there is no such namespace, ``fail`` fails the task without retries, unless it is a
            later try, since an earlier one has then removed it; ``skip`` lets it succeed.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("namespace", "foreign_tables", "lance_conn_id")

    def __init__(
        self,
        *,
        namespace: str,
        cascade: bool = False,
        foreign_tables: Sequence[str] = (),
        dry_run: bool = False,
        if_missing: IfMissing = "fail",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.namespace = namespace
        self.cascade = cascade
        self.foreign_tables = foreign_tables
        self.is_dry_run = dry_run  # `dry_run` is a method of every operator
        self.if_missing = check_choice("if_missing", if_missing, SKIP_OR_FAIL)

    def execute(self, context: Context) -> dict[str, Any]:
        """Drop the namespace.

        Raises:
            AirflowFailException: it isn't empty, or has changed since the plan was made, or doesn't exist
                and ``if_missing`` is ``fail``, or `foreign_tables` is not a list of tables.
            LanceRetryableError: the metastore is unavailable.
        """
        from lance_namespace.errors import NamespaceNotFoundError

        namespace = parse_namespace(self.namespace)
        foreign = parse_list("foreign_tables", self.foreign_tables, "a list of identifiers, or ['*']")
        result = catalog_result(namespace, "drop_namespace", "planned" if self.is_dry_run else "unchanged")
        extent = " and its tables" if self.cascade else ""
        with self.connected(f"dropping namespace {str(namespace)!r}{extent}") as metastore:
            try:
                if self.cascade or self.is_dry_run:
                    plan = metastore.plan_drop_namespace({"id": list(namespace.parts)})
                    result["plan"] = self._publish(plan, context)
                if self.is_dry_run:
                    return result
                if self.cascade:
                    metastore.drop_planned_namespace(plan, foreign)
                else:
                    metastore.drop_namespace({"id": list(namespace.parts)})
            except NamespaceNotFoundError as error:
                self.accept_missing(f"namespace {str(namespace)!r}", self.if_missing, context, error)
                return catalog_result(namespace, "drop_namespace", "unchanged")
        self.log.info("Dropped namespace %s", namespace)
        return {**result, "outcome": "done"}

    def _publish(self, plan: CascadePlan, context: Context) -> dict[str, Any]:
        """Log a plan, and push it as an XCom before it is executed; return its XCom."""
        for line in plan.lines():
            self.log.info("%s", line)
        lance, foreign = [list(map(str, tables)) for tables in (plan.lance_tables, plan.foreign_tables)]
        published = {
            "namespaces": list(map(str, plan.namespaces))[:_NAMES_IN_AN_XCOM],
            "lance_tables": lance[:_NAMES_IN_AN_XCOM],
            "foreign_tables": foreign[:_NAMES_IN_AN_XCOM],
            "lance_table_count": len(lance),
            "foreign_table_count": len(foreign),
        }
        context["ti"].xcom_push(key="plan", value=published)  # a task that then fails returns nothing
        return published
