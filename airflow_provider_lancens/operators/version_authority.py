"""Operators that change a table's version authority, advance the metastore's version, and check it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.template_args import (
    AUTHORITIES,
    check_choice,
    is_template,
    parse_table,
)
from airflow_provider_lancens.links import LanceGlueTableLink, LancePageLink
from airflow_provider_lancens.operators.lance_operator import LanceOperator, table_result
from airflow_provider_lancens.operators.versions import needed_version
from airflow_provider_lancens.spark.options import not_a_choice
from airflow_provider_lancens.spark.results import Result, elapsed

if TYPE_CHECKING:
    from airflow.sdk import Context

IfInconsistent = Literal["fail", "report", "adopt"]


class LanceConvertTableOperator(LanceOperator):
    """Change a table's version authority to the catalog, that is the metastore, or to the storage.

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
        if authority not in AUTHORITIES:
            raise AirflowFailException(not_a_choice("version_authority", authority, AUTHORITIES))
        with self.opened(context) as lake:
            converted = lake.table(table).set_version_authority(authority)  # type: ignore[arg-type]  # checked there
        self.log.info(
            "The %s decides the versions of table %s (changed by this task: %s)", authority, table, converted
        )
        result = table_result(table, "set_version_authority", "done" if converted else "unchanged")
        return {**result, "version_authority": authority}


class LanceAdvanceVersionOperator(LanceOperator):
    """Advance a managed table's version in the metastore, by compare-and-set, after a commit made elsewhere.

    Its XCom is ``{"table": str, "operation": str, "outcome": str, "version": int, "previous_version": int,
    "seconds": float, "reason": str, "location": str | None}``; ``outcome`` is ``unchanged`` if the table was
    already at the new version. If an outlet is the table's asset or an asset alias, the extra of its event
    contains the table and both versions.

    Args:
        table: table identifier, ``database$table``; its version must be managed by the metastore. Templated.
        expected_version: the version that the metastore must currently have. Templated.
        version: the version to advance to; its manifest must exist on the storage. Templated.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "expected_version", "version", "lance_conn_id")
    operator_extra_links = (LancePageLink(), LanceGlueTableLink())

    def __init__(self, *, table: str, expected_version: int | str, version: int | str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.expected_version = expected_version
        self.version = version

    def execute(self, context: Context) -> dict[str, Any]:
        """Advance the version.

        Raises:
            AirflowFailException: the storage is this table's version authority, or lacks the new version; or
                the table is past the expected version, and not at the new one.
            LanceRetryableError: the table isn't at the expected version yet, or the metastore is unavailable.
        """
        table = parse_table(self.table)
        expected = needed_version("expected_version", self.expected_version)
        new, started = needed_version("version", self.version), time.monotonic()
        with self.opened(context) as lake:
            opened = lake.table(table)
            advanced, location = opened.advance(new, expected_version=expected), opened.location
        self.log.info("Table %s is at version %d (changed by this task: %s)", table, new, advanced)
        result = Result(
            table=str(table),
            location=location,
            operation="advance",
            outcome="done" if advanced else "unchanged",
            version=new,
            previous_version=expected,
            seconds=elapsed(started),
        )
        self.emit_asset_event(context, result)
        return result.as_dict()


class LanceCheckTableOperator(LanceOperator):
    """Check that a table has the same version in the metastore and on the storage, and that its files exist.

    It can also repair the metastore's version.

    Every version is opened, so it takes long on a table with many versions.

    Its XCom is ``{"table": str, "operation": str, "outcome": str, "version": int | None, "previous_version":
    int | None, "verdict": str, "catalog_version": int | None, "storage_version": int | None, "checked": int,
    "missing_files": dict[int, list[str]], "complete_version": int | None, "seconds": float, "reason": str,
    "location": str | None}``, with the catalog's and the storage's versions before any repair;
    ``missing_files`` are the paths by version, of the ``checked`` versions, and ``complete_version`` is the
    newest version that lacks none. ``outcome`` is ``done`` if the storage's version was adopted, else
    ``unchanged``. ``verdict`` is one of:

    - ``consistent``
    - ``storage_ahead``: a direct (uncoordinated) writer committed to the storage.
    - ``metastore_reverted``: another client wrote the catalog table back with an old version.
    - ``metastore_ahead``: the newest manifest is gone.
    - ``diverged``: a direct writer wrote another manifest for the same version that was committed here.
    - ``no_version``: the catalog table has no version.
    - ``files_missing``: the newest version references files that were removed. For a table whose version
      authority is the storage, this is the only inconsistency that can be detected.

    A table that diverged or lacks files isn't adopted: that would discard a commit, which a person must
    decide.

    Args:
        table: table identifier, ``database$table``. Templated.
        if_inconsistent: ``fail`` fails the task without retries, ``report`` logs a warning and succeeds,
            ``adopt`` moves the metastore to the storage's newest version.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "lance_conn_id")
    operator_extra_links = (LancePageLink(), LanceGlueTableLink())

    def __init__(self, *, table: str, if_inconsistent: IfInconsistent = "fail", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.if_inconsistent = check_choice("if_inconsistent", if_inconsistent, ("fail", "report", "adopt"))

    def execute(self, context: Context) -> dict[str, Any]:
        """Check metastore and storage, and repair the table with ``adopt``.

        Raises:
            AirflowFailException: they disagree and ``if_inconsistent`` is ``fail``; or it is ``adopt`` and
                they diverged, files are missing, or the storage is this table's version authority.
            LanceRetryableError: the table changed meanwhile, or the metastore is unavailable.
        """
        with self.opened(context) as lake:
            result = lake.table(parse_table(self.table)).check(if_inconsistent=self.if_inconsistent)
        log = self.log.info if result.verdict == "consistent" else self.log.warning
        log("%s (adopted: %s)", result.reason, result.is_done)
        return result.as_dict()
