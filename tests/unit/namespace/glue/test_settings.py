"""Properties of a Glue namespace, and what its repr and id show of them."""

import pickle
import subprocess
import sys

import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.namespace import GlueNamespace
from airflow_provider_lancens.namespace.glue.settings import GlueSettings, glue_properties

KEYS = {"access_key_id": "AKIDEXAMPLE", "secret_access_key": "hush", "session_token": "quiet-glue-secret"}


def settings(**properties: str) -> GlueSettings:
    return GlueSettings.parse(glue_properties(properties))


@pytest.mark.parametrize("given", [["access_key_id"], ["secret_access_key"], ["session_token"]])
def test_half_a_pair_of_keys_is_refused(given: list[str]) -> None:
    with pytest.raises(InvalidInputError, match="must be set together"):
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
def test_an_invalid_endpoint_is_refused(endpoint: str) -> None:
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
def test_an_invalid_timeout_is_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidInputError, match=name):
        GlueNamespace(**{name: value})


def test_nothing_shows_a_secret(tmp_path: object) -> None:
    namespace = GlueNamespace(**KEYS, **{"storage.aws_secret_access_key": "deep"}, region="eu-west-1")
    again = pickle.loads(pickle.dumps(namespace))
    shown = repr(namespace) + namespace.namespace_id() + repr(again) + repr(settings(**KEYS))
    for secret in (*KEYS.values(), "deep"):
        assert secret not in shown


def test_a_namespace_id_depends_on_the_properties_and_the_catalog() -> None:
    catalogs = [
        {},
        {"region": "eu-west-1"},
        {"catalog_id": "123456789012"},
        {"endpoint": "http://localhost:5000"},
        {"access_key_id": "A", "secret_access_key": "x"},
        {"access_key_id": "B", "secret_access_key": "x"},
    ]
    ids = [GlueNamespace(root="/lake", **one).namespace_id() for one in catalogs]
    assert len(set(ids)) == len(ids)
    assert ids == [GlueNamespace(root="/lake", **one).namespace_id() for one in catalogs]


def test_credentials_are_not_part_of_a_namespace_id_with_an_explicit_catalog() -> None:
    named = {"catalog_id": "1", "root": "/lake"}
    assert GlueNamespace(**named, **KEYS).namespace_id() == GlueNamespace(**named).namespace_id()


def test_the_sdk_is_loaded_by_the_first_call_only() -> None:
    script = (
        "import sys; from airflow_provider_lancens.namespace import GlueNamespace; "
        "GlueNamespace(region='eu-west-1'); print('boto3' in sys.modules or 'botocore' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
