"""Storage options of a connection: what its editor can make Airflow's processes do with them."""

import contextlib
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from airflow.sdk import Connection
from lance_namespace.errors import LanceNamespaceError

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.connection_fields import extra_properties
from airflow_provider_lancens.namespace.storage.object_store import latest_version

ALLOWED = "AIRFLOW__LANCENS__ALLOWED_STORAGE_OPTIONS"
CONNECTION_TYPES = ("lance_hive2", "lance_glue")
NEED_CONSENT = [
    ("azure_federated_token_file", "names a file"),
    ("aws_web_identity_token_file", "names a file"),
    ("aws_container_authorization_token_file", "names a file"),
    ("google_application_credentials", "names a file"),
    ("service_account", "names a file"),
    ("google_service_account_path", "names a file"),
    ("azure_use_azure_cli", "runs a command"),
    ("azure_storage_authority_host", "names an authority"),
    ("aws_endpoint_url_sts", "names an authority"),
    ("azure_fabric_token_service_url", "names an authority"),
    ("aws_container_credentials_full_uri", "names a source of credentials"),
    ("container_credentials_relative_uri", "names a source of credentials"),
    ("metadata_endpoint", "names a source of credentials"),
    ("identity_endpoint", "names a source of credentials"),
    ("AZURE_MSI_ENDPOINT", "names a source of credentials"),
    ("aws_profile", "names a source of credentials"),
    ("proxy_url", "lets others between"),
    ("aws_proxy_ca_certificate", "lets others between"),
    ("allow_invalid_certificates", "lets others between"),
    ("credential_path", "names a file"),
    ("use_opendal", "is unknown"),
    ("acces_key_id", "is unknown (did you mean access_key_id?)"),
    (" ", "is unknown"),
]


def options(extra: dict[str, Any], conn_type: str = "lance_hive2") -> dict[str, str]:
    stored = {f"storage.{name}": value for name, value in extra.items()}
    connection = Connection(conn_id="lake", conn_type=conn_type, extra=json.dumps(stored))
    found = extra_properties(connection, conn_type)
    return {name.removeprefix("storage."): value for name, value in found.items()}


@pytest.fixture
def received() -> Iterator[tuple[str, list[str]]]:
    """The address of a server of the connection's editor, and the requests that it received."""
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            requests.append(f"{self.headers} {content}")
            self.send_error(400)

        do_GET = do_POST  # noqa: N815 - as http.server names it

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", requests
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_editor_cannot_send_a_workers_file_to_another_host(
    tmp_path: Path, received: tuple[str, list[str]]
) -> None:
    url, requests = received
    secret = tmp_path / "passwd"
    secret.write_text("of-the-worker")
    extra = {
        "azure_federated_token_file": str(secret),
        "azure_authority_host": url,
        "azure_client_id": "id",
        "azure_tenant_id": "tenant",
        "azure_storage_account_name": "account",
        "allow_http": True,
    }
    with pytest.raises(AirflowFailException, match="names a file"):
        latest_version("az://container/t.lance", options(extra))
    assert not any("of-the-worker" in request for request in requests)


def test_a_token_of_the_worker_goes_to_no_endpoint_of_an_editor(
    monkeypatch: pytest.MonkeyPatch, received: tuple[str, list[str]]
) -> None:
    url, requests = received
    monkeypatch.setenv("AZURE_STORAGE_TOKEN", "of-the-worker")
    extra = {"endpoint": url, "allow_http": True, "azure_storage_account_name": "account", "timeout": "1s"}
    with contextlib.suppress(LanceNamespaceError):
        latest_version("az://container/t.lance", options(extra))
    assert not requests


@pytest.mark.parametrize("conn_type", CONNECTION_TYPES)
@pytest.mark.parametrize(("name", "reason"), NEED_CONSENT)
def test_an_option_that_reaches_beyond_the_storage_needs_the_operators_consent(
    name: str, reason: str, conn_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AirflowFailException) as refusal:
        options({name: "hush-hush"}, conn_type)
    assert f"extra 'storage.{name}': {reason}" in str(refusal.value)
    assert "in airflow.cfg, section [lancens], allowed_storage_options" in str(refusal.value)
    assert "hush" not in str(refusal.value)
    if name.strip():
        monkeypatch.setenv(ALLOWED, f"other,\nstorage.{name.lower()} , another")
        assert options({name: "x"}, conn_type) == {name: "x"}


@pytest.mark.parametrize("name", ["azure_endpoint", "azure_storage_endpoint", "google_base_url"])
def test_an_endpoint_that_takes_tokens_needs_credentials_of_the_connection(name: str) -> None:
    with pytest.raises(AirflowFailException, match=r"would receive tokens of Airflow's processes"):
        options({name: "https://storage.example", "skip_signature": "false"})
    key = "google_service_account_key" if "google" in name else "azure_storage_account_key"
    assert options({name: "https://storage.example", key: "k"})[name] == "https://storage.example"


def test_endpoint_is_of_s3_alone_unless_the_connection_has_credentials_for_azure() -> None:
    url = "https://storage.example"
    assert options({"endpoint": url}) == {"aws_endpoint": url}
    assert options({"endpoint": url, "account_key": "k"}) == {"endpoint": url, "account_key": "k"}
    # The object store prefers the client's secret of its environment to a SAS token.
    assert "endpoint" not in options({"endpoint": url, "sas_token": "x", "client_secret": "x"})
