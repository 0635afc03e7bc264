"""A server that requires a client certificate: a proxy in front of HMS, which doesn't support this."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from lance_namespace.errors import InvalidInputError, ServiceUnavailableError

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from tests.servers.certificates import authority, certificate

ROOT = {"id": []}


@contextmanager
def tls_in_front_of(uri: str, context: ssl.SSLContext) -> Iterator[int]:
    """Run a proxy that terminates TLS; yield its loopback port."""
    target = urlsplit(uri)
    loop = asyncio.new_event_loop()

    async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(1 << 16):
            sink.write(data)
            await sink.drain()
        sink.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection(target.hostname, target.port)
        await asyncio.gather(copy(reader, to_server), copy(from_server, writer), return_exceptions=True)

    server = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0, ssl=context))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        server.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    ours = authority()
    server, server_key = certificate(ours, "127.0.0.1").write(tmp_path, "server")
    client, client_key = certificate(ours, "client").write(tmp_path, "client")
    return {
        "authority": ours.write(tmp_path, "authority")[0],
        "server": server,
        "server key": server_key,
        "client": client,
        "client key": client_key,
    }


@pytest.fixture
def port(metastore: MetastoreServer, files: dict[str, str]) -> Iterator[int]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=files["authority"])
    context.load_cert_chain(files["server"], files["server key"])
    context.verify_mode = ssl.CERT_REQUIRED
    with tls_in_front_of(metastore.uri, context) as found:
        yield found


def connect(port: int, files: dict[str, str], **more: str) -> Hive2Namespace:
    trust = {"client.tls": "true", "client.tls.ca-file": files["authority"]}
    return Hive2Namespace(uri=f"thrift://127.0.0.1:{port}", root="/nowhere", **trust, **more)


def test_the_client_certificate_is_presented(port: int, files: dict[str, str]) -> None:
    ours = {"client.tls.cert-file": files["client"], "client.tls.key-file": files["client key"]}
    with connect(port, files, **ours) as namespace:
        assert "default" in namespace.list_namespaces(ROOT).namespaces


def test_a_missing_client_certificate_is_refused_by_the_server(port: int, files: dict[str, str]) -> None:
    with pytest.raises(ServiceUnavailableError, match="cannot reach"):
        connect(port, files).list_namespaces(ROOT)


def test_a_missing_private_key_is_reported(port: int, files: dict[str, str]) -> None:
    with pytest.raises(InvalidInputError, match=r"'client\.tls\.cert-file'"):
        connect(port, files, **{"client.tls.cert-file": files["client"]}).list_namespaces(ROOT)
