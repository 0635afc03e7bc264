"""Operators that find and tag versions of a table. No Spark."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.template_args import (
    check_choice,
    is_template,
    parse_table,
    parse_text,
    parse_version,
)
from airflow_provider_lancens.links import LanceGlueTableLink, LancePageLink
from airflow_provider_lancens.operators.lance_operator import (
    SKIP,
    SKIP_OR_FAIL,
    IfMissing,
    LanceOperator,
    table_result,
)
from airflow_provider_lancens.spark.options import check_expires_after

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_lancens.spark.table.version_lookup import VersionLike


class LanceFindVersionOperator(LanceOperator):
    """Find the version of a table at a time or with a tag, for tasks that read it.

    Its XCom is ``{"table": str, "version": int, "location": str}``, which can be passed as an ingestion's
    input and to ``lake.table``: all tasks that use it read the same version, even if they are retried.

    Args:
        table: table identifier, ``database$table``. Templated.
        version: a time with a time zone in the past, such as ``{{ data_interval_end }}``, which means the
            version that was the newest then; the name of a tag; or a number. Templated.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "version", *LanceOperator.template_fields)
    operator_extra_links = (LancePageLink(), LanceGlueTableLink())

    def __init__(self, *, table: str, version: VersionLike, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_given_version(version)
        self.table = table
        self.version = version

    def execute(self, context: Context) -> dict[str, Any]:
        """Find the version.

        Raises:
            AirflowFailException: there is no such table, tag or version, or it is invalid.
            LanceRetryableError: the metastore or the storage is unavailable.
        """
        table, wanted = parse_table(self.table), given_version(self.version)
        with self.opened(context) as lake:
            found = lake.table(table).at(wanted)
            version, location = found.version, found.location
        self.log.info("Table %s was at version %d", table, version)
        return {"table": str(table), "version": version, "location": location}


class LanceTagOperator(LanceOperator):
    """Tag a version of a table in Lance, which protects it from clean-up; an existing tag is moved.

    Used as a setup task with `LanceDeleteTagOperator` as its teardown, it keeps the version for exactly
    as long as the tasks between them read it.

    A tag is also the bookmark of a consumer: the version up to which the consumer has read the table.
    `LanceFindChangesOperator` finds the versions after it. Moving an expired bookmark makes it valid again.

    Its XCom is ``{"table": str, "operation": str, "outcome": str, "version": int, "tag": str, "location":
    str}``.

    Args:
        table: table identifier, ``database$table``. Templated.
        version: an existing version. Templated.
        tag: name of the tag: letters, digits, ``.``, ``-`` and ``_``. Templated.
        expires_after: how long the version is kept, if the tag isn't moved again, after this task or, if
            later, after the commit of the next version, unless that was cleaned up; then a clean-up makes
            the tag expire, and logs a warning. By default it doesn't expire.
        location: where the table was that has the version, from the XCom that the version is from: if another
            table has the name by then, the task fails, and the tag isn't moved. None doesn't check it.
            Templated.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "version", "tag", "location", "lance_conn_id")

    def __init__(
        self,
        *,
        table: str,
        version: int | str,
        tag: str,
        expires_after: timedelta | None = None,
        location: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_expires_after(expires_after)
        self.table = table
        self.version = version
        self.tag = tag
        self.expires_after = expires_after
        self.location = location

    def execute(self, context: Context) -> dict[str, Any]:
        """Tag the version.

        Raises:
            AirflowFailException: there is no such table or version, the tag's name is invalid, or the table
                is at another location.
            LanceRetryableError: the metastore or the storage is unavailable.
        """
        from airflow_provider_lancens.hooks.table_checks import check_tag
        from airflow_provider_lancens.operators._spark.pinned_inputs import PinnedTable

        table, version = parse_table(self.table), needed_version("version", self.version)
        tag = check_tag(self.tag)
        with self.opened(context) as lake:
            location = parse_text(self.location) or lake.table(table).location
            opened = lake.table(PinnedTable(table, version, location).as_result())
            opened.move_bookmark(tag, expires_after=self.expires_after, allow_older=True)
        self.log.info("Version %d of table %s is tagged as %s", version, table, tag)
        result = {**table_result(table, "tag", "done"), "version": version, "tag": tag}
        return {**result, "location": opened.location}


class LanceDeleteTagOperator(LanceOperator):
    """Delete a tag of a table in Lance; a clean-up may then remove the version that it protected.

    If the tag is an expired bookmark, the record of its expiry is deleted too: its consumer starts over.

    Its XCom is ``{"table": str, "operation": str, "outcome": str, "tag": str}``; ``outcome`` is ``unchanged``
    if there was no such tag.

    Args:
        table: table identifier, ``database$table``. Templated.
        tag: the tag that `LanceTagOperator` or the sensor's ``pin`` created. Templated.
        if_missing: if there is no such tag or no such table, ``fail`` fails the task without retries, unless
            it is a later try, since an earlier one has then removed it; ``skip`` lets it succeed.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "tag", "lance_conn_id")

    def __init__(self, *, table: str, tag: str, if_missing: IfMissing = "fail", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.tag = tag
        self.if_missing = check_choice("if_missing", if_missing, SKIP_OR_FAIL)

    def execute(self, context: Context) -> dict[str, Any]:
        """Delete the tag.

        Raises:
            AirflowFailException: there is no such tag and ``if_missing`` is ``fail``.
            LanceRetryableError: the metastore or the storage is unavailable.
        """
        from airflow_provider_lancens import spec_errors
        from airflow_provider_lancens.hooks.table_checks import check_tag

        table, tag = parse_table(self.table), check_tag(self.tag)
        with self.opened(context) as lake:
            try:
                deleted = lake.table(table).delete_tag(tag, if_missing=SKIP)
            except spec_errors.TableNotFoundError:
                deleted = False
        if deleted:
            self.log.info("Tag %s of table %s deleted", tag, table)
        else:
            self.accept_missing(f"tag {tag!r} of table {str(table)!r}", self.if_missing, context)
        result = table_result(table, "delete_tag", "done" if deleted else "unchanged")
        return {**result, "tag": tag}


def given_version(value: VersionLike) -> VersionLike:
    """Return a version as it was given or rendered.

    Raises:
        AirflowFailException: it is empty, or the number of a staged version.
    """
    text = parse_text(value)
    if text is None:
        raise AirflowFailException(f"version={value!r}: it is empty; expected a number, a time or a tag")
    if isinstance(value, datetime):
        return value
    number = parse_version("version", value) if text.isascii() and text.isdecimal() else None
    return text if number is None or isinstance(value, str) else number


def check_given_version(version: VersionLike) -> None:
    """Refuse an invalid version while the DAG is parsed, as far as it isn't rendered later."""
    if isinstance(version, int) or is_template(version):
        return
    time = version
    if isinstance(version, str):
        if ":" not in version:  # a number or a tag
            return
        try:
            time = datetime.fromisoformat(version)
        except ValueError as error:
            raise ValueError(
                f"version={version!r}: expected a number, the name of a tag, or a time in ISO 8601 with a "
                "time zone, such as 2026-11-01T06:00:00+00:00"
            ) from error
    if not isinstance(time, datetime) or time.tzinfo is None:
        raise ValueError(f"version={version!r}: expected a number, a tag, or a time with a time zone")


def needed_version(argument: str, value: Any) -> int:
    """Parse a required version.

    Raises:
        AirflowFailException: it is None or not a version; the message names the argument.
    """
    version = parse_version(argument, value)
    if version is None:
        raise AirflowFailException(f"{argument}={value!r}: expected a version")
    return version
