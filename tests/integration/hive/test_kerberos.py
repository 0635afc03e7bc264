"""Kerberos with MIT's KDC and Hive Metastore 4.0.1, without and with TLS."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from lance_namespace.errors import LanceNamespaceError, ServiceUnavailableError, UnauthenticatedError

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace import Hive2Namespace, Hive3Namespace
from airflow_provider_lancens.triggers.table_version_trigger import LanceTableVersionTrigger
from tests.servers.certificates import PASSWORD, authority, certificate
from tests.servers.hadoop import free_port
from tests.servers.kerberos import SERVICE, Kdc, kdc, kerberos_metastore, write_client_configuration

pytestmark = pytest.mark.slow

LISTING = {"id": []}


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    """A KDC with the metastore's principal, and a user with a keytab and a ticket."""
    with kdc(tmp_path_factory.mktemp("kdc")) as running:
        for principal in (SERVICE, "ana"):
            running.keytab(principal)
        running.ticket("ana")
        yield running


@pytest.fixture(scope="module")
def uri(realm: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with kerberos_metastore(realm, tmp_path_factory.mktemp("hms")) as found:
        yield found


@pytest.fixture
def user(realm: Kdc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Use this ticket cache or client keytab, or no credentials."""

    def become(cache: Path = tmp_path / "none", keytab: Path = tmp_path / "none") -> None:
        monkeypatch.setenv("KRB5_CONFIG", str(realm.configuration))
        monkeypatch.setenv("KRB5CCNAME", f"FILE:{cache}")
        monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(keytab))

    return become


def properties(uri: str, **more: str) -> dict[str, str]:
    return {"uri": uri, "root": "/nowhere", "client.auth": "kerberos", "client.connect-timeout": "60", **more}


def refusal(uri: str, **more: str) -> LanceNamespaceError:
    with pytest.raises(LanceNamespaceError) as found:
        Hive2Namespace(**properties(uri, **more)).list_namespaces(LISTING)
    return found.value


@pytest.mark.parametrize("kind", [Hive2Namespace, Hive3Namespace])
@pytest.mark.parametrize("credentials", ["ticket cache", "client keytab"])
def test_valid_credentials_open_a_connection(
    uri: str, realm: Kdc, user: Callable[..., None], credentials: str, kind: Any, database: str
) -> None:
    if credentials == "ticket cache":
        user(cache=realm.folder / "ana.cache")
    else:
        user(keytab=realm.folder / "ana.keytab")
    target = [database] if kind is Hive2Namespace else ["hive", database]
    with kind(**properties(uri)) as namespace:
        namespace.create_namespace({"id": target})
        for number in range(3):
            namespace.declare_table({"id": [*target, f"t_{number}"], "properties": {"long": "x" * 30_000}})
        assert namespace.list_tables({"id": target}).tables == ["t_0", "t_1", "t_2"]
        found = namespace.poll_tables([TableId.of([*target, f"t_{number}"]) for number in range(3)])
        assert all(one.location for one in found.values())
        namespace.drop_namespace({"id": target, "behavior": "cascade"})


@pytest.mark.long  # each run tests Kerberos, and TLS
def test_kerberos_works_over_tls(realm: Kdc, user: Callable[..., None], tmp_path: Path) -> None:
    ours = authority()
    settings = {
        "metastore.use.SSL": "true",
        "metastore.keystore.path": certificate(ours, "localhost").write_keystore(tmp_path, "server"),
        "metastore.keystore.password": PASSWORD,
        "metastore.keystore.type": "PKCS12",
    }
    tls = {"client.tls": "true", "client.tls.ca-file": ours.write(tmp_path, "authority")[0]}
    with kerberos_metastore(realm, tmp_path, settings) as uri:
        for credentials in ({"cache": realm.folder / "ana.cache"}, {"keytab": realm.folder / "ana.keytab"}):
            user(**credentials)
            with Hive2Namespace(**properties(uri, **tls)) as namespace:
                assert "default" in namespace.list_namespaces(LISTING).namespaces


def test_missing_credentials_are_code_16(uri: str, user: Callable[..., None]) -> None:
    user()
    error = refusal(uri)
    assert isinstance(error, UnauthenticatedError)
    assert "client.auth=kerberos failed for service 'hive': No Kerberos credentials available" in str(error)


def test_an_unknown_service_principal_is_code_16(uri: str, realm: Kdc, user: Callable[..., None]) -> None:
    user(cache=realm.folder / "ana.cache")
    error = refusal(uri, **{"client.kerberos.service-name": "elsewhere"})
    assert isinstance(error, UnauthenticatedError)
    assert "Server elsewhere/localhost@LANCENS.TEST not found in Kerberos database" in str(error)


def test_a_user_removed_from_the_kdc_is_code_16(uri: str, realm: Kdc, user: Callable[..., None]) -> None:
    user(keytab=realm.keytab("leaver"))
    realm.delete("leaver")
    assert isinstance(refusal(uri), UnauthenticatedError)


def test_an_expired_ticket_is_code_17_since_it_may_be_renewed(
    uri: str, realm: Kdc, user: Callable[..., None]
) -> None:
    realm.keytab("late")
    user(cache=realm.ticket("late", "-s", "-1h", "-l", "1m"))
    error = refusal(uri)
    assert isinstance(error, ServiceUnavailableError)
    assert "may be temporary: Ticket expired" in str(error)


@pytest.mark.parametrize("length", [0, 30, 70], ids=["empty", "half a header", "header"])
def test_an_incomplete_ticket_cache_is_code_17(
    uri: str, realm: Kdc, user: Callable[..., None], tmp_path: Path, length: int
) -> None:
    half = tmp_path / "half.cache"
    half.write_bytes((realm.folder / "ana.cache").read_bytes()[:length])
    user(cache=half)
    assert isinstance(refusal(uri), ServiceUnavailableError)


async def test_a_wait_survives_an_unreachable_kdc(
    uri: str,
    realm: Kdc,
    user: Callable[..., None],
    connect: Callable[..., str],
    database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    user(keytab=realm.folder / "ana.keytab")
    with Hive2Namespace(**properties(uri, root=str(tmp_path))) as namespace:
        namespace.create_namespace({"id": [database]})
        namespace.register_table({"id": [database, "t"], "location": table_with_a_version(tmp_path)})
    user(cache=tmp_path / "emptied", keytab=realm.folder / "ana.keytab")  # the first cache has a ticket now
    write_client_configuration(tmp_path / "krb5.conf", free_port())
    monkeypatch.setenv("KRB5_CONFIG", str(tmp_path / "krb5.conf"))
    lake = connect(host=uri, extra={"client.auth": "kerberos", "client.connect-timeout": "60"})
    trigger = LanceTableVersionTrigger(table=f"{database}$t", lance_conn_id=lake, poll_interval=0.1)
    wait = asyncio.ensure_future(anext(aiter(trigger.run())))
    async with asyncio.timeout(60):
        while "still polling" not in caplog.text:  # noqa: ASYNC110 - another thread logs
            await asyncio.sleep(0.05)
        assert "Cannot contact any KDC" in caplog.text
        monkeypatch.setenv("KRB5_CONFIG", str(realm.configuration))
        assert (await wait).payload["version"] == 1


def table_with_a_version(folder: Path) -> str:
    import lance
    import pyarrow as pa

    location = str(folder / "t.lance")
    lance.write_dataset(pa.table({"x": [1]}), location)
    return location


def test_a_server_that_does_not_encrypt_is_refused_unless_it_is_asked_for(
    realm: Kdc, user: Callable[..., None], tmp_path_factory: pytest.TempPathFactory
) -> None:
    user(cache=realm.folder / "ana.cache")
    folder = tmp_path_factory.mktemp("authentication")
    with kerberos_metastore(realm, folder, protection="authentication") as unencrypted:
        error = refusal(unencrypted)
        assert isinstance(error, UnauthenticatedError)
        assert "the server doesn't offer client.kerberos.protection=auth-conf" in str(error)
        accepted = properties(unencrypted, **{"client.kerberos.protection": "auth"})
        with Hive2Namespace(**accepted) as namespace:
            assert "default" in namespace.list_namespaces(LISTING).namespaces
