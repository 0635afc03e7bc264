"""lance-namespace-impls, in its own environment and process.

It pins an old thrift, so it can't be imported here. Its Hive clients need calls that 4.0.1 no longer
has; they work with 2.3.10 and 3.1.3.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.servers.cache import made_once

VERSION = "0.4.2"
WORKER = Path(__file__).with_name("peer_worker.py")
TIMEOUT_SECONDS = 600


@dataclass(frozen=True)
class Answer:
    """The response of lance-namespace-impls, and the time of the call in its process."""

    value: Any
    error: str | None
    seconds: float


class Peer:
    """A namespace of lance-namespace-impls, in a process that reads one call per line."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def ask(self, operation: str, **request: Any) -> Answer:
        """Make a call; an error is part of the response."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"operation": operation, "request": request}) + "\n")
        self._process.stdin.flush()
        return Answer(**json.loads(self._process.stdout.readline()))

    def __getattr__(self, operation: str) -> Any:
        def call(**request: Any) -> Any:
            answer = self.ask(operation, **request)
            assert answer.error is None, answer.error
            return answer.value

        return call


@contextmanager
def peer_namespace(module: str, kind: str, properties: Mapping[str, str]) -> Iterator[Peer]:
    """A namespace of lance-namespace-impls, such as ``Hive2Namespace`` of its module ``hive2``."""
    python = made_once(f"peer-{VERSION}", _install) / "bin" / "python"
    command = [python, WORKER, f"lance_namespace_impls.{module}.{kind}", json.dumps(dict(properties))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Peer(process)
        finally:
            process.kill()


def _install(folder: Path) -> None:
    uv = shutil.which("uv")
    if not uv:
        raise RuntimeError("No uv in PATH: it comes with the development environment.")
    package = f"lance-namespace-impls[hive2,hive3]=={VERSION}"
    for command in (
        [uv, "venv", "--quiet", "--python", sys.executable, folder],
        [uv, "pip", "install", "--quiet", "--python", folder, package],
    ):
        subprocess.run(command, check=True, timeout=TIMEOUT_SECONDS)
