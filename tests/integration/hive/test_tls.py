"""TLS with Hive Metastore 4.0.1."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lance_namespace.errors import InvalidInputError, ServiceUnavailableError

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from tests.servers.certificates import PASSWORD, authority, certificate
from tests.servers.standalone import standalone_metastore

pytestmark = pytest.mark.thorough

ROOT = {"id": []}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("certificates")
    ours, other = authority(), authority()
    return {
        "keystore": certificate(ours, "127.0.0.1").write_keystore(folder, "server"),
        "trusted": ours.write(folder, "authority")[0],
        "stranger": other.write(folder, "stranger")[0],
    }


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory, certificates: dict[str, str]) -> Iterator[int]:
    settings = {
        "metastore.use.SSL": "true",
        "metastore.keystore.path": certificates["keystore"],
        "metastore.keystore.password": PASSWORD,
        "metastore.keystore.type": "PKCS12",
    }
    with standalone_metastore(tmp_path_factory.mktemp("hms"), settings) as found:
        yield found


def connect(port: int, host: str = "127.0.0.1", **properties: str) -> Hive2Namespace:
    tls = {key.replace("_", "-"): value for key, value in properties.items()}
    more = {f"client.{key}": value for key, value in tls.items()}
    patient = {"client.connect-timeout": "60"}
    return Hive2Namespace(uri=f"thrift://{host}:{port}", root="/nowhere", **patient, **more)


def test_a_trusted_server_is_called_over_one_tls_connection(
    port: int, certificates: dict[str, str], database: str
) -> None:
    with connect(port, tls="true", **{"tls.ca-file": certificates["trusted"]}) as namespace:
        namespace.create_namespace({"id": [database]})
        pool = namespace._metastore._api._pool  # type: ignore[attr-defined]
        before = list(pool._idle)
        for _ in range(3):
            assert database in namespace.list_namespaces(ROOT).namespaces
        assert list(pool._idle) == before
        namespace.drop_namespace({"id": [database]})


def test_threads_share_a_tls_connection(port: int, certificates: dict[str, str]) -> None:
    with (
        connect(port, tls="true", **{"tls.ca-file": certificates["trusted"]}) as namespace,
        ThreadPoolExecutor(8) as threads,
    ):
        answers = list(threads.map(lambda _: namespace.list_namespaces(ROOT).namespaces, range(80)))
    assert all("default" in names for names in answers)


def test_an_untrusted_server_is_refused(port: int, certificates: dict[str, str]) -> None:
    for trust in ({"tls.ca-file": certificates["stranger"]}, {}):
        with pytest.raises(ServiceUnavailableError, match="certificate verify failed"):
            connect(port, tls="true", **trust).list_namespaces(ROOT)


def test_a_certificate_must_name_the_host_by_default(port: int, certificates: dict[str, str]) -> None:
    trust = {"tls": "true", "tls.ca-file": certificates["trusted"]}
    with pytest.raises(ServiceUnavailableError, match="Hostname mismatch"):
        connect(port, "localhost", **trust).list_namespaces(ROOT)
    with connect(port, "localhost", **trust, **{"tls.verify-hostname": "false"}) as namespace:
        assert namespace.list_namespaces(ROOT).namespaces


def test_a_client_without_tls_gets_an_error_that_mentions_it(port: int) -> None:
    with pytest.raises(ServiceUnavailableError, match=r"set client\.tls=true"):
        connect(port).list_namespaces(ROOT)


def test_a_server_without_tls_is_reported_to_a_tls_client(metastore: MetastoreServer) -> None:
    port = int(metastore.uri.rpartition(":")[2])
    with pytest.raises(ServiceUnavailableError, match=r"client\.tls=true, but the server may not use TLS"):
        connect(port, tls="true").list_namespaces(ROOT)


@pytest.mark.parametrize("key", ["tls.ca-file", "tls.cert-file"])
def test_a_file_that_cannot_be_read_is_named(port: int, tmp_path: Path, key: str) -> None:
    for path in (tmp_path / "missing.pem", tmp_path):
        with pytest.raises(InvalidInputError, match=f"'client.{key}': cannot read {path}"):
            connect(port, tls="true", **{key: str(path)}).list_namespaces(ROOT)
