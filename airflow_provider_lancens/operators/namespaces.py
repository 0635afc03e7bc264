"""Creating and dropping namespaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_lancens.hooks.arguments import check_choice, parse_list, parse_namespace, parse_settings
from airflow_provider_lancens.links import LanceGlueDatabaseLink
from airflow_provider_lancens.operators.base import SKIP, SKIP_OR_FAIL, IfExists, IfMissing, LanceOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_lancens.identifiers import NamespaceId
    from airflow_provider_lancens.namespace.base import MetastoreNamespace

_CASCADE = "cascade"
_BEHAVIORS = ("restrict", _CASCADE)
_NAMES_IN_AN_XCOM = 1000


class LanceCreateNamespaceOperator(LanceOperator):
    """Create a namespace: a database of the metastore.

    Its XCom is ``{"namespace": str, "created": bool}``; ``created`` is false where it was there already.

    Args:
        namespace: its identifier, ``database``. Templated.
        properties: kept with it; ``database.location-uri``, ``database.description`` and
            ``database.owner`` go where the metastore has a field for them. Templated.
        if_exists: ``skip`` leaves an existing one as it is, ``fail`` fails the task for good.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("namespace", "properties", "lance_conn_id")
    template_fields_renderers = {"properties": "json"}
    operator_extra_links = (LanceGlueDatabaseLink(),)

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
        """Create it.

        Raises:
            AirflowFailException: it exists and ``if_exists`` is ``fail``, or can't be created.
            LanceRetryableError: the metastore didn't answer.
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
                self.log.info("Namespace %s exists; left as it is", namespace)
                return {"namespace": str(namespace), "created": False}
        self.log.info("Created namespace %s", namespace)
        return {"namespace": str(namespace), "created": True}


class LanceDropNamespaceOperator(LanceOperator):
    """Drop a namespace from the metastore; no file is deleted.

    Its XCom is ``{"namespace": str, "dropped": bool}``; ``dropped`` is false where it wasn't there, or
    with ``dry_run``. With ``cascade`` or ``dry_run`` it also holds ``plan``, which is logged and pushed
    before anything goes: ``{"namespaces": [str], "lance_tables": [str], "foreign_tables": [str],
    "lance_table_count": int, "foreign_table_count": int}``, each list cut after 1,000 names.

    Args:
        namespace: its identifier, ``database``. Templated.
        behavior: ``restrict`` refuses one that isn't empty; ``cascade`` drops its Lance tables' entries
            first, and refuses where it holds tables that aren't Lance and aren't named by `foreign_tables`.
        foreign_tables: identifiers of tables that aren't Lance and whose entries a cascade may drop all
            the same; ``["*"]`` for any. Templated.
        dry_run: only make the plan.
        if_missing: ``skip`` lets the task succeed where there is none, ``fail`` fails it for good.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("namespace", "foreign_tables", "lance_conn_id")

    def __init__(
        self,
        *,
        namespace: str,
        behavior: Literal["restrict", "cascade"] = "restrict",
        foreign_tables: Sequence[str] = (),
        dry_run: bool = False,
        if_missing: IfMissing = "skip",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.namespace = namespace
        self.behavior = check_choice("behavior", behavior, _BEHAVIORS)
        self.foreign_tables = foreign_tables
        self.only_plan = dry_run  # `dry_run` is a method of every operator
        self.if_missing = check_choice("if_missing", if_missing, SKIP_OR_FAIL)

    def execute(self, context: Context) -> dict[str, Any]:
        """Drop it.

        Raises:
            AirflowFailException: it isn't empty, or it is missing and ``if_missing`` is ``fail``, or
                `foreign_tables` is no list.
            LanceRetryableError: the metastore didn't answer.
        """
        from lance_namespace.errors import NamespaceNotFoundError

        namespace = parse_namespace(self.namespace)
        foreign = parse_list("foreign_tables", self.foreign_tables, "a list of identifiers, or ['*']")
        result: dict[str, Any] = {"namespace": str(namespace), "dropped": False}
        with self.connected(f"dropping namespace {str(namespace)!r} ({self.behavior})") as metastore:
            try:
                if self.only_plan or self.behavior == _CASCADE:
                    result["plan"] = self._plan(metastore, namespace, context)
                if not self.only_plan:
                    metastore.drop_namespace(self._request(namespace, foreign))
                    result["dropped"] = True
            except NamespaceNotFoundError:
                if self.if_missing != SKIP:
                    raise
                self.log.info("Namespace %s is not there; nothing to drop", namespace)
                return result
        self.log.info("Dropped namespace %s: %s", namespace, result["dropped"])
        return result

    def _request(self, namespace: NamespaceId, foreign: Sequence[str]) -> Any:
        from lance_namespace import DropNamespaceRequest

        from airflow_provider_lancens.namespace.interface.namespaces import FOREIGN_TABLES

        allowed = {FOREIGN_TABLES: ",".join(foreign)} if foreign else None
        return DropNamespaceRequest(id=list(namespace.parts), behavior=self.behavior, context=allowed)

    def _plan(
        self, metastore: MetastoreNamespace, namespace: NamespaceId, context: Context
    ) -> dict[str, Any]:
        plan = metastore.plan_drop_namespace({"id": list(namespace.parts)})
        lance, foreign = [list(map(str, tables)) for tables in (plan.lance_tables, plan.foreign_tables)]
        self.log.info("Namespaces to drop: %s", ", ".join(map(str, plan.namespaces)))
        self.log.info("Lance tables whose entries go: %s", ", ".join(lance) or "none")
        self.log.info("Tables that aren't Lance: %s", ", ".join(foreign) or "none")
        found = {
            "namespaces": list(map(str, plan.namespaces))[:_NAMES_IN_AN_XCOM],
            "lance_tables": lance[:_NAMES_IN_AN_XCOM],
            "foreign_tables": foreign[:_NAMES_IN_AN_XCOM],
            "lance_table_count": len(lance),
            "foreign_table_count": len(foreign),
        }
        context["ti"].xcom_push(key="plan", value=found)  # a task that then fails returns nothing
        return found
