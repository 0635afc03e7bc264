"""Operators that change a table's version authority, and check the metastore against the storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.template_args import check_choice, parse_table
from airflow_provider_lancens.links import LanceGlueTableLink, LancePageLink
from airflow_provider_lancens.operators.lance_operator import LanceOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

_CONSISTENT, _FILES_MISSING = "consistent", "files_missing"
_REPORT, _ADOPT, _FAIL = "report", "adopt", "fail"


class LanceConvertTableOperator(LanceOperator):
    """Make the metastore, or the storage, a table's version authority.

    Its XCom is ``{"table": str, "managed_by": str, "converted": bool}``; ``converted`` is false if nothing
    had to change.

    Args:
        table: table identifier, ``database$table``. Templated.
        managed_by: ``impl`` for the metastore, which must support compare-and-set, or ``storage``. Templated.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "managed_by", "lance_conn_id")
    operator_extra_links = (LancePageLink(), LanceGlueTableLink())

    def __init__(self, *, table: str, managed_by: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.managed_by = managed_by

    def execute(self, context: Context) -> dict[str, Any]:
        """Convert the table.

        Raises:
            AirflowFailException: the metastore has no compare-and-set, or disagrees with the storage.
            LanceRetryableError: concurrent writers won every attempt, or the metastore is unavailable.
        """
        table = parse_table(self.table)
        attempt = f"converting table {str(table)!r} to managed_by={self.managed_by!r}"
        with self.connected(attempt) as metastore:
            converted = metastore.convert_table(table.parts, managed_by=self.managed_by)
        self.log.info(
            "Table %s is managed by %s (changed by this task: %s)", table, self.managed_by, converted
        )
        return {"table": str(table), "managed_by": self.managed_by, "converted": converted}


class LanceCheckTableOperator(LanceOperator):
    """Check that a table's version in the metastore is that of its storage, and its files exist.

    It can also repair the metastore's version.

    Its XCom is ``{"table": str, "verdict": str, "metastore_version": int, "storage_version": int,
    "adopted": bool}``, with the versions before any repair. ``verdict`` is one of:

    - ``consistent``
    - ``storage_ahead``: a direct (uncoordinated) writer committed to the storage.
    - ``metastore_reverted``: another client wrote the catalog table back with an old version.
    - ``metastore_ahead``: the newest manifest is gone.
    - ``diverged``: a direct writer wrote another manifest for the same version that was committed here.
    - ``no_version``: the catalog table has no version.
    - ``files_missing``: the newest version references files that were removed. For a table whose version
      authority is the storage, this is the only inconsistency that can be detected.

    A table that diverged or lacks files isn't adopted: that would discard a commit, which is for a person to
    decide.

    Args:
        table: table identifier, ``database$table``. Templated.
        if_inconsistent: ``fail`` fails the task without retries, ``report`` logs a warning and succeeds,
            ``adopt`` moves the metastore to the storage's newest version.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "lance_conn_id")
    operator_extra_links = (LancePageLink(), LanceGlueTableLink())

    def __init__(
        self, *, table: str, if_inconsistent: Literal["fail", "report", "adopt"] = "fail", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.if_inconsistent = check_choice("if_inconsistent", if_inconsistent, (_FAIL, _REPORT, _ADOPT))

    def execute(self, context: Context) -> dict[str, Any]:
        """Check metastore and storage, and repair the table with ``adopt``.

        Raises:
            AirflowFailException: they disagree and ``if_inconsistent`` is ``fail``; or it is ``adopt`` and
                they diverged, files are missing, or the storage is this table's version authority.
            LanceRetryableError: the table changed meanwhile, or the metastore is unavailable.
        """
        table = parse_table(self.table)
        with self.connected(f"checking table {str(table)!r} against its storage") as metastore:
            compare = metastore.adopt_table if self.if_inconsistent == _ADOPT else metastore.compare_table
            found = compare(table.parts)
        consistent = found.verdict == _CONSISTENT
        if self.if_inconsistent == _FAIL and not consistent:
            raise AirflowFailException(found.explanation)
        if self.if_inconsistent == _ADOPT and found.verdict == _FILES_MISSING:
            raise AirflowFailException(found.explanation)
        adopted = not consistent and self.if_inconsistent == _ADOPT
        (self.log.info if consistent else self.log.warning)("%s (adopted: %s)", found.explanation, adopted)
        return {
            "table": str(table),
            "verdict": found.verdict,
            "metastore_version": found.metastore_version,
            "storage_version": found.storage_version,
            "adopted": adopted,
        }
