"""What a function of an ingestion reads: tables at a version, and rows that changed between two versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.template_args import parse_result_table, parse_text, parse_version
from airflow_provider_lancens.identifiers import staged_number

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace

    from airflow_provider_lancens.identifiers import TableId
    from airflow_provider_lancens.lineage.task_lineage import TableRead


_VERSIONS = {"version", "staged_version"}


def _staged(argument: str, name: str, *, may_be_staged: bool) -> int:
    number = staged_number(name)
    if number is None:
        raise AirflowFailException(
            f"{argument}['staged_version']={name!r}: isn't the name of a staged version; allowed: the one in "
            "the XCom of a write with stage=True"
        )
    if not may_be_staged:
        raise AirflowFailException(
            f"{argument}: version {name} is only staged, and only its own readers see it; publish it first, "
            "with LancePublishOperator, and pass the XCom of that task"
        )
    return number


class Input(Protocol):
    """What a function gets as a DataFrame."""

    @property
    def identity(self) -> tuple[Any, ...]:
        """What decides its rows, for the fingerprint of an ingestion."""

    def read(self, spark: Any, namespace: LanceNamespace) -> Any:
        """Return its rows as a DataFrame."""

    def lineage(self) -> TableRead:
        """Describe it for OpenLineage."""


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """A table at a version, as in the XCom of a sensor or of an ingestion."""

    table: TableId
    version: int

    @classmethod
    def parse(cls, argument: str, value: Any, *, may_be_staged: bool = True) -> Self:
        """Parse an XCom, ignoring its other keys.

        Args:
            argument: its name, for the message.
            value: the XCom.
            may_be_staged: whether it may be of a write that staged its rows, see `WriteResult`; a staged
                version can be read, published and discarded.

        Raises:
            AirflowFailException: table or version is missing or invalid; the message names the argument.
        """
        if not isinstance(value, Mapping) or "table" not in value or not _VERSIONS & set(value):
            raise AirflowFailException(
                f"{argument}={value!r}; allowed: a mapping with 'table' and 'version', such as the XCom of "
                "LanceTableVersionSensor or of another ingestion"
            )
        table = parse_result_table(str(value["table"]))
        if staged := parse_text(value.get("staged_version")):
            return cls(table, _staged(argument, staged, may_be_staged=may_be_staged))
        version = parse_version(f"{argument}['version']", value.get("version"))
        if version is None:
            raise AirflowFailException(
                f"{argument}: its version is {value.get('version')!r}; expected a number"
            )
        return cls(table, version)

    @property
    def identity(self) -> tuple[str, int]:
        """See `Input.identity`."""
        return (str(self.table), self.version)

    def read(self, spark: Any, namespace: LanceNamespace) -> Any:
        """See `Input.read`."""
        from airflow_provider_lancens.spark.read import read_table

        return read_table(spark, namespace, self.table, version=self.version)

    def lineage(self) -> TableRead:
        """See `Input.lineage`."""
        from airflow_provider_lancens.lineage.task_lineage import TableRead

        return TableRead(self.table, self.version)


_READ_OPTIONS = {"filter", "if_unavailable"}


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """What changed in a table between two versions, as in the XCom of a sensor."""

    after_version: int | None
    pinned: PinnedTable

    @classmethod
    def parse(cls, argument: str, value: Any) -> Self:
        """Parse an XCom, ignoring its other keys.

        Raises:
            AirflowFailException: the table or a version is missing or invalid, or arguments of
                `read_changes` are among the keys; the message names it.
        """
        pinned = PinnedTable.parse(argument, value)
        if options := sorted(_READ_OPTIONS & set(value)):
            raise _no_options(argument, options)
        if "previous_version" not in value:
            raise AirflowFailException(
                f"{argument}={value!r}; allowed: a mapping with 'table', 'previous_version' and 'version', "
                "such as the XCom of LanceTableVersionSensor or LanceFindChangesOperator"
            )
        return cls(parse_version(f"{argument}['previous_version']", value["previous_version"]), pinned)

    @property
    def identity(self) -> tuple[str, int, int | None]:
        """See `Input.identity`."""
        return (*self.pinned.identity, self.after_version)

    def read(self, spark: Any, namespace: LanceNamespace, **arguments: Any) -> Any:
        """See `Input.read`.

        Args:
            spark: the session.
            namespace: that of the table.
            arguments: further ones of `read_changes`.
        """
        from airflow_provider_lancens.spark.changes.read_changes import read_changes

        given = {"after_version": self.after_version, "version": self.pinned.version, **arguments}
        return read_changes(spark, namespace, self.pinned.table, **given)

    def lineage(self) -> TableRead:
        """See `Input.lineage`."""
        return replace(self.pinned.lineage(), reads_changes=True, after_version=self.after_version)


def parse_input(argument: str, value: Any) -> Input:
    """Parse what a function is to get as a DataFrame: a table at a version, or ``{"changes": ...}``.

    Raises:
        AirflowFailException: it is neither; the message names the argument.
    """
    if isinstance(value, Mapping) and "changes" in value:
        if options := sorted(set(value) - {"changes"}):
            raise _no_options(argument, options)
        return ChangedRows.parse(f"{argument}['changes']", value["changes"])
    return PinnedTable.parse(argument, value)


def _no_options(argument: str, options: list[str]) -> AirflowFailException:
    return AirflowFailException(
        f"{argument}: {options} aren't allowed here; pass them as arguments of Changes.read"
    )
