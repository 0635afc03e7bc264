"""A job given to spark-submit: its process, its words as they come, its end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from airflow_provider_lancens.spark.job import Job
from airflow_provider_lancens.spark.jvm import is_secret

_LAUNCHER = "from airflow_provider_lancens.spark.job import main\n\nmain()\n"
"""Not the module itself: run as a script, its folder would stand before Python's own modules."""
_PATIENCE = 15.0  # seconds


class Submission:
    """A running spark-submit."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def lines(self) -> Iterator[str]:
        """What it says, until it ends."""
        assert self._process.stdout is not None  # noqa: S101 it was opened with one
        for line in self._process.stdout:
            yield line.rstrip()

    def wait(self) -> int:
        """Its exit code."""
        return self._process.wait()

    def kill(self) -> None:
        """End it, and the driver where that is its child; from any thread, or from a signal's handler."""
        self._signal(signal.SIGTERM)
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, number)


@contextmanager
def submitted(
    job: Job, conf: Mapping[str, str], *, deploy_mode: str = "cluster", binary: str = "spark-submit"
) -> Iterator[Submission]:
    """Hand a job to spark-submit; what is left of it at the end of the block is ended.

    Args:
        job: what to do.
        conf: Spark's configuration, ``spark.master`` in it.
        deploy_mode: ``client``: the driver is a child of spark-submit; ``cluster``: the cluster runs it.
        binary: the command; where the path has none, the ``spark-submit`` of PySpark does.

    Raises:
        ValueError: it can't run so; the message says why.
        FileNotFoundError: there is no such command.
    """
    _check(conf, deploy_mode)
    with tempfile.TemporaryDirectory(prefix="lance-job-") as name:  # a folder of the owner alone
        folder = Path(name)
        job.save(folder / "job.json")
        (folder / "lance_job.py").write_text(_LAUNCHER)
        submission = Submission(_start([*_command(binary, conf, deploy_mode), *_files(folder, deploy_mode)]))
        try:
            yield submission
        finally:
            submission.kill()


def _check(conf: Mapping[str, str], deploy_mode: str) -> None:
    master = conf.get("spark.master", "")
    if deploy_mode == "cluster" and not master.startswith(("yarn", "k8s://")):
        raise ValueError(
            f"deploy-mode cluster on {master!r}: Spark runs a Python driver there on yarn and k8s:// only; "
            "use deploy-mode client"
        )
    secrets = sorted(key for key in conf if is_secret(key))
    if secrets:
        raise ValueError(
            f"{', '.join(secrets)}: it would stand in spark-submit's command line, for everyone to read; "
            "put it into the spark-defaults.conf of where spark-submit runs"
        )


def _command(binary: str, conf: Mapping[str, str], deploy_mode: str) -> list[str]:
    settings = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    return [_found(binary), "--deploy-mode", deploy_mode, *settings]


def _files(folder: Path, deploy_mode: str) -> list[str]:
    words, launcher = folder / "job.json", str(folder / "lance_job.py")
    if deploy_mode == "client":
        return [launcher, str(words)]
    return ["--files", str(words), launcher, words.name]


def _found(binary: str) -> str:
    found = shutil.which(binary)
    spec = find_spec("pyspark")
    if found is None and spec is not None and spec.origin is not None:
        found = shutil.which(binary, path=str(Path(spec.origin).parent / "bin"))
    if found is None:
        raise FileNotFoundError(f"{binary}: no such command in the path, nor in PySpark")
    return found


def _start(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 our own command, without a shell
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # so that the driver, its child, ends with it
    )
