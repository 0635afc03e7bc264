"""Drivers in cluster mode: how to identify them, and how to end them.

spark-submit only monitors such a driver, which keeps running when spark-submit ends. To end it, spark-submit
is run again: it is installed and configured for the cluster, which the cluster's own commands need not be.
"""

from __future__ import annotations

import logging
import re
import subprocess
import uuid
from collections.abc import Mapping
from typing import Any

_log = logging.getLogger(__name__)

_COMMAND_TIMEOUT = 60.0  # seconds
_SUCCEEDED = "Succeeded"
_NOT_ENDED = "stopping Spark's driver on the cluster failed, and it may still be running: %s"

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

    def end(self) -> bool:
        """End it on its cluster; return whether that was done. Takes a minute at most, and never raises."""
        return False


class YarnDriver(Driver):
    """A YARN application, identified by spark-submit's log, or by a unique tag if the log doesn't name it."""

    _CLIENT = "org.apache.hadoop.yarn.client.cli.ApplicationCLI"
    _ID = re.compile(r"\bapplication_\d{10,}_\d{4,}\b")

    def __init__(self, binary: str, conf: Mapping[str, str]) -> None:
        self._binary = binary
        self._kerberos = {key: value for key, value in conf.items() if key.startswith("spark.kerberos.")}
        self._tag = f"lance-{uuid.uuid4()}"
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

    def end(self) -> bool:
        """Kill it."""
        ids = self._ids or set(self._ID.findall(self._run_client("-list", "-appTags", self._tag) or ""))
        return bool(ids) and self._run_client("-kill", *ids) is not None

    def _run_client(self, *arguments: str) -> str | None:
        # On a local master any class of Spark's or Hadoop's runs in spark-submit's own process.
        where = ["--master", "local", "--deploy-mode", "client", *settings_of(self._kerberos)]
        return _run(
            [self._binary, *where, "--class", self._CLIENT, "spark-internal", "application", *arguments]
        )


class KubernetesDriver(Driver):
    """A Kubernetes pod, whose name is set here unless the user sets it."""

    _SAYS = re.compile(r"^\s*(namespace|phase): (\S+)$")

    def __init__(self, binary: str, conf: Mapping[str, str]) -> None:
        self._binary = binary
        self._access = {
            key: value for key, value in conf.items() if key.startswith(("spark.master", "spark.kubernetes."))
        }
        self._fields = {"namespace": conf.get("spark.kubernetes.namespace", "default")}
        self._pod = conf.get("spark.kubernetes.driver.pod.name") or f"lance-{uuid.uuid4().hex}-driver"
        self.conf = {
            "spark.kubernetes.submission.waitAppCompletion": "true",
            "spark.kubernetes.driver.pod.name": self._pod,
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

    def end(self) -> bool:
        """Delete it."""
        pod = f"{self._fields['namespace']}:{self._pod}"
        return _run([self._binary, *settings_of(self._access), "--kill", pod]) is not None


def driver_of(binary: str, conf: Mapping[str, str], deploy_mode: str) -> Driver:
    """Return the driver that spark-submit is about to start.

    Args:
        binary: spark-submit's path.
        conf: Spark's configuration, ``spark.master`` in it.
        deploy_mode: ``client`` or ``cluster``.

    Raises:
        ValueError: no such cluster takes a Python driver.
    """
    if deploy_mode == "client":
        return Driver()
    master = conf.get("spark.master", "")
    if master.startswith("yarn"):
        return YarnDriver(binary, conf)
    if master.startswith("k8s://"):
        return KubernetesDriver(binary, conf)
    raise ValueError(
        f"deploy-mode cluster on {master!r}: Spark supports Python drivers only on yarn and k8s:// "
        "clusters; use deploy-mode client"
    )


def settings_of(conf: Mapping[str, str]) -> list[str]:
    """Return a configuration as arguments of spark-submit."""
    return [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]


def _run(command: list[str]) -> str | None:
    """Return the output of a command; None if it fails."""
    try:
        done = subprocess.run(command, **PROCESS_ARGS, timeout=_COMMAND_TIMEOUT, check=False)  # noqa: S603 our own
    except (OSError, subprocess.TimeoutExpired) as error:
        _log.error(_NOT_ENDED, error)
        return None
    if done.returncode:
        _log.error(_NOT_ENDED, done.stdout[-2000:])
        return None
    output: str = done.stdout
    return output
