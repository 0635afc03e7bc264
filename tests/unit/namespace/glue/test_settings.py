"""What a Glue namespace is told by its properties, and what it gives away of them."""

import pickle
import subprocess
import sys

import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.namespace import GlueNamespace
from airflow_provider_lancens.namespace.glue.settings import GlueSettings, glue_properties

KEYS = {"access_key_id": "AKIDEXAMPLE", "secret_access_key": "hush", "session_token": "quiet"}


def settings(**properties: str) -> GlueSettings:
    return GlueSettings.parse(glue_properties(properties))


@pytest.mark.parametrize("given", [["access_key_id"], ["secret_access_key"], ["session_token"]])
def test_half_a_pair_of_keys_is_refused(given: list[str]) -> None:
    with pytest.raises(InvalidInputError, match="go together"):
        GlueNamespace(**{name: KEYS[name] for name in given})


@pytest.mark.parametrize("name", KEYS)
def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(name: str) -> None:
    with pytest.raises(InvalidInputError, match=name) as refusal:
        GlueNamespace(**{**KEYS, name: "hush\nhush"})
    assert "hush" not in str(refusal.value)


def test_no_keys_mean_the_default_chain() -> None:
    assert settings(access_key_id=" ").credentials is None


@pytest.mark.parametrize(
    "endpoint",
    ["localhost:5000", "ftp://host", "http://", "http://host:x", "http://host:99999", "http://host?a=b"],
)
def test_what_is_no_endpoint_is_refused(endpoint: str) -> None:
    with pytest.raises(InvalidInputError, match="'endpoint'"):
        settings(endpoint=endpoint)


def test_a_password_in_an_endpoint_is_refused_and_not_shown() -> None:
    with pytest.raises(InvalidInputError, match="user or password") as refusal:
        settings(endpoint="https://ann:hush@glue")
    assert "hush" not in str(refusal.value)


@pytest.mark.parametrize("misspelt", ["access_key", "catalogid", "end_point", "client.max_attempts"])
def test_a_misspelt_property_is_refused(misspelt: str) -> None:
    with pytest.raises(InvalidInputError, match="did you mean"):
        GlueNamespace(**{misspelt: "1"})


@pytest.mark.parametrize("name", ["client.connect-timeout", "client.read-timeout", "client.max-attempts"])
@pytest.mark.parametrize("value", ["0", "-1", "soon"])
def test_a_timeout_must_be_one(name: str, value: str) -> None:
    with pytest.raises(InvalidInputError, match=name):
        GlueNamespace(**{name: value})


def test_nothing_shows_a_secret(tmp_path: object) -> None:
    namespace = GlueNamespace(**KEYS, **{"storage.aws_secret_access_key": "deep"}, region="eu-west-1")
    again = pickle.loads(pickle.dumps(namespace))
    shown = repr(namespace) + namespace.namespace_id() + repr(again) + repr(settings(**KEYS))
    for secret in (*KEYS.values(), "deep"):
        assert secret not in shown


def test_an_id_is_the_same_for_the_same_properties_and_another_for_another_catalog() -> None:
    places = [
        {},
        {"region": "eu-west-1"},
        {"catalog_id": "123456789012"},
        {"endpoint": "http://localhost:5000"},
        {"access_key_id": "A", "secret_access_key": "x"},
        {"access_key_id": "B", "secret_access_key": "x"},
    ]
    ids = [GlueNamespace(root="/lake", **place).namespace_id() for place in places]
    assert len(set(ids)) == len(ids)
    assert ids == [GlueNamespace(root="/lake", **place).namespace_id() for place in places]


def test_who_asks_is_no_part_of_a_catalogs_id_where_it_is_named() -> None:
    named = {"catalog_id": "1", "root": "/lake"}
    assert GlueNamespace(**named, **KEYS).namespace_id() == GlueNamespace(**named).namespace_id()


def test_the_sdk_is_loaded_by_the_first_call_only() -> None:
    script = (
        "import sys; from airflow_provider_lancens.namespace import GlueNamespace; "
        "GlueNamespace(region='eu-west-1'); print('boto3' in sys.modules or 'botocore' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
