"""Who decides a table's version, and whether metastore and storage agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_lancens.hooks.arguments import check_choice, parse_table
from airflow_provider_lancens.links import LanceGlueTableLink
from airflow_provider_lancens.operators.base import LanceOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

_CONSISTENT = "consistent"
_REPORT, _ADOPT, _FAIL = "report", "adopt", "fail"


class LanceConvertTableOperator(LanceOperator):
    """Hand the deciding of a table's version to the metastore, or back to the storage.

    Its XCom is ``{"table": str, "managed_by": str, "converted": bool}``; ``converted`` is false where it
    was so already.

    Args:
        table: its identifier, ``database$table``. Templated.
        managed_by: ``impl`` for the metastore, which must know compare-and-set, or ``storage``. Templated.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "managed_by", "lance_conn_id")
    operator_extra_links = (LanceGlueTableLink(),)

    def __init__(self, *, table: str, managed_by: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.managed_by = managed_by

    def execute(self, context: Context) -> dict[str, Any]:
        """Convert it.

        Raises:
            AirflowFailException: the metastore knows no compare-and-set, or it and the storage disagree.
            LanceRetryableError: writers were always faster, or the metastore didn't answer.
        """
        table = parse_table(self.table)
        attempt = f"converting table {str(table)!r} to managed_by={self.managed_by!r}"
        with self.connected(attempt) as metastore:
            converted = metastore.convert_table(table.parts, managed_by=self.managed_by)
        self.log.info("Table %s is managed by %s (this task's doing: %s)", table, self.managed_by, converted)
        return {"table": str(table), "managed_by": self.managed_by, "converted": converted}


class LanceCompareTableOperator(LanceOperator):
    """Compare what the metastore says of a managed table with what lies on its storage, and repair it.

    Its XCom is ``{"table": str, "verdict": str, "metastore_version": int, "storage_version": int,
    "adopted": bool}``, as it stood before; ``verdict`` is ``consistent``, ``storage_ahead`` (a writer
    committed by path), ``metastore_ahead`` (the newest manifest is gone), ``diverged`` (a writer by path
    made another manifest of the very version that was committed here) or ``no_version`` (the entry holds
    none). One that diverged isn't adopted: that gives up a commit, and is for a person to decide.

    Args:
        table: its identifier, ``database$table``; managed by the metastore. Templated.
        if_inconsistent: ``report`` logs a warning, ``adopt`` moves the metastore to the storage's newest
            version, ``fail`` fails the task for good.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "lance_conn_id")
    operator_extra_links = (LanceGlueTableLink(),)

    def __init__(
        self, *, table: str, if_inconsistent: Literal["report", "adopt", "fail"] = "report", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.if_inconsistent = check_choice("if_inconsistent", if_inconsistent, (_REPORT, _ADOPT, _FAIL))

    def execute(self, context: Context) -> dict[str, Any]:
        """Compare, and repair where asked.

        Raises:
            AirflowFailException: the storage decides this table's version, or they disagree and
                ``if_inconsistent`` is ``fail``, or they diverged and it is ``adopt``.
            LanceRetryableError: the table moved meanwhile, or the metastore didn't answer.
        """
        table = parse_table(self.table)
        with self.connected(f"comparing table {str(table)!r} with its storage") as metastore:
            look = metastore.adopt_table if self.if_inconsistent == _ADOPT else metastore.compare_table
            found = look(table.parts)
        consistent = found.verdict == _CONSISTENT
        if not consistent and self.if_inconsistent == _FAIL:
            raise AirflowFailException(found.words)
        adopted = not consistent and self.if_inconsistent == _ADOPT
        (self.log.info if consistent else self.log.warning)("%s (adopted: %s)", found.words, adopted)
        return {
            "table": str(table),
            "verdict": found.verdict,
            "metastore_version": found.metastore_version,
            "storage_version": found.storage_version,
            "adopted": adopted,
        }
