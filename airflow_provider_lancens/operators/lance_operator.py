"""Base class of the operators on a Lance namespace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from airflow.sdk import BaseOperator

from airflow_provider_lancens.assets.table import LanceTable, emit_asset_event, emit_no_event
from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException, airflow_errors
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.hooks.template_args import CheckedTemplateArgs
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.provider_info import DEFAULT_CONNECTION

if TYPE_CHECKING:
    from airflow.sdk import Context
    from lance_namespace import LanceNamespace

    from airflow_provider_lancens.lineage.facets import OperatorFacets
    from airflow_provider_lancens.lineage.task_lineage import FileRead, TableRead, TableWrite, TaskLineage
    from airflow_provider_lancens.namespace.metastore_namespace import MetastoreNamespace
    from airflow_provider_lancens.spark.lance_catalog import LanceCatalog
    from airflow_provider_lancens.spark.results import Outcome, Result

IfExists = Literal["skip", "fail"]
IfMissing = Literal["skip", "fail"]
SKIP: Literal["skip"] = "skip"
SKIP_OR_FAIL = ("skip", "fail")


def table_result(table: TableId, operation: str, outcome: Outcome) -> dict[str, Any]:
    """Return the fields that XComs have in common of tasks whose method returns no result.

    Args:
        table: the table.
        operation: the verb.
        outcome: what the task did.
    """
    return {"table": str(table), "operation": operation, "outcome": outcome}


class LanceOperator(CheckedTemplateArgs, BaseOperator):
    """Base class of operators on a Lance namespace; their XCom is a small dictionary of plain values.

    Each key is also pushed as a separate XCom: ``declare.output["location"]``.

    Args:
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("lance_conn_id",)

    _lineage: TaskLineage | None = None

    def __init__(self, *, lance_conn_id: str = DEFAULT_CONNECTION, **kwargs: Any) -> None:
        kwargs.setdefault("multiple_outputs", True)
        super().__init__(**kwargs)
        self.lance_conn_id = lance_conn_id

    @cached_property
    def hook(self) -> LanceHook:
        """The hook for the connection's type."""
        return LanceHook.for_connection(self.lance_conn_id)

    @contextmanager
    def connected(self, attempt: str) -> Iterator[MetastoreNamespace]:
        """Open the namespace for the block, close it afterwards, and convert its errors to Airflow's.

        Args:
            attempt: the action, which error messages begin with: ``creating namespace 'sales'``.
        """
        attempt = f"{attempt} through connection {self.lance_conn_id!r}"
        with airflow_errors(attempt), closing(self.hook) as hook:
            yield hook.get_conn()

    @contextmanager
    def opened(self, context: Context, spark: Callable[[], Any] | None = None) -> Iterator[LanceCatalog]:
        """Open the catalog for the block; its methods and its tables' methods raise Airflow's errors.

        Args:
            context: the task's context.
            spark: opens the session that some methods need.
        """
        from airflow_provider_lancens.operators._spark.idempotency import execution_id_of
        from airflow_provider_lancens.spark.execution import TaskExecution

        with closing(self.hook) as hook:
            yield hook.catalog(spark=spark, execution=TaskExecution(lambda: execution_id_of(context)))

    def accept_missing(self, what: str, if_missing: str, context: Context) -> None:
        """Log that the object which the task removes doesn't exist, or fail the task.

        On a later try, an earlier one, or the task before it was cleared, has removed it.

        Args:
            what: the object, for the message: ``table 'db$orders'``.
            if_missing: the operator's argument.
            context: the task's context.

        Raises:
            AirflowFailException: it is the first try, and `if_missing` is ``fail``.
        """
        if if_missing != SKIP and context["ti"].try_number == 1:
            raise AirflowFailException(
                f"{what} doesn't exist, read through connection {self.lance_conn_id!r}, so there is nothing "
                "to remove; correct its name, or set if_missing='skip' if it may be missing"
            )
        self.log.info("%s doesn't exist; nothing to remove", f"{what[:1].upper()}{what[1:]}")

    def emit_asset_event(
        self,
        context: Context,
        result: Result,
        *,
        partitions: Sequence[str] | None = None,
    ) -> None:
        """Attach the version of a result to the asset events of the task's outlets.

        There is no event of a table after a dry run, or if the task skipped its write, and others have
        changed the table since; and nothing is attached if the table has no version, or the rows are only
        staged.

        Args:
            context: the task's context.
            result: the result.
            partitions: the partitions that the version changed, such as days; None if not known.
        """
        changed = LanceTable.of(self.hook.asset_authority, TableId.of_result(result.table))
        if result.is_outdated or result.outcome == "planned":
            emit_no_event(context, self, changed)
        elif result.version is not None:
            version, previous = result.version, result.previous_version
            emit_asset_event(context, self.outlets, changed, version, previous, result.event, partitions)

    def note_lineage(
        self, namespace: LanceNamespace, write: TableWrite, reads: Sequence[TableRead | FileRead] = ()
    ) -> None:
        """Keep the task's writes and reads for OpenLineage, if that is enabled; a failure is only logged.

        Args:
            namespace: the namespace of the tables.
            write: what the task wrote.
            reads: what it read.
        """
        from airflow_provider_lancens.lineage.task_lineage import TaskLineage

        self._lineage = TaskLineage.noted(self.hook, namespace, write, reads)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorFacets:
        """Return the datasets of the task; called by Airflow's OpenLineage provider, in a forked process.

        Args:
            task_instance: the task instance; unused, since the operator has kept what it did.
        """
        from airflow_provider_lancens.lineage.facets import operator_facets

        return operator_facets(self._lineage, self.inlets, self.outlets)
