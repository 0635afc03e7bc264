"""Where a stream of a table's rows is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from airflow_provider_lancens import spec_errors


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """Position in the history of a table. Spark keeps it in the checkpoint of a query, as JSON."""

    version: int
    """The version up to which everything was read; with `snapshot`, the one that is being read."""
    fragments: int = 0
    """How many fragments of the next version were read too; with `snapshot`, of `version` itself."""
    snapshot: bool = False
    """Whether all rows of `version` are being read, with which a stream without a start begins."""
    transaction: str | None = field(default=None, compare=False)
    """UUID of the transaction that made `last_version`, by which another table of the same name is
    recognized; None if it isn't known."""

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Self:
        """Parse what `as_dict` returned.

        Raises:
            InvalidInputError: (13) it is something else, such as the offset of another source.
        """
        try:
            return cls(**given)
        except TypeError as error:
            raise spec_errors.InvalidInputError(
                f"expected the offset of a stream of a Lance table in the query's checkpoint, got "
                f"{dict(given)!r}; use another checkpointLocation for this query"
            ) from error

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return asdict(self)

    @property
    def last_version(self) -> int:
        """The newest version that was read, in part or whole."""
        return self.version if self.snapshot or not self.fragments else self.version + 1
