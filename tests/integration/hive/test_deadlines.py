"""A call ends at its timeout, however slow a server or KDC is, and no thread keeps its process alive."""

import json
import os
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lance_namespace.errors import LanceNamespaceError, ServiceUnavailableError

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from tests.servers.kerberos import silent_kdc
from tests.servers.proxy import Proxy, silent_server, slow_server

SECONDS = 0.6
PATIENCE = 3 * SECONDS
"""A busy machine's; the servers here drag on for longer by far."""
LISTING = {"id": []}

LONG_REPLY = struct.pack(">II", 0x80010002, 1_000_000)
TLS_RECORD = b"\x16\x03\x03\x3f\xff\x02\x00\x3f\xfb"
"""A handshake record of 16 KB, with the server's first message in it."""
SASL_CHALLENGE = struct.pack(">BI", 2, 60_000)
PLAIN = {
    "client.auth": "plain",
    "client.plain.without-tls": "true",
    "client.user": "ana",
    "client.password": "hush",
}


@pytest.mark.parametrize(
    ("begin", "properties"),
    [(LONG_REPLY, {}), (TLS_RECORD, {"client.tls": "true"}), (SASL_CHALLENGE, PLAIN)],
    ids=["connecting", "TLS handshake", "SASL negotiation"],
)
def test_a_byte_by_byte_reply_times_out_while_connecting(begin: bytes, properties: dict[str, str]) -> None:
    with slow_server(begin) as uri:
        assert_ends(uri, **properties, **{"client.connect-timeout": str(SECONDS)})


def test_a_byte_by_byte_reply_times_out(metastore: MetastoreServer) -> None:
    with Proxy(metastore.uri) as proxy:
        proxy.send_reply_slowly("get_all_databases")
        assert_ends(proxy.uri, **{"client.read-timeout": str(SECONDS)})


def test_all_attempts_of_a_call_share_one_deadline(metastore: MetastoreServer) -> None:
    with Proxy(metastore.uri) as one, Proxy(metastore.uri) as two:
        for proxy in (one, two):
            proxy.send_reply_slowly("get_all_databases")
        uri, timeouts = f"{one.uri},{two.uri}", {"client.connect-timeout": "1", "client.read-timeout": "1"}
        assert_ends(uri, at_most=2 * (1 + 1) + SECONDS, **timeouts)


@pytest.mark.parametrize("credentials", ["ticket cache", "client keytab"])
def test_an_unresponsive_kdc_times_out_and_works_later(
    credentials: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metastore: MetastoreServer
) -> None:
    with silent_kdc(tmp_path, credentials) as kdc:
        for name, value in kdc.environment.items():
            monkeypatch.setenv(name, value)
        error = assert_ends(
            metastore.uri, **{"client.auth": "kerberos", "client.connect-timeout": str(SECONDS)}
        )
    assert "authenticating by client.auth=kerberos" in str(error)


def assert_ends(uri: str, at_most: float = PATIENCE, **properties: str) -> LanceNamespaceError:
    namespace = Hive2Namespace(uri=uri, root="/nowhere", **properties)
    started = time.monotonic()
    with pytest.raises(ServiceUnavailableError, match="timed out after") as refusal:
        namespace.list_namespaces(LISTING)
    assert time.monotonic() - started < at_most
    return refusal.value


_LOOKING = """
import sys, threading
from airflow_provider_lancens.namespace import Hive2Namespace
namespace = Hive2Namespace(uri=sys.argv[1], root="/nowhere", **{"client.auth": "kerberos"})
threading.Thread(target=lambda: namespace.list_namespaces({"id": []}), daemon=True).start()
sys.stdin.readline()
"""


def test_a_process_can_exit_while_kerberos_waits_for_the_kdc(
    tmp_path: Path, metastore: MetastoreServer
) -> None:
    with (
        silent_kdc(tmp_path, "client keytab") as kdc,
        running(_LOOKING, metastore.uri, kdc.environment) as process,
    ):
        kdc.wait_for_a_request()
        assert seconds_to_end(process) < 5


_WAITING = """
import asyncio, sys, threading
from airflow_provider_lancens.triggers.table_version_trigger import LanceTableVersionTrigger
async def main():
    trigger = LanceTableVersionTrigger(table="db$t", lance_conn_id="lake", poll_interval=0.1)
    wait = asyncio.ensure_future(anext(aiter(trigger.run())))
    while not any(thread.name.startswith("lance-metastore") for thread in threading.enumerate()):
        await asyncio.sleep(0.05)
    print("it calls", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    wait.cancel()
asyncio.run(main())
"""


def test_a_process_can_exit_while_a_poll_waits_for_the_server() -> None:
    with silent_server() as uri:
        connection = {"conn_type": "lance_hive2", "host": uri, "extra": {"client.connect-timeout": "60"}}
        environment = {**os.environ, "AIRFLOW_CONN_LAKE": json.dumps(connection)}
        with running(_WAITING, uri, environment) as process:
            assert process.stdout
            assert "it calls\n" in iter(process.stdout.readline, "")
            assert seconds_to_end(process) < 5


def running(program: str, uri: str, environment: dict[str, str]) -> "subprocess.Popen[str]":
    """A program that waits for a server until it is stopped."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", program, uri], env=environment, **pipes)  # type: ignore[call-overload]


def seconds_to_end(process: "subprocess.Popen[str]") -> float:
    started = time.monotonic()
    process.communicate("\n", timeout=60)
    assert process.returncode == 0
    return time.monotonic() - started
