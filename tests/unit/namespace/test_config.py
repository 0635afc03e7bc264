"""Properties: they are typed, misspelled ones are refused, and secrets aren't shown."""

from collections.abc import Mapping

import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.namespace import Hive2Namespace
from airflow_provider_lancens.namespace.config import COMMON_KEYS, Properties, StorageConfig
from airflow_provider_lancens.namespace.hive.settings import hive_properties

URI = {"uri": "thrift://localhost:9083"}


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("uris", "uri"),
        ("URI", "uri"),
        ("client.pool_size", "client.pool-size"),
        ("client.poolsize", "client.pool-size"),
        ("pool-size", "client.pool-size"),
        ("read_timeout", "client.read-timeout"),
        ("clinet.read-timeout", "client.read-timeout"),
        ("vend-credentials", "vend_credentials"),
        ("Root", "root"),
        ("storage_region", "storage."),
        ("storag.region", "storage."),
        ("Storage.region", "storage."),
    ],
)
def test_a_misspelt_property_is_refused_by_name(key: str, meant: str) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        hive_properties({**URI, key: "1"})
    assert repr(key) in str(refusal.value)
    assert f"did you mean {meant!r}" in str(refusal.value)


@pytest.mark.parametrize("key", ["team", "hive.metastore.kind", "headers.x", "manifest_enabled"])
def test_foreign_properties_are_ignored(key: str) -> None:
    hive_properties({**URI, key: "1"})


def test_a_value_that_is_not_a_string_is_refused_and_not_shown() -> None:
    with pytest.raises(InvalidInputError, match=r"client\.pool-size.*a string, got int") as refusal:
        hive_properties({**URI, "client.pool-size": 8123})  # type: ignore[dict-item]
    assert "8123" not in str(refusal.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("client.pool-size", "0"),
        ("client.pool-size", "many"),
        ("client.pool-size", "1.5"),
        ("client.read-timeout", "0"),
        ("client.read-timeout", "inf"),
        ("client.read-timeout", "nan"),
        ("client.connect-timeout", "soon"),
        ("client.table-filter", "perhaps"),
        ("vend_credentials", "perhaps"),
    ],
)
def test_an_invalid_value_is_refused_by_its_key(key: str, value: str) -> None:
    with pytest.raises(InvalidInputError, match=key) as refusal:
        Hive2Namespace(**URI, **{key: value})
    assert value not in str(refusal.value).replace("of at least 1", "")


@pytest.mark.parametrize(
    "value", ["http://user:hush@host:9000", "http://user:hu/sh@host", "hush", "host:9000", "http://host:no"]
)
@pytest.mark.parametrize("key", ["storage.endpoint", "storage.aws_endpoint_url"])
def test_an_invalid_storage_endpoint_is_refused(key: str, value: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"{key}.*http\(s\)://host") as refusal:
        Hive2Namespace(**URI, **{key: value})
    assert "hu" not in str(refusal.value).replace("http", "")


def test_an_endpoint_with_a_path_is_accepted() -> None:
    Hive2Namespace(**URI, **{"storage.azure_endpoint": "http://127.0.0.1:10000/devstoreaccount1"}).close()


@pytest.mark.parametrize(("text", "value"), [("TRUE", True), ("no", False), ("", True), ("0", False)])
def test_flags_are_read_in_any_case(text: str, value: bool) -> None:
    assert Properties({"vend_credentials": text}, COMMON_KEYS).flag("vend_credentials", True) is value


@pytest.mark.parametrize(
    ("configured", "asked", "handed_out"),
    [
        (None, None, True),
        ("false", None, False),
        ("false", True, True),
        (None, False, False),
    ],
)
def test_credentials_are_returned_as_requested_and_configured(
    configured: str | None, asked: bool | None, handed_out: bool
) -> None:
    values = {"storage.secret": "hush", **({"vend_credentials": configured} if configured else {})}
    config = StorageConfig.parse(Properties(values, COMMON_KEYS))
    assert config.vended(asked) == ({"secret": "hush"} if handed_out else None)


@pytest.mark.parametrize("more", [{}, {"client.read-timeout": "7"}, {"vend_credentials": "false"}])
def test_a_namespaces_repr_and_id_show_no_secret(more: Mapping[str, str]) -> None:
    secret = {"storage.aws_secret_access_key": "hush"}
    namespace = Hive2Namespace(**URI, root="/lake", **secret, **more)
    for text in (namespace.namespace_id(), repr(namespace), str(vars(namespace)["_config"])):
        assert "hush" not in text


def test_a_namespace_id_depends_only_on_server_and_root() -> None:
    same = Hive2Namespace(**URI, root="/lake").namespace_id()
    assert Hive2Namespace(**URI, root="/lake", **{"storage.k": "v"}).namespace_id() == same
    assert Hive2Namespace(uri="localhost", root="/lake/").namespace_id() == same
    assert Hive2Namespace(uri="thrift://localhost:9084", root="/lake").namespace_id() != same
    assert Hive2Namespace(**URI, root="/other").namespace_id() != same
