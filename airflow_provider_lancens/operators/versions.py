"""Versions of a table: advanced in the metastore, pinned by a tag, released."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_lancens.hooks.arguments import check_choice, parse_table, parse_version
from airflow_provider_lancens.links import LanceGlueTableLink
from airflow_provider_lancens.operators.base import SKIP, SKIP_OR_FAIL, IfMissing, LanceOperator

if TYPE_CHECKING:
    from airflow.sdk import Context


class LanceAdvanceTableVersionOperator(LanceOperator):
    """Move a managed table's version in the metastore, by compare-and-set, after a commit made elsewhere.

    Its XCom is ``{"table": str, "version": int, "previous_version": int, "advanced": bool}``;
    ``advanced`` is false where it was at the new version already. An outlet that is the table's asset, or an
    alias, carries table and versions as its event's extra.

    Args:
        table: its identifier, ``database$table``; managed by the metastore. Templated.
        expected_version: the version that the metastore must be at. Templated.
        new_version: the version that it is to be at; its manifest must lie on the storage. Templated.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "expected_version", "new_version", "lance_conn_id")
    operator_extra_links = (LanceGlueTableLink(),)

    def __init__(
        self, *, table: str, expected_version: int | str, new_version: int | str, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.expected_version = expected_version
        self.new_version = new_version

    def execute(self, context: Context) -> dict[str, Any]:
        """Move it.

        Raises:
            AirflowFailException: the storage decides this table's version, or doesn't hold the new one.
            LanceRetryableError: the table is at neither version, or the metastore didn't answer.
        """
        table = parse_table(self.table)
        expected = needed_version("expected_version", self.expected_version)
        new = needed_version("new_version", self.new_version)
        with self.connected(f"advancing table {str(table)!r} from version {expected} to {new}") as metastore:
            advanced = metastore.advance_table_version(table.parts, expected=expected, new=new)
        self.log.info("Table %s is at version %d (moved by this task: %s)", table, new, advanced)
        self.note_version(context, str(table), new, expected)
        return {"table": str(table), "version": new, "previous_version": expected, "advanced": advanced}


class LanceTagVersionOperator(LanceOperator):
    """Tag a version of a table in Lance, so that no clean-up takes it away; a tag of that name moves.

    As a set-up task whose tear-down is `LanceReleaseVersionOperator`, it keeps the version for exactly as
    long as the tasks between them read it.

    Its XCom is ``{"table": str, "version": int, "tag": str}``.

    Args:
        table: its identifier, ``database$table``. Templated.
        version: one that is there. Templated.
        tag: letters, digits, ``.``, ``-`` and ``_``. Templated.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "version", "tag", "lance_conn_id")

    def __init__(self, *, table: str, version: int | str, tag: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.version = version
        self.tag = tag

    def execute(self, context: Context) -> dict[str, Any]:
        """Tag it.

        Raises:
            AirflowFailException: there is no such table or version, or no tag can be called so.
            LanceRetryableError: the metastore or the storage didn't answer.
        """
        from airflow_provider_lancens.hooks.datasets import pin

        table, version = parse_table(self.table), needed_version("version", self.version)
        with self.connected(f"tagging table {str(table)!r}"):
            pin(self.hook, str(table), version, self.tag)
        self.log.info("Version %d of table %s is tagged as %s", version, table, self.tag)
        return {"table": str(table), "version": version, "tag": self.tag}


class LanceReleaseVersionOperator(LanceOperator):
    """Take a tag away from a table in Lance; a clean-up may then remove the version that it kept.

    Its XCom is ``{"table": str, "tag": str, "released": bool}``; ``released`` is false where there was
    no such tag.

    Args:
        table: its identifier, ``database$table``. Templated.
        tag: as `LanceTagVersionOperator` or the sensor's ``pin`` gave it. Templated.
        if_missing: ``skip`` lets the task succeed where there is no such tag or no such table, ``fail``
            fails it for good.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "tag", "lance_conn_id")

    def __init__(self, *, table: str, tag: str, if_missing: IfMissing = "skip", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.tag = tag
        self.if_missing = check_choice("if_missing", if_missing, SKIP_OR_FAIL)

    def execute(self, context: Context) -> dict[str, Any]:
        """Take it away.

        Raises:
            AirflowFailException: it is missing and ``if_missing`` is ``fail``.
            LanceRetryableError: the metastore or the storage didn't answer.
        """
        from airflow_provider_lancens.hooks.datasets import release

        table = parse_table(self.table)
        with self.connected(f"releasing tag {self.tag!r} of table {str(table)!r}"):
            seen = self.hook.table_version(str(table))
            released = seen is not None and release(self.hook, str(table), self.tag)
        if not released and self.if_missing != SKIP:
            raise AirflowFailException(f"tag={self.tag!r}: table {str(table)!r} has no such tag")
        self.log.info("Released tag %s of table %s: %s", self.tag, table, released)
        return {"table": str(table), "tag": self.tag, "released": released}


def needed_version(argument: str, value: Any) -> int:
    """A version, where none won't do.

    Raises:
        AirflowFailException: it is none, or something else; the message names the argument.
    """
    version = parse_version(argument, value)
    if version is None:
        raise AirflowFailException(f"{argument}={value!r}: a version is needed here")
    return version
