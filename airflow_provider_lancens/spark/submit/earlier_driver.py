"""A driver that was submitted before, and that its cluster still runs after the loss of spark-submit."""

from __future__ import annotations

import logging
import time
from itertools import chain, repeat

from airflow_provider_lancens.spark.submit.cluster_drivers import (
    NOT_ENDED,
    ClusterError,
    Driver,
    DriverState,
)

_log = logging.getLogger(__name__)

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
        """Return the name of one that is running; None if there is none.

        Raises:
            ClusterError: the cluster did not answer.
        """
        running = [name for name, state in self._driver.find().items() if state == "running"]
        self._name = min(running, default=None)  # on YARN the oldest, which ends first
        if self._name is not None:
            self._driver.adopt(self._name)
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
        """End it, also one that an interrupted search has not found yet; also from a signal handler."""
        if self._killed:
            return
        try:
            if self._name is not None or self.find():
                self._driver.end()
        except ClusterError as error:
            _log.error(NOT_ENDED, error)
        self._killed = True  # not before: a second signal may have interrupted it
