"""Tables at a version, as they are passed from task to task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.template_args import (
    parse_result_table,
    parse_table,
    parse_text,
    parse_version,
    refusal,
)
from airflow_provider_lancens.identifiers import staged_number
from airflow_provider_lancens.spark.function_inputs import FunctionInput

if TYPE_CHECKING:
    from airflow_provider_lancens.identifiers import TableId


_VERSIONS = {"version", "staged_version"}
_RESULTS = (
    "a mapping with 'table' and 'version', such as the XCom of LanceTableVersionSensor or of another "
    "ingestion"
)
INPUTS = f"{_RESULTS}; or a table's identifier, for its newest version"


def _staged(argument: str, name: str, *, may_be_staged: bool) -> int:
    number = staged_number(name)
    if number is None:
        raise AirflowFailException(
            f"{argument}['staged_version']: expected the name of a staged version, as in the XCom of a write "
            f"with stage=True, got {name!r}"
        )
    if not may_be_staged:
        raise AirflowFailException(
            f"{argument}: version {name} is only staged, and only its own readers see it; publish it first, "
            "with LancePublishOperator, and pass the XCom of that task"
        )
    return number


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """A table at a version, as in the XCom of a sensor or of an ingestion."""

    table: TableId
    version: int
    location: str | None = None
    """Where the table was that has the version; None if the XCom doesn't say."""
    outcome: str | None = None
    """What the task did that the XCom is of, see `Outcome`; None if the XCom doesn't say."""

    @classmethod
    def parse(cls, argument: str, value: Any, *, may_be_staged: bool = True, allowed: str = _RESULTS) -> Self:
        """Parse an XCom, ignoring its other keys.

        Args:
            argument: its name, for the message.
            value: the XCom.
            may_be_staged: whether it may be of a write that staged its rows, see `WriteResult`; a staged
                version can be read, published and discarded.
            allowed: what it may be, for the message.

        Raises:
            AirflowFailException: table or version is missing or invalid; the message names the argument.
        """
        if not isinstance(value, Mapping) or "table" not in value or not _VERSIONS & set(value):
            raise AirflowFailException(f"{argument}: expected {allowed}, got {value!r}")
        table = parse_result_table(str(value["table"]))
        rest = parse_text(value.get("location")), parse_text(value.get("outcome"))
        if staged := parse_text(value.get("staged_version")):
            return cls(table, _staged(argument, staged, may_be_staged=may_be_staged), *rest)
        version = parse_version(f"{argument}['version']", value.get("version"))
        if version is None:
            raise AirflowFailException(
                f"{argument}['version']: expected a number, got {value.get('version')!r}; the task that the "
                "XCom is of has written nothing"
            )
        return cls(table, version, *rest)

    def as_result(self) -> dict[str, Any]:
        """Return it as a result that the methods of a catalog and of a table take."""
        rest = {"location": self.location, "outcome": self.outcome}
        given = {name: value for name, value in rest.items() if value is not None}
        return {"table": str(self.table), "version": self.version, **given}


_READ_OPTIONS = {"changes", "filter", "if_unavailable"}


def parse_input(argument: str, value: Any) -> FunctionInput | TableId:
    """Parse a table that a function is to get: an XCom with its version, or its identifier alone.

    Args:
        argument: its name, for the message.
        value: the XCom, whose other keys are ignored, or the identifier.

    Returns:
        The table's identifier if its version is still to be looked up.

    Raises:
        AirflowFailException: it is neither, a version is invalid, or arguments of `Table.read` or
            `Table.changes` are among the keys; the message names the argument.
    """
    if isinstance(value, str) and parse_text(value) is not None:
        if value.lstrip().startswith(("{", "[")):
            raise refusal(f"{argument}: is text, {value!r}; expected {INPUTS}", value)
        return parse_table(value)
    if isinstance(value, Mapping) and (options := sorted(_READ_OPTIONS & set(value))):
        raise AirflowFailException(
            f"{argument}: {options} aren't allowed here; the function gets a table: pass its XCom alone, and "
            "call its methods read(columns=..., filter=...) and changes(if_unavailable=...)"
        )
    pinned = PinnedTable.parse(argument, value, allowed=INPUTS)
    previous = None
    if "previous_version" in value:
        previous = parse_version(f"{argument}['previous_version']", value["previous_version"]) or 0
    return FunctionInput(str(pinned.table), pinned.version, previous, pinned.location)
