"""Operators that create and drop namespaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.hooks.template_args import (
    check_choice,
    check_flag,
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
)

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_lancens.namespace.operations.cascade import CascadePlan


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
        namespace = parse_namespace(self.namespace)
        properties = parse_settings("properties", self.properties)
        with self.opened(context) as lake:
            result = lake.create_namespace(namespace, properties=properties, if_exists=self.if_exists)
        return result.as_dict()


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
        dry_run: only compute the plan; fails like a drop would. With ``foreign_tables=["*"]``, the plan of a
            cascade lists all tables.
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
        self.cascade = check_flag("cascade", cascade)
        self.foreign_tables = foreign_tables
        self.is_dry_run = check_flag("dry_run", dry_run)  # `dry_run` is a method of every operator
        self.if_missing = check_choice("if_missing", if_missing, SKIP_OR_FAIL)

    def execute(self, context: Context) -> dict[str, Any]:
        """Drop the namespace.

        Raises:
            AirflowFailException: it isn't empty, or has changed since the plan was made, or doesn't exist
                and ``if_missing`` is ``fail``, or `foreign_tables` is not a list of tables.
            LanceRetryableError: the metastore is unavailable.
        """
        namespace = parse_namespace(self.namespace)
        foreign = parse_list("foreign_tables", self.foreign_tables, "a list of identifiers, or ['*']")
        with self.opened(context) as lake:
            result = lake.drop_namespace(
                namespace,
                cascade=self.cascade,
                foreign_tables=foreign,
                if_missing=SKIP,
                dry_run=self.is_dry_run,
                on_plan=lambda plan: self._publish(plan, context),
            )
        if result.outcome == "unchanged":
            self.accept_missing(f"namespace {str(namespace)!r}", self.if_missing, context)
        return result.as_dict()

    def _publish(self, plan: CascadePlan, context: Context) -> None:
        """Log a plan, and push it as an XCom before it is executed."""
        for line in plan.lines():
            self.log.info("%s", line)
        context["ti"].xcom_push(key="plan", value=plan.as_dict())  # pushed now, since the drop may fail
