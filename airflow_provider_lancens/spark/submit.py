"""Run a write as a job of spark-submit, follow its output, and end the driver that a cluster runs for it.

A driver in cluster mode outlives spark-submit: it is identified in advance, and found again and ended through
its cluster.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from importlib.util import find_spec
from itertools import chain, repeat
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Literal, Self

from airflow_provider_lancens.redaction import redact
from airflow_provider_lancens.spark.function_inputs import WHOLE, FunctionInputs
from airflow_provider_lancens.spark.options import WriteRequest
from airflow_provider_lancens.spark.results import WriteResult
from airflow_provider_lancens.spark.session import shows_secret, with_redaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_provider_lancens.spark.execution import Execution
    from airflow_provider_lancens.spark.function_inputs import Reading
    from airflow_provider_lancens.spark.lance_catalog import LanceCatalog


_log = logging.getLogger(__name__)

_NOT_IMPORTABLE = ("__main__", "<run_path>", "unusual_prefix_")
"""Names of modules that another process can't import: a script's, and a DAG file's in Airflow."""

_SCRIPT = """\
from airflow_provider_lancens.spark.submit import main

JOB = {job!r}

main(JOB)
"""
"""The serialized job has a separate line, which no traceback shows."""


@dataclass(frozen=True, slots=True)
class Job:
    """What to write, where, and the function that computes it."""

    impl: str
    """The namespace's implementation, see `NamespaceSpec.impl`."""
    properties: Mapping[str, str] = field(repr=False)
    table: str
    source: str
    """``package.module:function``; called as ``function(spark, **inputs, **kwargs)``."""
    inputs: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Each argument's table and version, and the version that its changes follow, see `FunctionInput`."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    request: WriteRequest = field(default_factory=WriteRequest)
    readings: Sequence[tuple[Sequence[str], str | None, str | None]] = field(default_factory=list)
    """Other keys and fingerprints of the write, by the inputs of which the source reads the changes."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a job as `save` serialized it."""
        values = json.loads(text)
        return cls(**{**values, "request": WriteRequest.parse(values["request"])})

    def as_dict(self) -> dict[str, Any]:
        """Return its fields as plain JSON values, secrets included.

        Raises:
            TypeError: an argument of `source` is a mapping with other names than text, which JSON would make
                text.
        """
        for name, value in self.kwargs.items():
            _check_names(f"op_kwargs[{name!r}]", value)
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {**values, "request": self.request.as_dict()}

    def save(self, script: Path) -> None:
        """Write a script that runs it into a new file, which only its owner can read.

        Raises:
            TypeError: an argument of `source` is nothing that JSON can hold.
        """
        text = _SCRIPT.format(job=json.dumps(self.as_dict()))
        with os.fdopen(os.open(script, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
            opened.write(text)

    def run(self, spark: SparkSession) -> WriteResult:
        """Read the inputs at their versions, call the source, write what it returns.

        Raises:
            LanceNamespaceError: see `Table.append`.
        """
        from airflow_provider_lancens.spark.lance_catalog import LanceCatalog
        from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, resolved_table
        from airflow_provider_lancens.spark.write.row_sources import rows_of
        from airflow_provider_lancens.spark.write.write_context import WriteContext
        from airflow_provider_lancens.spark.write.write_rows import write_rows

        namespace = NamespaceSpec(self.impl, self.properties)

        def catalog(execution: Execution) -> LanceCatalog:
            return LanceCatalog(lambda: namespace, spark=spark, execution=execution)

        inputs = FunctionInputs.parse(self.inputs)
        returned, reading = inputs.call(imported(self.source), spark, catalog, self.kwargs)
        request = self.requests().get(reading, self.request)
        given = rows_of(returned, request.change, lambda: spark)
        with resolved_table(namespace, self.table) as target:
            return write_rows(given.rows, WriteContext.begin(target, request))

    def requests(self) -> dict[Reading, WriteRequest]:
        """Return the write for each reading of the source that it may be."""

        def keyed(key: str | None, fingerprint: str | None) -> WriteRequest:
            identity = replace(self.request.identity, key=key, fingerprint=fingerprint)
            return replace(self.request, identity=identity)

        others = {frozenset(names): keyed(*identity) for names, *identity in self.readings}
        return {WHOLE: self.request, **others}


def _check_names(argument: str, value: Any) -> None:
    if isinstance(value, dict):
        for name, element in value.items():
            if not isinstance(name, str):
                raise TypeError(
                    f"{argument}: has the name {name!r} of type {type(name).__name__}, and the driver would "
                    "get it as text; give it as text, or use deploy-mode client"
                )
            _check_names(f"{argument}[{name!r}]", element)
    elif isinstance(value, list | tuple):
        for element in value:
            _check_names(argument, element)


def name_of(source: Callable[..., Any]) -> str:
    """Return the name by which another process imports a function: ``package.module:function``.

    Raises:
        ValueError: it has none.
    """
    module, name = getattr(source, "__module__", None), getattr(source, "__qualname__", "<unnamed>")
    if not module or module.startswith(_NOT_IMPORTABLE) or "<" in name:
        raise ValueError(
            f"source={name}: a driver in another process cannot import it from {module}; it must be "
            "a function of a module that is installed there too, not a lambda or a function of a "
            "DAG file"
        )
    return f"{module}:{name}"


def imported(name: str) -> Callable[..., Any]:
    """Import the function of that name."""
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    function: Callable[..., Any] = found
    return function


def main(serialized: str) -> None:
    """Run the serialized job, in the session that spark-submit created."""
    from airflow_provider_lancens.spark.hive_tables import URIS, check_hive_tables
    from airflow_provider_lancens.spark.session import quiet_py4j, spark_session

    logging.basicConfig(level=logging.INFO, format="%(message)s")
    quiet_py4j()
    job = Job.parse(serialized)
    with spark_session(job.table) as spark:
        conf = dict(spark.sparkContext.getConf().getAll())
        if URIS in conf:  # as given by `hive_tables`
            check_hive_tables(spark, conf)
        result = job.run(spark)
    if result.outcome != "skipped":  # which has been logged
        _log.info("%s", result)


_COMMAND_TIMEOUT = 60.0  # seconds
_SUCCEEDED = "Succeeded"
_FRAME = "\tat "
"""Prefix of a frame in a Java stack trace."""
NOT_ENDED = "stopping Spark's driver on the cluster failed, and it may still be running: %s"

PROCESS_ARGS: Mapping[str, Any] = {
    "stdin": subprocess.DEVNULL,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.STDOUT,
    "text": True,
    "errors": "replace",
    # A driver that is spark-submit's child ends with it, and a kill of one on a cluster continues if the
    # task is killed meanwhile.
    "start_new_session": True,
}
"""Arguments of `subprocess` to run spark-submit, without a shell."""


DriverState = Literal["running", "succeeded", "failed"]
"""``running`` also before it has started; ``failed`` also if it was killed, or if its state isn't known."""


class ClusterError(Exception):
    """A cluster did not answer a request made by spark-submit."""


class Driver:
    """A driver that ends with spark-submit, as its child process."""

    conf: Mapping[str, str] = {}
    """Spark configuration to pass in addition to the user's."""

    @property
    def taken_over(self) -> bool:
        """Whether the cluster is known to run it; it may run it before that is known."""
        return False

    @property
    def failed(self) -> bool:
        """Whether it failed, if spark-submit's exit code doesn't show that."""
        return False

    @property
    def log_command(self) -> str:
        """The command that shows the driver's log, if spark-submit doesn't."""
        return ""

    def read_line(self, line: str) -> None:
        """Parse a line of spark-submit's output."""

    def find(self) -> dict[str, DriverState]:
        """Ask the cluster for the drivers with this one's identity; return their states by name.

        Raises:
            ClusterError: it did not answer within a minute.
        """
        return {}

    def attach(self, name: str) -> None:
        """Attach to a driver that was found, instead of starting one."""

    def end(self) -> bool:
        """End it on its cluster; return whether that was done. Takes two minutes at most, never raises."""
        try:
            return self._end()
        except ClusterError as error:
            _log.error(NOT_ENDED, error)
            return False

    def _end(self) -> bool:
        return False


class YarnDriver(Driver):
    """A YARN application, identified by spark-submit's log, or by a tag if the log doesn't name it."""

    _CLIENT = "org.apache.hadoop.yarn.client.cli.ApplicationCLI"
    _ID = re.compile(r"\bapplication_\d{10,}_\d{4,}\b")
    _RUNNING = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING")
    _COLUMNS = 9

    def __init__(self, binary: str, conf: Mapping[str, str], identity: str) -> None:
        self._binary = binary
        self._kerberos = {key: value for key, value in conf.items() if key.startswith("spark.kerberos.")}
        self._tag = f"lance-{identity}"
        self._ids: set[str] = set()
        tags = [conf["spark.yarn.tags"]] if "spark.yarn.tags" in conf else []
        self.conf = {
            "spark.yarn.submit.waitAppCompletion": "true",
            "spark.yarn.maxAppAttempts": conf.get("spark.yarn.maxAppAttempts", "1"),  # Airflow retries
            "spark.yarn.tags": ",".join([*tags, self._tag]),
        }

    @property
    def taken_over(self) -> bool:
        """Whether its application id is known."""
        return bool(self._ids)

    @property
    def log_command(self) -> str:
        """The ``yarn`` command for its log."""
        return "".join(f"yarn logs -applicationId {found}" for found in self._ids)

    def read_line(self, line: str) -> None:
        """Find its application id."""
        if not self._ids and (found := self._ID.search(line)):
            self._ids = {found[0]}

    def find(self) -> dict[str, DriverState]:
        """List the applications with its tag, as long as YARN remembers them."""
        listed = self._run_client("-list", "-appTags", self._tag, "-appStates", "ALL")
        return dict(self._states_in(listed))

    def attach(self, name: str) -> None:
        """Be the application with this id."""
        self._ids = {name}

    def _end(self) -> bool:
        ids = self._ids or set(self._ID.findall(self._run_client("-list", "-appTags", self._tag)))
        if ids:
            self._run_client("-kill", *ids)
        return bool(ids)

    @classmethod
    def _states_in(cls, listed: str) -> Iterator[tuple[str, DriverState]]:
        for line in listed.splitlines():
            columns = [column.strip() for column in line.split("\t")]
            if len(columns) < cls._COLUMNS or not cls._ID.fullmatch(columns[0]):
                continue
            # From the end: the name, which is before them, may contain a tab.
            state, final_state = columns[-4:-2]
            if state in cls._RUNNING:
                yield columns[0], "running"
            else:
                yield columns[0], "succeeded" if final_state == "SUCCEEDED" else "failed"

    def _run_client(self, *arguments: str) -> str:
        # On a local master any class of Spark's or Hadoop's runs in spark-submit's own process.
        where = ["--master", "local", "--deploy-mode", "client", *settings_of(self._kerberos)]
        return _run(
            [self._binary, *where, "--class", self._CLIENT, "spark-internal", "application", *arguments]
        )


class KubernetesDriver(Driver):
    """A Kubernetes pod, whose name is set here unless the user sets it; a label has its identity."""

    _SAYS = re.compile(r"^\s*(namespace|phase): (\S+)$")
    _FIELD = re.compile(r"^\s*(pod name|labels|phase): (.*?)\s*$")
    _LABEL = "lance-job"
    _STATES: Mapping[str, DriverState] = {
        "Pending": "running",
        "Running": "running",
        _SUCCEEDED: "succeeded",
    }

    def __init__(self, binary: str, conf: Mapping[str, str], identity: str) -> None:
        self._binary = binary
        self._access = {
            key: value for key, value in conf.items() if key.startswith(("spark.master", "spark.kubernetes."))
        }
        self._fields = {"namespace": conf.get("spark.kubernetes.namespace", "default")}
        given = conf.get("spark.kubernetes.driver.pod.name")
        self._identity = identity
        # A pod outlives its driver, so that each submission needs a name of its own.
        self._pod = given or f"lance-{identity}-{uuid.uuid4().hex[:8]}-driver"
        self._searched = given or f"lance-{identity}-*"
        self.conf = {
            "spark.kubernetes.submission.waitAppCompletion": "true",
            "spark.kubernetes.driver.pod.name": self._pod,
            f"spark.kubernetes.driver.label.{self._LABEL}": identity,
        }

    @property
    def log_command(self) -> str:
        """The ``kubectl`` command for its log."""
        return f"kubectl logs --namespace {self._fields['namespace']} {self._pod}"

    @property
    def failed(self) -> bool:
        """Whether the pod ended without success, or disappeared."""
        return self._fields.get("phase", _SUCCEEDED) != _SUCCEEDED

    def read_line(self, line: str) -> None:
        """Find its namespace and its phase."""
        if found := self._SAYS.match(line):
            self._fields[found[1]] = found[2]

    def find(self) -> dict[str, DriverState]:
        """List the pods with its label in the configured namespace."""
        return dict(self._states_in(self._ask("--status", self._searched)))

    def attach(self, name: str) -> None:
        """Be the pod of this name."""
        self._pod = name

    def _end(self) -> bool:
        self._ask("--kill", self._pod)
        return True

    def _states_in(self, listed: str) -> Iterator[tuple[str, DriverState]]:
        fields: dict[str, str] = {}
        for found in filter(None, map(self._FIELD.match, listed.splitlines())):
            fields[found[1]] = found[2]
            if found[1] != "phase":  # the last one of a pod
                continue
            if f"{self._LABEL} -> {self._identity}" in fields.pop("labels", "").split(", "):
                yield fields["pod name"], self._STATES.get(found[2], "failed")

    def _ask(self, option: str, pods: str) -> str:
        where = f"{self._fields['namespace']}:{pods}"
        return _run([self._binary, *settings_of(self._access), option, where])


def driver_of(binary: str, conf: Mapping[str, str], deploy_mode: str, identity: str | None = None) -> Driver:
    """Return the driver that spark-submit is about to start.

    Args:
        binary: spark-submit's path.
        conf: Spark's configuration, ``spark.master`` in it.
        deploy_mode: ``client`` or ``cluster``.
        identity: what it has in common with other drivers of the same job; by default it is unique.

    Raises:
        ValueError: no such cluster takes a Python driver.
    """
    if deploy_mode == "client":
        return Driver()
    identity = identity or uuid.uuid4().hex
    master = conf.get("spark.master", "")
    if master.startswith("yarn"):
        return YarnDriver(binary, conf, identity)
    if master.startswith("k8s://"):
        return KubernetesDriver(binary, conf, identity)
    raise ValueError(
        f"deploy-mode cluster on {master!r}: Spark supports Python drivers only on yarn and k8s:// "
        "clusters; use deploy-mode client"
    )


def settings_of(conf: Mapping[str, str]) -> list[str]:
    """Return a configuration as arguments of spark-submit."""
    return [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]


def _run(command: list[str]) -> str:
    """Return the output of a command.

    Raises:
        ClusterError: it failed, or took more than a minute.
    """
    try:
        done = subprocess.run(command, **PROCESS_ARGS, timeout=_COMMAND_TIMEOUT, check=False)  # noqa: S603 our own
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClusterError(str(error)) from error
    output: str = done.stdout
    if done.returncode:
        said = "\n".join(line for line in output.splitlines() if not line.startswith(_FRAME))
        raise ClusterError(said[-2000:])
    return output


_PAUSES = (5.0, 10.0, 20.0)
"""Seconds before each of the first requests for a driver's state; then `_INTERVAL`."""
_INTERVAL = 30.0
"""Each request starts a JVM, which takes some seconds of CPU time."""
_ATTEMPTS = 10
"""Requests in succession without an answer, after which a driver is given up."""


class EarlierDriver:
    """A driver with a known identity, which may be running on a cluster.

    Args:
        driver: a driver with that identity that isn't submitted.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._name: str | None = None
        self._killed = False

    @property
    def log_command(self) -> str:
        """The command that shows the log of the driver that was found."""
        return self._driver.log_command

    def find(self) -> str | None:
        """Return the name of a running driver; None if there is none.

        Raises:
            ClusterError: the cluster did not answer.
        """
        running = [name for name, state in self._driver.find().items() if state == "running"]
        self._name = min(running, default=None)  # on YARN the oldest, which ends first
        if self._name is not None:
            self._driver.attach(self._name)
        return self._name

    def wait(self) -> bool:
        """Wait until the driver that was found has ended; return whether it succeeded.

        Raises:
            ClusterError: the cluster did not answer for some minutes.
        """
        pauses, failures = chain(_PAUSES, repeat(_INTERVAL)), 0
        state: DriverState = "running"
        while state == "running":
            time.sleep(next(pauses))
            try:
                state, failures = self._driver.find().get(self._name or "", "failed"), 0
            except ClusterError as error:
                failures += 1
                if failures == _ATTEMPTS:
                    raise
                _log.warning("The state of driver %s is not known, asking again: %s", self._name, error)
        self._name = None
        return state == "succeeded"

    def kill(self) -> None:
        """End the driver, even if an interrupted search has not found it yet; also from a signal handler."""
        if self._killed:
            return
        try:
            if self._name is not None or self.find():
                self._driver.end()
        except ClusterError as error:
            _log.error(NOT_ENDED, error)
        self._killed = True  # not before: a second signal may have interrupted it


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
