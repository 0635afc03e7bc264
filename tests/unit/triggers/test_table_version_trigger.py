"""Serialization of a waiting trigger."""

import importlib
import json
from collections.abc import Callable

from airflow_provider_lancens.triggers.table_version_trigger import LanceTableVersionTrigger


def test_a_trigger_is_restored_from_its_serialized_form() -> None:
    trigger = LanceTableVersionTrigger(
        table="sales$orders",
        lance_conn_id="lake",
        after_version=5,
        at_location="/lake",
        min_wait=60,
        poll_interval=10,
    )
    path, arguments = trigger.serialize()
    module, _, name = path.rpartition(".")
    again = getattr(importlib.import_module(module), name)(**json.loads(json.dumps(arguments)))
    assert again.serialize() == (path, arguments)


def test_only_plain_values_without_secrets_are_serialized(connect: Callable[..., str]) -> None:
    conn_id = connect(host="metastore", extra={"storage.secret_access_key": "hush-hush"})
    trigger = LanceTableVersionTrigger(table="sales$orders", lance_conn_id=conn_id)
    _, arguments = trigger.serialize()
    assert all(value is None or isinstance(value, str | int | float) for value in arguments.values())
    assert "hush-hush" not in f"{arguments} {trigger!r}"
