"""Drivers in cluster mode: how to identify them, how to find them again, and how to end them.

spark-submit only monitors such a driver, which keeps running when spark-submit ends. To find or to end it,
spark-submit is run again: it is installed and configured for the cluster, which the cluster's own commands
need not be.
"""

from __future__ import annotations

import logging
import re
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Literal

_log = logging.getLogger(__name__)

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

    def adopt(self, name: str) -> None:
        """Be a driver that was found, rather than one that is still to be started."""

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

    def adopt(self, name: str) -> None:
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

    def adopt(self, name: str) -> None:
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
