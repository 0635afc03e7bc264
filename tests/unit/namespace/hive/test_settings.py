"""The addresses of a metastore."""

import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.namespace.hive.settings import Endpoint, parse_uris


@pytest.mark.parametrize(
    ("text", "endpoints"),
    [
        ("thrift://a:9000", (Endpoint("a", 9000),)),
        ("thrift://a", (Endpoint("a", 9083),)),
        ("a:9000", (Endpoint("a", 9000),)),
        ("thrift://a:1, thrift://b:2 ,", (Endpoint("a", 1), Endpoint("b", 2))),
        ("thrift://[::1]:9000", (Endpoint("::1", 9000),)),
    ],
)
def test_addresses_are_read_in_their_order(text: str, endpoints: tuple[Endpoint, ...]) -> None:
    assert parse_uris(text) == endpoints


def test_an_address_is_printed_as_it_is_read() -> None:
    assert parse_uris(str(Endpoint("::1", 9000))) == (Endpoint("::1", 9000),)


@pytest.mark.parametrize(
    "text",
    [None, "", " , ", "http://a:1", "thrift://:1", "thrift://a:x", "thrift://a:99999", "thrift://a/db"],
)
def test_an_invalid_address_is_refused(text: str | None) -> None:
    with pytest.raises(InvalidInputError, match="'uri'"):
        parse_uris(text)


def test_a_password_in_an_address_is_refused_and_not_shown() -> None:
    with pytest.raises(InvalidInputError, match="user or password") as refusal:
        parse_uris("thrift://ann:hush@metastore:9083")
    assert "hush" not in str(refusal.value)


@pytest.mark.parametrize("uri", ["https://metastore/hms", "http://metastore:9083"])
def test_thrift_over_http_is_said_not_to_be_supported(uri: str) -> None:
    with pytest.raises(InvalidInputError, match="Thrift over HTTP is not supported"):
        parse_uris(uri)
