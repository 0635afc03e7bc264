"""An unreachable server is reported within its timeout, with every address that was tried."""

import socket
import threading
import time
from typing import Any

import pytest
from lance_namespace.errors import ErrorCode, ServiceUnavailableError

from airflow_provider_lancens.namespace import Hive2Namespace
from tests.servers.proxy import closed_port, silent_server

NOBODY = "thrift://192.0.2.1:9083"
"""An address that documents use and no network routes (RFC 5737)."""


def refusal_of(uri: str, **properties: str) -> tuple[ServiceUnavailableError, float]:
    namespace = Hive2Namespace(uri=uri, root="/nowhere", **properties)
    started = time.monotonic()
    with pytest.raises(ServiceUnavailableError) as refusal:
        namespace.list_namespaces({"id": []})
    return refusal.value, time.monotonic() - started


def test_every_unreachable_address_is_named() -> None:
    uris = [closed_port(), closed_port()]
    error, seconds = refusal_of(",".join(uris))
    assert error.code == ErrorCode.SERVICE_UNAVAILABLE
    assert all(f"{uri}: " in str(error) for uri in uris)
    assert seconds < 10


def test_unresponsive_servers_time_out() -> None:
    with silent_server() as one, silent_server() as two:
        error, seconds = refusal_of(f"{one},{two},{NOBODY}")
    assert all(f"{uri}: " in str(error) for uri in (one, two, NOBODY))
    assert seconds < 10


def test_the_configured_timeout_is_kept() -> None:
    with silent_server() as uri:
        _, seconds = refusal_of(uri, **{"client.connect-timeout": "0.5"})
    assert seconds < 2


def test_a_slow_name_resolution_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    # An unresponsive name server can't be simulated on loopback.
    answered = threading.Event()

    def wait(*_: object, **__: object) -> list[Any]:
        answered.wait()
        return []

    monkeypatch.setattr(socket, "getaddrinfo", wait)
    error, seconds = refusal_of("thrift://lake.invalid", **{"client.connect-timeout": "0.5"})
    answered.set()
    assert "resolving the name lake.invalid timed out after 0.5 s" in str(error)
    assert seconds < 2


def test_an_unknown_host_name_is_reported() -> None:
    error, _ = refusal_of("thrift://lake.invalid")
    assert "thrift://lake.invalid:9083: " in str(error)
