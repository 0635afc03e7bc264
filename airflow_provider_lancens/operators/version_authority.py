"""Operators that change a table's version authority, and check the metastore against the storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.template_args import (
    AUTHORITIES,
    check_choice,
    is_template,
    parse_table,
    parse_version_authority,
)
from airflow_provider_lancens.links import LanceGlueTableLink, LancePageLink
from airflow_provider_lancens.operators.lance_operator import LanceOperator, catalog_result

if TYPE_CHECKING:
    from airflow.sdk import Context

_CONSISTENT, _FILES_MISSING = "consistent", "files_missing"
_REPORT, _ADOPT, _FAIL = "report", "adopt", "fail"


class LanceConvertTableOperator(LanceOperator):
    """Make the catalog, that is the metastore, or the storage a table's version authority.

    Its XCom is ``{"table": str, "operation": str, "outcome": str, "version_authority": str}``; ``outcome`` is
    ``unchanged`` if nothing had to change.

    Args:
        table: table identifier, ``database$table``. Templated.
        version_authority: ``catalog`` for the metastore, which must support compare-and-set, or ``storage``:
            the table's property ``managed_by`` becomes ``impl`` or ``storage``. Templated.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "version_authority", "lance_conn_id")
    operator_extra_links = (LancePageLink(), LanceGlueTableLink())

    def __init__(self, *, table: str, version_authority: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not is_template(version_authority):
            check_choice("version_authority", version_authority, AUTHORITIES)
        self.table = table
        self.version_authority = version_authority

    def execute(self, context: Context) -> dict[str, Any]:
        """Convert the table.

        Raises:
            AirflowFailException: the metastore has no compare-and-set, or disagrees with the storage.
            LanceRetryableError: concurrent writers won every attempt, or the metastore is unavailable.
        """
        table, authority = parse_table(self.table), self.version_authority
        managed_by = parse_version_authority(authority)
        attempt = f"converting table {str(table)!r} to version_authority={authority!r}"
        with self.connected(attempt) as metastore:
            converted = metastore.convert_table(table.parts, managed_by=managed_by)
        self.log.info(
            "The %s decides the versions of table %s (changed by this task: %s)", authority, table, converted
        )
        result = catalog_result(table, "set_version_authority", "done" if converted else "unchanged")
        return {**result, "version_authority": authority}


class LanceCheckTableOperator(LanceOperator):
    """Check that a table's version in the metastore is that of its storage, and its files exist.

    It can also repair the metastore's version.

    Its XCom is ``{"table": str, "operation": str, "outcome": str, "verdict": str, "catalog_version": int,
    "storage_version": int}``, with the versions before any repair; ``outcome`` is ``done`` if the storage's
    version was adopted, else ``unchanged``. ``verdict`` is one of:

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
            **catalog_result(table, "check", "done" if adopted else "unchanged"),
            "verdict": found.verdict,
            "catalog_version": found.metastore_version,
            "storage_version": found.storage_version,
        }
