"""A Glue connection as a namespace's properties, in any notation."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from airflow_provider_lancens.hooks.airflow_errors import AirflowException, AirflowFailException
from airflow_provider_lancens.hooks.glue import LanceGlueHook
from airflow_provider_lancens.hooks.lance_hook import LanceHook

Connect = Callable[..., str]
OWN = {"login": "AKIDEXAMPLE", "password": "hush-hush"}
REGION = {"region": "eu-west-1", "root": "s3://bucket/lake"}


def glue(connect: Connect, **fields: Any) -> LanceHook:
    return LanceHook.for_connection(connect("glue", "lance_glue", **fields))


def test_the_hook_is_found_by_the_connections_type(connect: Connect) -> None:
    assert type(glue(connect)) is LanceGlueHook
    assert LanceGlueHook().lance_conn_id == "lance_default"


def test_the_connections_own_keys_are_used(connect: Connect) -> None:
    hook = glue(connect, **OWN, extra={**REGION, "session_token": "a-token"})
    assert hook.namespace_properties() == {
        **REGION,
        "access_key_id": "AKIDEXAMPLE",
        "secret_access_key": "hush-hush",
        "session_token": "a-token",
    }
    assert "hush-hush" not in f"{hook.description} {hook!r} {hook.get_conn()!r}"


def test_without_keys_the_default_credential_chain_is_used(connect: Connect) -> None:
    assert glue(connect, extra=REGION).namespace_properties() == REGION


@pytest.mark.parametrize(
    "written",
    [
        "lance-glue://AKIDEXAMPLE:hush-hush@/?region=eu-west-1&root=s3%3A%2F%2Fbucket%2Flake",
        f"lance-glue://AKIDEXAMPLE:hush-hush@/?__extra__={quote(json.dumps(REGION))}",
        json.dumps({"conn_type": "lance_glue", **OWN, "extra": REGION}),
    ],
)
def test_uris_and_json_are_read(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_GLUE", written)
    assert LanceHook.for_connection("glue").namespace_properties() == {
        **REGION,
        "access_key_id": "AKIDEXAMPLE",
        "secret_access_key": "hush-hush",
    }


def test_an_aws_connection_sets_keys_region_and_endpoint_of_the_storage_too(connect: Connect) -> None:
    endpoints = {
        "service_config": {"s3": {"endpoint_url": "http://s3"}, "glue": {"endpoint_url": "http://glue"}}
    }
    connect("aws", "aws", **OWN, extra={"region_name": "eu-west-3", **endpoints})
    properties = glue(connect, extra={"aws_conn_id": "aws"}).namespace_properties()
    assert properties == {
        "require_root": "true",
        "region": "eu-west-3",
        "endpoint": "http://glue",
        "access_key_id": "AKIDEXAMPLE",
        "secret_access_key": "hush-hush",
        "storage.region": "eu-west-3",
        "storage.endpoint": "http://s3",
        "storage.access_key_id": "AKIDEXAMPLE",
        "storage.secret_access_key": "hush-hush",
    }


def test_the_connections_own_storage_keys_are_not_mixed_with_the_aws_connections(connect: Connect) -> None:
    connect("aws", "aws", **OWN, extra={"region_name": "eu-west-3"})
    own = {"storage.access_key_id": "OTHER", "storage.secret_access_key": "other"}
    properties = glue(connect, extra={"aws_conn_id": "aws", **own}).namespace_properties()
    assert {key: value for key, value in properties.items() if key.startswith("storage.")} == own


def test_keys_in_both_connections_are_refused(connect: Connect) -> None:
    connect("aws", "aws", extra={"region_name": "eu-west-3"})
    with pytest.raises(
        AirflowFailException,
        match=r"'glue': field Access key ID and field AWS connection \(extra 'aws_conn_id'\)",
    ):
        glue(connect, **OWN, extra={"aws_conn_id": "aws"}).namespace_properties()


def test_a_missing_aws_connection_is_reported(connect: Connect) -> None:
    with pytest.raises(AirflowException, match="no_such_connection"):
        glue(connect, extra={"aws_conn_id": "no_such_connection"}).namespace_properties()
