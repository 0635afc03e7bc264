"""A job run by spark-submit: its process, its output as it comes, its end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue

from airflow_provider_lancens.redaction import redact
from airflow_provider_lancens.spark.session.secret_settings import shows_secret, with_redaction
from airflow_provider_lancens.spark.submit.cluster_drivers import (
    PROCESS_ARGS,
    Driver,
    driver_of,
    settings_of,
)
from airflow_provider_lancens.spark.submit.earlier_driver import EarlierDriver
from airflow_provider_lancens.spark.submit.job_script import Job

_END_TIMEOUT = 15.0  # seconds


class Submission:
    """A running spark-submit, and the driver that it starts."""

    def __init__(self, process: subprocess.Popen[str], driver: Driver) -> None:
        self._process = process
        self._driver = driver
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        # In a thread, so that the driver's name is read even if the caller waiting for lines is interrupted.
        self._listener = threading.Thread(target=self._listen, name="spark-submit", daemon=True)
        self._listener.start()

    @property
    def log_command(self) -> str:
        """The command that shows the driver's log, if spark-submit doesn't."""
        return self._driver.log_command

    def lines(self) -> Iterator[str]:
        """Yield its output lines, until it ends."""
        return iter(self._lines.get, None)

    def wait(self) -> int:
        """Return its exit code, or 1 if that hides a driver's failure; call it after the last line."""
        return self._process.wait() or int(self._driver.failed)

    def kill(self) -> None:
        """End it and the driver, wherever that runs; from any thread, or from a signal handler."""
        if self._process.poll() is not None:
            return
        # The driver first, so that spark-submit sees its end and removes the files that it uploaded for it.
        ended = self._driver.taken_over and self._driver.end()
        self._end_process(_END_TIMEOUT if ended else 0)
        if not ended:
            self._driver.end()  # which may have been taken over by now

    def _listen(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 it was opened with one
        with self._process.stdout as output:
            for line in output:
                self._driver.read_line(line)
                self._lines.put(line.rstrip())
        self._lines.put(None)

    def _end_process(self, patience: float) -> None:
        if not self._ends_within(patience):
            self._signal(signal.SIGTERM)
            if not self._ends_within(_END_TIMEOUT):
                self._signal(signal.SIGKILL)
                self._process.wait()
        self._listener.join(_END_TIMEOUT)

    def _ends_within(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _signal(self, number: signal.Signals) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, number)


@contextmanager
def submitted(
    job: Job,
    conf: Mapping[str, str],
    *,
    deploy_mode: str = "cluster",
    binary: str = "spark-submit",
    identity: str | None = None,
) -> Iterator[Submission]:
    """Submit a job with spark-submit; if it still runs at the end of the block, it is ended.

    Args:
        job: what to do.
        conf: Spark's configuration, ``spark.master`` in it.
        deploy_mode: ``client``: the driver is a child of spark-submit; ``cluster``: the cluster runs it.
        binary: the command; if it isn't in the path, PySpark's ``spark-submit`` is used.
        identity: by which `earlier_driver` finds its driver; by default none.

    Raises:
        ValueError: it can't run so; the message says why.
        FileNotFoundError: there is no such command.
    """
    _check(conf)
    command = _found(binary)
    driver = driver_of(command, conf, deploy_mode, identity)
    settings = with_redaction({**conf, **driver.conf})
    with tempfile.TemporaryDirectory(prefix="lance-job-") as name:  # only its owner can read it
        script = Path(name, "lance_job.py")
        job.save(script)
        arguments = [command, "--deploy-mode", deploy_mode, *settings_of(settings), str(script)]
        process = subprocess.Popen(arguments, **PROCESS_ARGS)  # noqa: S603 our own command
        submission = Submission(process, driver)
        try:
            yield submission
        finally:
            submission.kill()


@contextmanager
def earlier_driver(
    conf: Mapping[str, str], *, deploy_mode: str, binary: str, identity: str
) -> Iterator[EarlierDriver]:
    """Search for a driver that was submitted before; if the block is left by an exception, it is ended.

    Args:
        conf: Spark's configuration, ``spark.master`` in it.
        deploy_mode: ``cluster``, or ``client``, where no driver outlives its spark-submit.
        binary: the command; if it isn't in the path, PySpark's ``spark-submit`` is used.
        identity: the identity with which it was submitted.

    Raises:
        ValueError: it can't have been submitted so; the message says why.
        FileNotFoundError: there is no such command.
    """
    _check(conf)
    earlier = EarlierDriver(driver_of(_found(binary), conf, deploy_mode, identity))
    try:
        yield earlier
    except BaseException:
        earlier.kill()
        raise


def _check(conf: Mapping[str, str]) -> None:
    secrets = sorted(key for key, value in conf.items() if shows_secret(key, value) or redact(value) != value)
    if secrets:
        raise ValueError(
            f"{', '.join(secrets)}: would be visible in the command line of spark-submit; set it in "
            "spark-defaults.conf where spark-submit runs"
        )


def _found(binary: str) -> str:
    found = shutil.which(binary)
    spec = find_spec("pyspark")
    if found is None and spec is not None and spec.origin is not None:
        found = shutil.which(binary, path=str(Path(spec.origin).parent / "bin"))
    if found is None:
        raise FileNotFoundError(f"{binary}: command not found, neither in PATH nor in PySpark")
    return found
