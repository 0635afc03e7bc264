"""A StatsD server on loopback, which keeps what it is sent, and Airflow's switches to send it there."""

import socket
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, Self

import pytest

from airflow_provider_lancens.hooks import metrics


class StatsdServer:
    """Receives packets; they wait in the socket until they are read."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.setblocking(False)

    @classmethod
    @contextmanager
    def running(cls) -> Iterator[Self]:
        server = cls()
        with closing(server._socket):
            yield server

    @property
    def environment(self) -> dict[str, str]:
        """Airflow's configuration for it, with tags as InfluxDB has them in names."""
        return {
            "AIRFLOW__METRICS__STATSD_ON": "True",
            "AIRFLOW__METRICS__STATSD_HOST": "127.0.0.1",
            "AIRFLOW__METRICS__STATSD_PORT": str(self._socket.getsockname()[1]),
            "AIRFLOW__METRICS__STATSD_INFLUXDB_ENABLED": "True",
        }

    def received(self) -> list[str]:
        """The packets of Lance metrics since the last call, without Airflow's prefix."""
        packets = []
        while True:
            try:
                packets.append(self._socket.recv(65536).decode())
            except BlockingIOError:
                lines = [line.removeprefix("airflow.") for line in packets]
                return [line for line in lines if line.startswith("lance.")]

    def counted(self) -> dict[str, float]:
        """The sums of counters by name and tags, and the last values of gauges, since the last call."""
        counts: dict[str, float] = {}
        for line in self.received():
            name, _, rest = line.partition(":")
            value, kind = rest.split("|")[:2]
            if kind == "c":
                counts[name] = counts.get(name, 0) + float(value)
            elif kind == "g":
                counts[name] = float(value)
        return counts


@contextmanager
def metrics_of_a_new_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Read Airflow's switches again, and let it create its client again, for the block."""
    caches: list[Any] = [metrics.is_on, metrics._client, metrics._report]
    for cached in caches:
        cached.cache_clear()
    client: Any = metrics._client()
    metrics._client.cache_clear()
    home = sys.modules[client.__module__]
    if hasattr(home, "_factory"):  # Airflow 3.3
        monkeypatch.setattr(home, "_factory", None)
        monkeypatch.setattr(home, "_backend", None)
    elif hasattr(client, "initialize"):  # Airflow 3.2
        for name in ("factory", "instance"):
            monkeypatch.setattr(client, name, None)
    else:
        from airflow.metrics.statsd_logger import get_statsd_logger

        monkeypatch.setattr(client, "factory", partial(get_statsd_logger, client))
        monkeypatch.setattr(client, "instance", None)
    yield
    for cached in caches:
        cached.cache_clear()
