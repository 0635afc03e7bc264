"""Properties of TLS and SASL, and their valid combinations."""

import sys
from collections.abc import Mapping

import pytest
from lance_namespace.errors import InvalidInputError, UnsupportedOperationError
from thrift.transport.TTransport import TBufferedTransport, TTransportBase, TTransportException

from airflow_provider_lancens.namespace import Hive2Namespace
from airflow_provider_lancens.namespace.deadline import Deadline
from airflow_provider_lancens.namespace.hive.limits import MAX_NEGOTIATION, MAX_REPLY
from airflow_provider_lancens.namespace.hive.settings import ClientSettings, hive_properties

PLAIN = {"client.auth": "plain", "client.tls": "true", "client.user": "ana", "client.password": "hush"}


def settings(properties: Mapping[str, str]) -> ClientSettings:
    return ClientSettings.parse(hive_properties({"uri": "thrift://localhost:9083", **properties}))


def test_tls_and_kerberos_are_off_by_default() -> None:
    plain = settings({})
    assert plain.tls is None
    assert plain.authentication.kind == "none"


def test_tls_verifies_the_host_by_default() -> None:
    tls = settings({"client.tls": "true"}).tls
    assert tls
    assert tls.verify_hostname
    assert tls.context().check_hostname


@pytest.mark.parametrize("word", ["Kerberos", "KERBEROS"])
def test_the_default_kerberos_service_is_hive(word: str) -> None:
    assert settings({"client.auth": word}).authentication.service_name == "hive"
    named = settings({"client.auth": word, "client.kerberos.service-name": "metastore"})
    assert named.authentication.service_name == "metastore"


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({"client.tls.ca-file": "/ca.pem"}, "client.tls.ca-file"),
        ({"client.tls": "false", "client.tls.verify-hostname": "false"}, "client.tls.verify-hostname"),
        ({"client.tls": "true", "client.tls.key-file": "/key.pem"}, "client.tls.key-file"),
        ({"client.auth": "ldap"}, "client.auth"),
        ({"client.user": "ana"}, "client.user"),
        ({"client.auth": "kerberos", "client.password": "hush"}, "client.password"),
        ({**PLAIN, "client.kerberos.service-name": "hive"}, "client.kerberos.service-name"),
        ({"client.auth": "kerberos", "client.plain.without-tls": "true"}, "client.plain.without-tls"),
        ({**PLAIN, "client.kerberos.protection": "auth"}, "client.kerberos.protection"),
        ({"client.auth": "kerberos", "client.kerberos.protection": "privacy"}, "client.kerberos.protection"),
        ({"client.auth": "plain", "client.user": "ana"}, "client.password"),
        ({"client.auth": "plain", "client.password": "hush"}, "client.user"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_options_without_effect_are_refused_by_name(properties: dict[str, str], named: str) -> None:
    with pytest.raises(InvalidInputError, match=named) as refusal:
        settings(properties)
    assert "hush" not in str(refusal.value)


def test_a_password_is_not_shown() -> None:
    namespace = Hive2Namespace(uri="thrift://localhost:9083", root="/lake", **PLAIN)
    for text in (repr(settings(PLAIN)), str(settings(PLAIN)), repr(namespace), namespace.namespace_id()):
        assert "hush" not in text


@pytest.mark.parametrize(
    ("properties", "missing", "extra"),
    [(PLAIN, "puresasl", "sasl"), ({"client.auth": "kerberos"}, "kerberos", "kerberos")],
    ids=["plain", "kerberos"],
)
def test_a_library_that_is_not_installed_is_named_with_its_extra(
    properties: dict[str, str], missing: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(UnsupportedOperationError, match=rf"airflow-provider-lancens\[{extra}\]"):
        settings(properties).authentication.authenticate(None, "localhost", Deadline(5))


def test_a_password_without_tls_needs_consent_in_words() -> None:
    unencrypted = {**PLAIN, "client.tls": "false"}
    with pytest.raises(
        InvalidInputError, match=r"unencrypted; set property 'client\.tls' to true, or property"
    ) as no:
        settings(unencrypted)
    assert "hush" not in str(no.value)
    assert settings({**unencrypted, "client.plain.without-tls": "true"}).authentication.password == "hush"
    assert settings(PLAIN).authentication.password == "hush"


def test_kerberos_encrypts_unless_tls_does() -> None:
    kerberos = {"client.auth": "kerberos"}
    assert settings(kerberos).authentication.protection == "auth-conf"
    assert settings({**kerberos, "client.tls": "true"}).authentication.protection == "auth"
    assert settings({**kerberos, "client.kerberos.protection": "AUTH"}).authentication.protection == "auth"


class _Server(TTransportBase):  # type: ignore[misc]
    """The replies of a server that nobody has authenticated."""

    def __init__(self, replies: bytes) -> None:
        self._replies = replies

    def isOpen(self) -> bool:  # noqa: N802 - thrift's name
        return True

    def read(self, size: int) -> bytes:
        found, self._replies = self._replies[:size], self._replies[size:]
        return found

    def write(self, data: bytes) -> None:
        """Take it."""

    def flush(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    ("replies", "most"),
    [(b"\x02\x7f\xff\xff\xff", MAX_NEGOTIATION), (b"\x05\0\0\0\0\x7f\xff\xff\xff", MAX_REPLY)],
    ids=["negotiation", "frame"],
)
def test_a_server_that_announces_two_gibibytes_is_left(replies: bytes, most: int) -> None:
    server = TBufferedTransport(_Server(replies))
    with pytest.raises((ConnectionError, TTransportException), match=rf"2147483647.*{most}"):
        settings(PLAIN).authentication.authenticate(server, "localhost", Deadline(5)).read(1)
