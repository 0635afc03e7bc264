"""Operators on release sets: versions of several tables that belong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.template_args import check_flag, parse_table, parse_version
from airflow_provider_lancens.links import LanceGlueTableLink, LancePageLink
from airflow_provider_lancens.operators.lance_operator import LanceOperator
from airflow_provider_lancens.spark.options import check_positive

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_lancens.spark.lance_catalog import TableRef

DEFAULT_KEEP = 2


class LanceReleaseOperator(LanceOperator):
    """Release versions of several tables together, in one commit: a reader sees all of them or none.

    A release set is a declared table of its own, whose rows are the tables with their versions. Each of its
    versions is a release, which `LanceTableVersionSensor` can wait for, and `LanceFindReleaseOperator`
    looks up. The released versions are tagged, so that clean-ups keep them.

    Its XCom is ``{"table": str, "operation": str, "outcome": str, "version": int, "previous_version": int |
    None, "key": str | None, "tables": dict[str, int], "seconds": float, "reason": str, "location": str |
    None}``: ``table`` and ``version`` are the release set's; ``outcome`` is ``found`` if an earlier try of
    the same execution made the release, and ``skipped`` if another execution did. If an outlet is the asset
    of the release set's table, or an asset alias, the extra of its event contains the versions, and
    ``tables``; a skipped release after a newer one emits no event.

    Args:
        release_set: identifier of the release set's table, ``database$table``. Templated.
        tables: the tables with their versions: a list of XComs of ingestions or sensors, or a mapping of
            identifiers to versions. Templated.
        expected_version: the version that the release set must have; 0 if it must be new. Templated.
        allow_older: whether a table may go back to a version before the last release's. Without it, a late
            run doesn't undo a newer one.
        keep_releases: number of releases whose versions are kept from clean-ups.
        key: identifies this release. By default it consists of the DAG, the task and the data interval, or
            the run if there is no interval. Templated.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = (
        "release_set",
        "tables",
        "expected_version",
        "key",
        *LanceOperator.template_fields,
    )
    operator_extra_links = (LancePageLink(), LanceGlueTableLink())

    def __init__(
        self,
        *,
        release_set: str,
        tables: Sequence[Any] | Mapping[str, Any],
        expected_version: int | str | None = None,
        allow_older: bool = False,
        keep_releases: int = DEFAULT_KEEP,
        key: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.release_set = release_set
        self.tables = tables
        self.expected_version = expected_version
        self.allow_older = check_flag("allow_older", allow_older)
        check_positive("keep_releases", keep_releases)
        self.keep_releases = keep_releases
        self.key = key

    def execute(self, context: Context) -> dict[str, Any]:
        """Make the release, or return the release that an earlier try made.

        Raises:
            AirflowFailException: an argument is invalid, there is no such table or version, a table would go
                back to an older version, or the release set is past the expected version.
            LanceRetryableError: the release set isn't at the expected version yet, it was moved meanwhile, or
                the metastore or the storage is unavailable.
        """
        from airflow_provider_lancens.operators._spark.idempotency import identity_in

        release_set, tables = parse_table(self.release_set, "release_set"), _members(self.tables)
        with self.opened(context) as lake:
            result = lake.release_set(release_set).release(
                tables,
                expected_version=parse_version("expected_version", self.expected_version),
                allow_older=self.allow_older,
                keep_releases=self.keep_releases,
                key=identity_in(lake, release_set, self.key, "skip", context),
            )
        self.emit_asset_event(context, result)
        return result.as_dict()


class LanceFindReleaseOperator(LanceOperator):
    """Look up the versions of a release set's tables, to be read as inputs.

    Its XCom is ``{"table": str, "version": int, "location": str}`` of the release set, as of
    `LanceReleaseOperator`, and the same for each table by its identifier: ``inputs={"orders":
    find.output["shop$orders"]}`` reads the version of ``shop$orders``.

    Args:
        release_set: the XCom of a sensor or of `LanceReleaseOperator`, which has a version; or the
            identifier of the release set's table, whose newest version is used. Templated.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("release_set", *LanceOperator.template_fields)
    operator_extra_links = (LancePageLink(), LanceGlueTableLink())

    def __init__(self, *, release_set: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.release_set = release_set

    def execute(self, context: Context) -> dict[str, Any]:
        """Look them up.

        Raises:
            AirflowFailException: there is no such release set or version, or a table of it is named
                ``table``, ``version`` or ``location``.
            LanceRetryableError: the metastore or the storage is unavailable.
        """
        from airflow_provider_lancens.operators._spark.pinned_inputs import PinnedTable
        from airflow_provider_lancens.spark.release_sets import result_of

        ref: TableRef
        if isinstance(self.release_set, Mapping):
            ref = PinnedTable.parse("release_set", self.release_set, may_be_staged=False).as_result()
        else:
            ref = parse_table(self.release_set, "release_set")
        with self.opened(context) as lake:
            opened = lake.table(ref).at()
            own = {"table": opened.name, "version": opened.version, "location": opened.location}
            released = lake.release_set(own).tables()
        members = {name: result_of(table) for name, table in released.items()}
        if both := sorted(own.keys() & members.keys()):
            raise AirflowFailException(
                f"release_set {own['table']}: it has a table named {both[0]!r}, whose version can't be told "
                f"in the XCom from the {both[0]} of the set itself; rename the table, or look the versions "
                "up in a Python task, by release_set(...).tables(...) of an opened catalog"
            )
        versions = {name: result["version"] for name, result in members.items()}
        self.log.info("Release set %s: version %d has %s", own["table"], own["version"], versions)
        return {**own, **members}


def _members(tables: Any) -> list[dict[str, Any]]:
    from airflow_provider_lancens.operators._spark.pinned_inputs import PinnedTable

    if isinstance(tables, Mapping):
        tables = [{"table": table, "version": version} for table, version in tables.items()]
    if isinstance(tables, str) or not isinstance(tables, Sequence):
        raise AirflowFailException(
            "tables: expected a list of XComs with 'table' and 'version', or a mapping of tables to "
            f"versions, got {tables!r}"
        )
    parsed = [
        PinnedTable.parse(f"tables[{number}]", xcom, may_be_staged=False)
        for number, xcom in enumerate(tables)
    ]
    names = [str(pinned.table) for pinned in parsed]
    if len({*names}) < len(names):
        raise AirflowFailException(f"tables: expected each table once, got {names}")
    return [pinned.as_result() for pinned in parsed]
