"""The hook of connections of type ``lance``: their fields become properties, and messages name the fields."""

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_lancens.hooks import LanceCatalogHook, LanceHook
from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.namespace import CatalogNamespace

Connect = Callable[..., str]
SECRET = "hush-hush"


def test_a_folder_needs_its_root_alone(connect: Connect) -> None:
    hook = LanceHook(connect(conn_type="lance", extra={"root": "/lake"}))

    assert type(hook) is LanceCatalogHook
    assert hook.namespace_properties() == {"impl": "dir", "root": "/lake"}
    assert isinstance(hook.get_conn(), CatalogNamespace)
    assert hook.description == "Lance (folder, REST or another catalog) at impl=dir, root=/lake"


async def test_the_hook_is_found_from_an_event_loop_too(connect: Connect) -> None:
    hook = await LanceHook.afor_connection(connect(conn_type="lance", extra={"root": "/lake"}))
    assert hook.namespace_properties()["root"] == "/lake"


@pytest.mark.parametrize(
    ("host", "port", "uri"),
    [
        ("https://catalog", 8443, "https://catalog:8443"),
        ("https://catalog/lance", 8443, "https://catalog:8443/lance"),
        ("https://[::1]", 8443, "https://[::1]:8443"),
        ("https://catalog:8443", 9000, "https://catalog:8443"),
        ("https://catalog", None, "https://catalog"),
    ],
)
def test_the_port_of_a_connection_is_that_of_its_uri(
    connect: Connect, host: str, port: int | None, uri: str
) -> None:
    hook = LanceHook(connect(conn_type="lance", host=host, port=port, extra={"impl": "rest"}))
    assert hook.endpoint_properties() == {"impl": "rest", "uri": uri}


@pytest.mark.parametrize("as_text", [True, False])
def test_the_fields_become_properties(connect: Connect, as_text: bool) -> None:
    headers: Any = '{"headers.x-tenant": "sales"}' if as_text else {"headers.x-tenant": "sales"}
    secret: Any = f'{{"headers.x-key": "{SECRET}"}}' if as_text else {"headers.x-key": SECRET}
    extra = {"impl": "rest", "properties": headers, "secret_properties": secret, "client.timeout": 5}
    hook = LanceHook(connect(conn_type="lance", host="https://catalog", password="t0ken", extra=extra))

    assert hook.namespace_properties() == {
        "impl": "rest",
        "uri": "https://catalog",
        "token": "t0ken",
        "client.timeout": "5",
        "property.headers.x-tenant": "sales",
        "secret.headers.x-key": SECRET,
    }
    assert SECRET not in f"{hook.description} {hook!r} {hook.get_conn()!r}"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("headers", "is not a JSON object"),
        ('["a"]', "is not a JSON object"),
        (["a"], "is not a JSON object"),
        (f'{{"a": "{SECRET}"', "is not a JSON object"),
        ('{"a": 1}', "'a' is a int, not text"),
        ({"a": {"b": SECRET}}, "'a' is a dict, not text"),
        ({"a": None}, "'a' is a NoneType, not text"),
        ({"storage.azure_use_azure_cli": "true"}, "is a storage option; set it as an extra of its own"),
        ({"dynamic_context_provider.impl": "subprocess.Popen"}, "names a class that would run"),
    ],
)
@pytest.mark.parametrize(
    ("field", "label"), [("properties", "Properties"), ("secret_properties", "Secret properties")]
)
def test_properties_are_an_object_of_text(
    connect: Connect, given: Any, said: str, field: str, label: str
) -> None:
    hook = LanceHook(connect(conn_type="lance", extra={"root": "/lake", field: given}))

    with pytest.raises(AirflowFailException, match=rf"field {label} \(extra '{field}'\): ") as refused:
        hook.get_conn()

    assert said in str(refused.value)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "field Root (extra 'root') is missing"),
        ({"extra": {"root": ""}}, "field Root (extra 'root') is missing"),
        ({"extra": {"root": "lake"}}, "field Root (extra 'root'): is a relative path"),
        ({"extra": {"root": "/lake"}, "password": SECRET}, "field Token has no effect with impl=dir"),
        ({"extra": {"impl": "rest"}}, "field Service URI is missing"),
        ({"host": "ftp://catalog", "extra": {"impl": "rest"}}, "field Service URI: expected http(s)"),
        ({"extra": {"impl": SECRET}}, "field Implementation (extra 'impl'): is invalid; expected dir, rest"),
        ({"host": "catalog", "extra": {"impl": "rest"}}, "field Service URI: is not a URI"),
        (
            {"host": "http://h", "password": f"{SECRET}\nx", "extra": {"impl": "rest"}},
            "field Token: contains a line end",
        ),
        (
            {"host": "http://h", "extra": {"impl": "rest", "properties": {"headers.a": "b\nc"}}},
            "'headers.a' in field Properties (extra 'properties'): contains a line end",
        ),
        ({"extra": {"impl": "no.such.Class"}}, "field Implementation (extra 'impl'): there is no module"),
        ({"extra": {"root": "/lake", "managed_by": "impl"}}, "extra 'managed_by': is unknown"),
    ],
)
def test_messages_name_the_fields_of_the_form(connect: Connect, fields: dict[str, Any], message: str) -> None:
    worked, said = LanceHook(connect(conn_type="lance", **fields)).test_connection()

    assert not worked
    assert message in said
    assert "property '" not in said
    assert SECRET not in said
