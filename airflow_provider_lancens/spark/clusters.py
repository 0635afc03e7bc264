"""The driver that a cluster takes over from spark-submit: how it is told apart, and how it is ended.

spark-submit only watches such a driver, which lives on when spark-submit ends. What ends it is spark-submit
again: it is there, and knows the way to the cluster, which no other command of that cluster has to.
"""

from __future__ import annotations

import logging
import re
import subprocess
import uuid
from collections.abc import Mapping

_log = logging.getLogger(__name__)

_PATIENCE = 60.0  # seconds
_WELL = "Succeeded"
_NOT_ENDED = "the cluster did not end Spark's driver, which may live on: %s"


class Driver:
    """A driver that ends with spark-submit: its child."""

    conf: Mapping[str, str] = {}
    """What spark-submit is told beside the user's configuration."""

    @property
    def taken_over(self) -> bool:
        """Whether the cluster is known to have it; it may have it without."""
        return False

    @property
    def failed(self) -> bool:
        """Whether it did, where spark-submit's exit code doesn't tell."""
        return False

    @property
    def told_by(self) -> str:
        """The command that shows what the driver said, where spark-submit doesn't."""
        return ""

    def hear(self, line: str) -> None:
        """Take notice of what spark-submit says."""

    def end(self) -> bool:
        """End it on its cluster; whether that was done. Takes a minute at most, and never raises."""
        return False


class YarnDriver(Driver):
    """The application that spark-submit names in its log, or that carries our tag where the log is silent."""

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
        """Whether it has an id."""
        return bool(self._ids)

    @property
    def told_by(self) -> str:
        """YARN's own command."""
        return "".join(f"yarn logs -applicationId {found}" for found in self._ids)

    def hear(self, line: str) -> None:
        """Find its id."""
        if not self._ids and (found := self._ID.search(line)):
            self._ids = {found[0]}

    def end(self) -> bool:
        """Kill it."""
        ids = self._ids or set(self._ID.findall(self._ask("-list", "-appTags", self._tag) or ""))
        return bool(ids) and self._ask("-kill", *ids) is not None

    def _ask(self, *words: str) -> str | None:
        # On a local master any class of Spark's or Hadoop's runs in spark-submit's own process.
        where = ["--master", "local", "--deploy-mode", "client", *settings_of(self._kerberos)]
        return _run([self._binary, *where, "--class", self._CLIENT, "spark-internal", "application", *words])


class KubernetesDriver(Driver):
    """The pod, whose name is given by us unless the user does."""

    _SAYS = re.compile(r"^\s*(namespace|phase): (\S+)$")

    def __init__(self, binary: str, conf: Mapping[str, str]) -> None:
        self._binary = binary
        self._access = {
            key: value for key, value in conf.items() if key.startswith(("spark.master", "spark.kubernetes."))
        }
        self._heard = {"namespace": conf.get("spark.kubernetes.namespace", "default")}
        self._pod = conf.get("spark.kubernetes.driver.pod.name") or f"lance-{uuid.uuid4().hex}-driver"
        self.conf = {
            "spark.kubernetes.submission.waitAppCompletion": "true",
            "spark.kubernetes.driver.pod.name": self._pod,
        }

    @property
    def told_by(self) -> str:
        """Kubernetes' own command."""
        return f"kubectl logs --namespace {self._heard['namespace']} {self._pod}"

    @property
    def failed(self) -> bool:
        """Whether the pod ended otherwise than well, or went away."""
        return self._heard.get("phase", _WELL) != _WELL

    def hear(self, line: str) -> None:
        """Find where it runs, and how far it got."""
        if found := self._SAYS.match(line):
            self._heard[found[1]] = found[2]

    def end(self) -> bool:
        """Delete it."""
        pod = f"{self._heard['namespace']}:{self._pod}"
        return _run([self._binary, *settings_of(self._access), "--kill", pod]) is not None


def driver_of(binary: str, conf: Mapping[str, str], deploy_mode: str) -> Driver:
    """The driver that spark-submit is about to start.

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
        f"deploy-mode cluster on {master!r}: Spark runs a Python driver there on yarn and k8s:// only; "
        "use deploy-mode client"
    )


def settings_of(conf: Mapping[str, str]) -> list[str]:
    """A configuration as arguments of spark-submit."""
    return [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]


def _run(command: list[str]) -> str | None:
    """What a command says; None where it fails."""
    try:
        done = subprocess.run(  # noqa: S603 our own command, without a shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            check=False,
            start_new_session=True,  # goes on where the task is killed for good meanwhile
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        _log.error(_NOT_ENDED, error)
        return None
    if done.returncode:
        _log.error(_NOT_ENDED, done.stdout[-2000:])
        return None
    return done.stdout
