"""The Glue hook with the double: with its own keys, and with an assumed role whose credentials expire."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from lance_namespace import DeclareTableRequest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.hooks import metrics
from airflow_provider_lancens.hooks.glue import LanceGlueHook
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.spark.observed import Failed, notify
from tests.servers.glue_double import REGION, GlueDouble
from tests.servers.glue_faults import DENIED

Connect = Callable[..., str]
ROLE = "arn:aws:iam::123456789012:role/reader"


@pytest.fixture
def own_keys(glue: GlueDouble, connect: Connect, tmp_path: Path) -> LanceHook:
    """A hook whose connection contains all settings."""
    given = glue.properties
    extra = {"endpoint": glue.endpoint, "region": REGION, "root": str(tmp_path)}
    login, password = given["access_key_id"], given["secret_access_key"]
    return LanceHook.for_connection(
        connect("glue", "lance_glue", login=login, password=password, extra=extra)
    )


@pytest.fixture
def assumed_role(glue: GlueDouble, connect: Connect, tmp_path: Path) -> str:
    """The id of a connection that refers to an `aws` connection with a role."""
    services = {name: {"endpoint_url": glue.endpoint} for name in ("glue", "s3", "sts")}
    extra = {"region_name": REGION, "role_arn": ROLE, "service_config": services}
    connect("aws", "aws", login="AKIDEXAMPLE", password="a-secret-of-the-tests", extra=extra)
    return connect("glue", "lance_glue", extra={"aws_conn_id": "aws", "root": str(tmp_path)})


def test_the_connection_test_reports_what_it_reached(own_keys: LanceHook, database: str) -> None:
    own_keys.get_conn().create_namespace({"id": [database]})
    reached, message = own_keys.test_connection()
    assert reached, message
    assert "AWS Glue Data Catalog, catalog the account's default, compare-and-set not probed" in message
    assert f"region={REGION}" in message
    assert "a-secret-of-the-tests" not in message


def test_without_a_root_a_table_of_a_database_without_a_location_is_refused(
    glue: GlueDouble, connect: Connect, own_keys: LanceHook, database: str, tmp_path: Path
) -> None:
    glue.client("glue").create_database(DatabaseInput={"Name": database})
    given = glue.properties
    extra = {"endpoint": glue.endpoint, "region": REGION}
    login, password = given["access_key_id"], given["secret_access_key"]
    connection = connect("rootless", "lance_glue", login=login, password=password, extra=extra)
    namespace = LanceHook.for_connection(connection).get_conn()

    with pytest.raises(InvalidInputError, match="there is no root below which it would be created"):
        namespace.declare_table(DeclareTableRequest(id=[database, "orders"]))
    location = str(tmp_path / "orders.lance")
    declared = namespace.declare_table(DeclareTableRequest(id=[database, "orders"], location=location))
    assert declared.location == location


def test_the_connection_test_reports_why_it_failed(own_keys: LanceHook, glue: GlueDouble) -> None:
    with glue.faults.on("GetDatabases", DENIED):
        reached, message = own_keys.test_connection()
    assert not reached
    assert "PERMISSION_DENIED" in message
    assert "grant it to these credentials" in message


def test_an_assumed_role_signs_the_requests(assumed_role: str, glue: GlueDouble) -> None:
    reached, message = LanceHook.for_connection(assumed_role).test_connection()
    assert reached, message
    headers = glue.requests[-1].headers
    assert "AKIDEXAMPLE" not in headers["AUTHORIZATION"]
    assert headers["X_AMZ_SECURITY_TOKEN"]


async def test_an_assumed_role_is_available_before_a_trigger_polls(
    assumed_role: str, glue: GlueDouble
) -> None:
    hook = await LanceHook.afor_connection(assumed_role)
    assert hook.namespace_properties()["session_token"]


def test_expired_credentials_are_renewed_and_the_namespace_is_reopened(
    assumed_role: str, glue: GlueDouble
) -> None:
    hook = LanceHook.for_connection(assumed_role)
    assert isinstance(hook, LanceGlueHook)
    first = hook.get_conn()
    first.list_namespaces({"id": []})
    token = glue.requests[-1].headers["X_AMZ_SECURITY_TOKEN"]
    assert hook.get_conn() is first

    # STS gives no session shorter than 15 minutes, so this one is marked as nearly expired.
    hook._session.get_credentials()._expiry_time = datetime.now(UTC) + timedelta(minutes=1)

    second = hook.get_conn()
    assert second is not first
    second.list_namespaces({"id": []})
    assert glue.requests[-1].headers["X_AMZ_SECURITY_TOKEN"] != token


def test_a_namespace_whose_credentials_are_renewed_reports_metrics(
    assumed_role: str, glue: GlueDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    observed: list[str] = []
    monkeypatch.setattr(metrics, "is_on", lambda: True)
    monkeypatch.setattr(metrics, "observer", lambda conn_id: lambda event: observed.append(conn_id))
    hook = LanceHook.for_connection(assumed_role)
    assert isinstance(hook, LanceGlueHook)

    notify(hook.get_conn(), Failed("db$t", "append"))
    hook._session.get_credentials()._expiry_time = datetime.now(UTC) + timedelta(minutes=1)
    notify(hook.get_conn(), Failed("db$t", "append"))

    assert observed == [assumed_role, assumed_role]


def test_a_role_that_cannot_be_assumed_is_reported_with_the_connection(
    assumed_role: str, connect: Connect, free_ports: list[int]
) -> None:
    nowhere = {"sts": {"endpoint_url": f"http://127.0.0.1:{free_ports[0]}"}}
    extra: dict[str, Any] = {"region_name": REGION, "role_arn": ROLE, "service_config": nowhere}
    connect("aws", "aws", login="A", password="hush-hush", extra=extra)
    reached, message = LanceHook.for_connection(assumed_role).test_connection()
    assert not reached
    assert "getting AWS credentials for connection 'glue'" in message
    assert "aws connection 'aws'" in message
    assert "hush-hush" not in message
