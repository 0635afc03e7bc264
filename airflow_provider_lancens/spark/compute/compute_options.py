"""Arguments and result of a computed column. Plain data: loads quickly, since DAGs load it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from airflow_provider_lancens.spark.amounts import counted, rate_of, size_of

DEFAULT_BATCH_ROWS = 1024


def check_sizes(batch_rows: object, commit_every: object, max_tasks: object) -> None:
    """Check the sizes of batches and steps.

    Raises:
        ValueError: one isn't a positive number; the message names it.
    """
    # Only where an operator is made: a module less for those that import one.
    from airflow_provider_lancens.spark.maintenance.maintenance_options import check_positive

    check_positive("batch_rows", batch_rows)
    for name, value in (("commit_every", commit_every), ("max_tasks", max_tasks)):
        if value is not None:
            check_positive(name, value)


@dataclass(frozen=True, slots=True)
class ComputeResult:
    """Result of computing a column."""

    table: str
    """Identifier, such as ``db$table``."""
    column: str
    version: int
    """The last version that it made; the newest one if it made none."""
    previous_version: int
    """The version before the first that it made; the newest one if it made none."""
    rows: int
    """The number of computed values."""
    nulls: int
    """How many rows of the changed fragments have no value: the function returned null for them."""
    files: int
    """The number of written files, one for each changed fragment."""
    bytes: int
    """Their size."""
    commits: int
    """The number of versions that it made, including the version that added the column."""
    seconds: float
    """Wall-clock time of the call."""
    committed: bool
    """Whether it made a version."""

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        what = f"table {self.table}: column {self.column}"
        if not self.committed:
            return f"{what}: nothing to compute, still at version {self.version}"
        return (
            f"{what}: computed {counted(self.rows, 'row')} in {counted(self.files, 'fragment')}, "
            f"{size_of(self.bytes)}, in {counted(self.commits, 'version')} up to {self.version} in "
            f"{self.seconds:.1f} s{rate_of(self.rows, self.seconds)}"
        )
