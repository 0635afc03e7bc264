"""Gates that a write stops at, in whichever of Spark's processes the step is done."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.integration.spark.faults.steps import STEPS


@dataclass(frozen=True)
class Gate:
    """A named pipe at a step: see `drivers.Driver`."""

    step: str
    pipe: str

    @contextmanager
    def closed(self) -> Iterator[None]:
        """The first one in this process to come to the step within the block waits to be let through."""
        with STEPS[self.step].interrupted_by(lambda: Path(self.pipe).read_bytes()):
            yield
