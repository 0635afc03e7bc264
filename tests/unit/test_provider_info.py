"""The provider metadata is complete, and conforms to Airflow's schemas."""

import ast
import importlib
import json
from pathlib import Path
from typing import Any

import airflow
import jsonschema
import pytest

import airflow_provider_lancens
from airflow_provider_lancens import provider_info
from airflow_provider_lancens.namespace.config import VEND_CREDENTIALS
from airflow_provider_lancens.namespace.glue.settings import ACCESS_KEY_ID, SECRET_ACCESS_KEY
from airflow_provider_lancens.namespace.glue.settings import KNOWN_KEYS as GLUE_KEYS
from airflow_provider_lancens.namespace.hive.authentication import PASSWORD, USER
from airflow_provider_lancens.namespace.hive.settings import KNOWN_KEYS as HIVE_KEYS
from airflow_provider_lancens.namespace.hive.settings import URI
from airflow_provider_lancens.namespace.property_keys import STORAGE_PREFIX

CONNECTION_TYPES = provider_info.get_provider_info()["connection-types"]


@pytest.mark.parametrize("schema", ["provider_info.schema.json", "provider.yaml.schema.json"])
def test_the_metadata_conforms_to_both_of_airflows_schemas(schema: str) -> None:
    document = json.loads((Path(airflow.__file__).parent / schema).read_text())
    jsonschema.validate(provider_info.get_provider_info(), document)


def test_the_metadata_has_the_packages_version() -> None:
    assert provider_info.get_provider_info()["versions"][0] == airflow_provider_lancens.__version__


def test_reading_the_metadata_imports_only_typing() -> None:
    tree = ast.parse(Path(provider_info.__file__).read_text())
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert modules == {"__future__", "typing"}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import)]


@pytest.mark.parametrize("entry", CONNECTION_TYPES, ids=lambda entry: entry["connection-type"])
def test_each_connection_type_agrees_with_its_hook(entry: dict[str, Any]) -> None:
    module, _, name = entry["hook-class-name"].rpartition(".")
    hook_class = getattr(importlib.import_module(module), name)
    assert hook_class.conn_type == entry["connection-type"]
    assert hook_class.hook_name == entry["hook-name"]
    assert hook_class.default_conn_name == "lance_default"


@pytest.mark.parametrize(
    ("conn_type", "known", "elsewhere", "reference"),
    [
        ("lance_hive2", HIVE_KEYS, {URI, USER, PASSWORD}, "hive_metastore_conn_id"),
        ("lance_hive3", HIVE_KEYS, {URI, USER, PASSWORD}, "hive_metastore_conn_id"),
        ("lance_glue", GLUE_KEYS, {ACCESS_KEY_ID, SECRET_ACCESS_KEY}, "aws_conn_id"),
    ],
)
def test_the_form_has_every_property_set_by_a_connection(
    conn_type: str, known: set[str], elsewhere: set[str], reference: str
) -> None:
    (entry,) = (entry for entry in CONNECTION_TYPES if entry["connection-type"] == conn_type)
    offered = {key for key in entry["conn-fields"] if not key.startswith(STORAGE_PREFIX)}
    # Airflow's own fields become `elsewhere`; credentials are passed to tasks that use this connection. Its
    # hook requires a root. Only Airflow knows assets.
    assert offered == known - elsewhere - {VEND_CREDENTIALS, "require_root"} | {reference, "asset_authority"}


@pytest.mark.parametrize("entry", CONNECTION_TYPES, ids=lambda entry: entry["connection-type"])
def test_fields_that_hold_secrets_are_masked(entry: dict[str, Any]) -> None:
    named = ("secret", "token")
    fields = entry["conn-fields"].items()
    secret = {key: field for key, field in fields if any(name in key for name in named)}
    assert secret
    assert all(field["schema"]["format"] == "password" for field in secret.values())
