"""Gates at which a write stops, in any of Spark's processes."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tests.integration.spark.faults.write_steps import FREEZING_STEPS


@dataclass(frozen=True)
class Gate:
    """A named pipe at a step: see `driver_processes.Driver`."""

    step: str
    pipe: str

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Stop at the gate when this process first reaches the step in the block."""
        with FREEZING_STEPS[self.step].interrupted_by(lambda: Path(self.pipe).read_bytes()):
            yield


@dataclass(frozen=True)
class Freeze:
    """A step at which its process is suspended, see `frozen_process.freeze`."""

    step: str
    note: str
    """The file that is to hold the id of that process."""

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Suspend this process when it first reaches the step in the block."""
        with FREEZING_STEPS[self.step].interrupted_by(lambda: freeze(Path(self.note))):
            yield


Stop: TypeAlias = Gate | Freeze


def freeze(note: Path) -> None:
    """Suspend this process by SIGSTOP, with all of its threads, until SIGCONT."""
    note.write_text(str(os.getpid()))
    # To exactly this thread, which may be one of Lance's: with `os.kill`, another thread may receive the
    # signal, and this one would continue for a while.
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
