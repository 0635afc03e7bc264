"""A connection's form, read back from the provider's card so that it is described once."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from airflow_provider_lancens.provider_info import get_provider_info

HookClass = TypeVar("HookClass", bound=type[Any])


def of_connection_type(conn_type: str) -> Callable[[HookClass], HookClass]:
    """Give a hook class what the card says of its connection type: names, default id, and form."""
    card = connection_types()[conn_type]

    def describe(hook_class: HookClass) -> HookClass:
        hook_class.conn_type = conn_type
        hook_class.hook_name = card["hook-name"]
        hook_class.default_conn_name = f"{conn_type}_default"
        # Airflow 3.1 asks these of the class itself, not of a parent; later ones read the card.
        hook_class.get_ui_field_behaviour = staticmethod(lambda: field_behaviour(conn_type))
        hook_class.get_connection_form_widgets = staticmethod(lambda: form_widgets(conn_type))
        return hook_class

    return describe


def connection_types() -> dict[str, Mapping[str, Any]]:
    """The connection types of this provider, by name, as its card describes them."""
    return {entry["connection-type"]: entry for entry in get_provider_info()["connection-types"]}


def extra_fields(conn_type: str) -> Mapping[str, Mapping[str, Any]]:
    """The fields of a connection type that Airflow keeps in the connection's extra, by key."""
    fields: Mapping[str, Mapping[str, Any]] = connection_types()[conn_type]["conn-fields"]
    return fields


def field_behaviour(conn_type: str) -> dict[str, Any]:
    """What Airflow 3.1 asks of `get_ui_field_behaviour`: the card's answer in its older spelling."""
    behaviour = connection_types()[conn_type]["ui-field-behaviour"]
    return {key.replace("-", "_"): value for key, value in behaviour.items()}


def form_widgets(conn_type: str) -> dict[str, Any]:
    """What Airflow 3.1 asks of `get_connection_form_widgets`: a WTForms field for each extra field."""
    return {key: _widget(field) for key, field in extra_fields(conn_type).items()}


def _widget(field: Mapping[str, Any]) -> Any:
    # Airflow 3.1 has WTForms or puts its own stand-in there while it asks: no dependency of ours.
    wtforms = importlib.import_module("wtforms")
    schema = field["schema"]
    name = {"integer": "IntegerField", "boolean": "BooleanField"}.get(schema["type"][0], "StringField")
    if schema.get("format") == "password":
        name = "PasswordField"
    allowed = [_one_of(schema["enum"])] if "enum" in schema else []
    return getattr(wtforms, name)(field["label"], validators=allowed, description=field["description"])


def _one_of(choices: Sequence[str]) -> Any:
    # Airflow 3.1 makes a dropdown of this.
    return importlib.import_module("wtforms.validators").any_of(choices)
