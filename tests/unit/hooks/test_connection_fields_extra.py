"""A connection's extra as a namespace's properties; invalid values are refused by name."""

import json
from typing import Any

import pytest
from airflow.sdk import Connection

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.connection_fields import extra_properties


def properties(extra: Any) -> dict[str, str]:
    text = extra if isinstance(extra, str) or extra is None else json.dumps(extra)
    return extra_properties(Connection(conn_id="lake", conn_type="lance_hive2", extra=text), "lance_hive2")


def test_every_value_is_converted_to_a_string() -> None:
    extra = {"root": "s3://bucket/lake", "client.pool-size": 5, "client.read-timeout": 2.5}
    assert properties({**extra, "storage.allow_http": True}) == {
        "root": "s3://bucket/lake",
        "client.pool-size": "5",
        "client.read-timeout": "2.5",
        "storage.allow_http": "true",
    }


@pytest.mark.parametrize("extra", [None, "", "{}", {"root": None, "client.pool-size": ""}])
def test_empty_fields_take_the_namespaces_default(extra: Any) -> None:
    assert properties(extra) == {}


@pytest.mark.parametrize("root", ["lake", "./lake", "../lake", "~/lake"])
def test_a_relative_root_is_refused(root: str) -> None:
    with pytest.raises(
        AirflowFailException, match=r"connection 'lake', field Root \(extra 'root'\): .*relative.*absolute"
    ):
        properties({"root": root})


def test_an_unknown_extra_is_refused_with_what_is_allowed() -> None:
    with pytest.raises(AirflowFailException, match=r"extra 'pool_size': is unknown.*client\.pool-size"):
        properties({"pool_size": 5})


@pytest.mark.parametrize("value", [["a"], {"a": 1}])
def test_a_nested_extra_is_refused(value: Any) -> None:
    with pytest.raises(
        AirflowFailException, match=r"field Storage region \(extra 'storage\.region'\): is a (list|dict)"
    ):
        properties({"storage.region": value})


@pytest.mark.parametrize("extra", ['{"storage.secret_access_key": "hush"', '["hush"]', '"hush"'])
def test_an_extra_that_is_not_a_json_object_is_refused_and_not_shown(extra: str) -> None:
    with pytest.raises(AirflowFailException, match="'lake', field Extra: is not a JSON object") as refusal:
        properties(extra)
    assert "hush" not in str(refusal.value)
