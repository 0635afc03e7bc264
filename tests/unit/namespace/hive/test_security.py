"""Properties of TLS and SASL, and their valid combinations."""

import sys
from collections.abc import Mapping

import pytest
from lance_namespace.errors import InvalidInputError, UnsupportedOperationError

from airflow_provider_lancens.namespace import Hive2Namespace
from airflow_provider_lancens.namespace.hive.deadline import Deadline
from airflow_provider_lancens.namespace.hive.settings import ClientSettings, hive_properties

PLAIN = {"client.auth": "plain", "client.user": "ana", "client.password": "hush"}


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
