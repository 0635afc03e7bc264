"""Credentials: static keys, session keys, or the default chain."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from lance_namespace.errors import ErrorCode

from airflow_provider_lancens.namespace import GlueNamespace
from tests.conformance.codes import refused_with
from tests.servers.glue_double import REGION, GlueDouble

CHAIN = {
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_DEFAULT_REGION",
    "AWS_REGION",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_ENDPOINT_URL_GLUE",
}


@pytest.fixture
def bare_chain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """An environment in which the default chain finds nothing."""
    for name in CHAIN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    return monkeypatch


def asked_by(glue: GlueDouble, namespace: GlueNamespace) -> Mapping[str, str]:
    """Make a request, and return its headers."""
    with namespace:
        namespace.list_namespaces({"id": []})
    return glue.requests[-1].headers


def test_static_keys_sign_the_requests(glue: GlueDouble, bare_chain: object) -> None:
    headers = asked_by(glue, GlueNamespace(**glue.properties))
    assert f"Credential={glue.properties['access_key_id']}/" in headers["AUTHORIZATION"]
    assert f"/{REGION}/glue/" in headers["AUTHORIZATION"]
    assert "X_AMZ_SECURITY_TOKEN" not in headers


def test_a_session_sends_its_token(glue: GlueDouble, bare_chain: object) -> None:
    headers = asked_by(glue, GlueNamespace(**glue.properties, session_token="a-token"))
    assert headers["X_AMZ_SECURITY_TOKEN"] == "a-token"


def test_without_keys_the_default_credential_chain_is_used(
    glue: GlueDouble, bare_chain: pytest.MonkeyPatch
) -> None:
    bare_chain.setenv("AWS_ACCESS_KEY_ID", "FROMTHECHAIN")
    bare_chain.setenv("AWS_SECRET_ACCESS_KEY", "x")
    bare_chain.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    headers = asked_by(glue, GlueNamespace(endpoint=glue.endpoint))
    assert "Credential=FROMTHECHAIN/" in headers["AUTHORIZATION"]
    assert "/eu-central-1/glue/" in headers["AUTHORIZATION"]


def test_missing_credentials_are_reported(glue: GlueDouble, bare_chain: object) -> None:
    with refused_with(ErrorCode.UNAUTHENTICATED, "access_key_id", "default credential chain"):
        GlueNamespace(endpoint=glue.endpoint, region=REGION).list_namespaces({"id": []})


def test_a_missing_region_is_reported(bare_chain: object) -> None:
    with refused_with(ErrorCode.INVALID_INPUT, "region"):
        GlueNamespace(access_key_id="A", secret_access_key="x").list_namespaces({"id": []})


@pytest.mark.parametrize("host", ["a b", "-x", "x..y", "é.test"])
def test_an_invalid_host_is_reported(bare_chain: object, host: str) -> None:
    namespace = GlueNamespace(
        endpoint=f"http://{host}", region=REGION, access_key_id="A", secret_access_key="x"
    )
    with refused_with(ErrorCode.INVALID_INPUT, "endpoint", host):
        namespace.list_namespaces({})


def test_an_invalid_region_is_reported(bare_chain: object) -> None:
    with refused_with(ErrorCode.INVALID_INPUT, "no region"):
        GlueNamespace(region="no region", access_key_id="A", secret_access_key="x").list_namespaces({})


def test_every_request_names_the_catalog(glue: GlueDouble, database: str) -> None:
    namespace = GlueNamespace(**glue.properties, catalog_id="210987654321", root="/lake")
    already = len(glue.requests)
    namespace.create_namespace({"id": [database]})
    namespace.declare_table({"id": [database, "t"]})
    namespace.list_tables({"id": [database]})
    namespace.drop_namespace({"id": [database], "behavior": "cascade"})
    sent = glue.requests[already:]
    assert {"CreateDatabase", "GetTables", "BatchDeleteTable"} <= {request.operation for request in sent}
    assert {request.body.get("CatalogId") for request in sent} == {"210987654321"}
