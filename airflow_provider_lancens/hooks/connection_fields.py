"""The fields of a connection: form and names, by the provider metadata, and their values in the extra."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.identifiers import ALLOWED_AUTHORITY, is_asset_authority
from airflow_provider_lancens.provider_info import get_provider_info

if TYPE_CHECKING:
    from airflow.sdk import Connection

HookClass = TypeVar("HookClass", bound=type[Any])

_STANDARD_FIELDS = {
    "uri": "host",
    "client.user": "login",
    "client.password": "password",
    "access_key_id": "login",
    "secret_access_key": "password",
    "token": "password",
}
"""The properties that Airflow's standard fields of a connection set."""
_FIELD_OF = {"storage.aws_endpoint": "storage.endpoint"}
"""See `storage_options.endpoint_of_s3_alone`."""
_FIELDS_OF_PROPERTIES = {"property.": "properties", "secret.": "secret_properties"}
"""The fields with several properties of a catalog's implementation, by their prefix."""
_PROPERTY = re.compile(r"property '([^']+)'")


def hook_of_connection_type(conn_type: str) -> Callable[[HookClass], HookClass]:
    """Set a hook class's names and form from the provider metadata."""
    metadata = connection_types()[conn_type]

    def describe(hook_class: HookClass) -> HookClass:
        hook_class.conn_type = conn_type
        hook_class.hook_name = metadata["hook-name"]
        # Airflow 3.1 looks these up on the class itself, not on a parent; later ones read the metadata.
        hook_class.get_ui_field_behaviour = staticmethod(lambda: field_behaviour(conn_type))
        hook_class.get_connection_form_widgets = staticmethod(lambda: form_widgets(conn_type))
        return hook_class

    return describe


def connection_types() -> dict[str, Mapping[str, Any]]:
    """Return the provider metadata of this provider's connection types, by name."""
    return {entry["connection-type"]: entry for entry in get_provider_info()["connection-types"]}


def extra_fields(conn_type: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the fields of a connection type that Airflow keeps in the connection's extra, by key."""
    fields: Mapping[str, Mapping[str, Any]] = connection_types()[conn_type]["conn-fields"]
    return fields


def field_name(conn_type: str, key: str) -> str:
    """Return how a connection's form names what sets a property: ``field Root (extra 'root')``.

    Args:
        conn_type: the connection type.
        key: the property's key; an extra has the same key, unless a standard field of the form sets it.
    """
    if conn_type not in connection_types():
        return f"extra {key!r}"
    if key in _STANDARD_FIELDS:
        standard = _STANDARD_FIELDS[key]
        labels = connection_types()[conn_type]["ui-field-behaviour"]["relabeling"]
        return f"field {labels.get(standard, standard.capitalize())}"
    key = _FIELD_OF.get(key, key)
    for prefix, field in _FIELDS_OF_PROPERTIES.items():
        if key.startswith(prefix):
            return f"{key.removeprefix(prefix)!r} in {field_name(conn_type, field)}"
    fields = extra_fields(conn_type)
    return f"field {fields[key]['label']} (extra {key!r})" if key in fields else f"extra {key!r}"


def in_form_names(conn_type: str, message: str) -> str:
    """Return a namespace's message with the names of the form's fields instead of properties."""
    return _PROPERTY.sub(lambda found: field_name(conn_type, found[1]), message)


def field_behaviour(conn_type: str) -> dict[str, Any]:
    """Return the result of `get_ui_field_behaviour` in Airflow 3.1: the metadata in its older spelling."""
    behaviour = connection_types()[conn_type]["ui-field-behaviour"]
    return {key.replace("-", "_"): value for key, value in behaviour.items()}


def form_widgets(conn_type: str) -> dict[str, Any]:
    """Return the result of `get_connection_form_widgets` in Airflow 3.1: WTForms fields by extra field."""
    return {key: _widget(field) for key, field in extra_fields(conn_type).items()}


def _widget(field: Mapping[str, Any]) -> Any:
    # Airflow 3.1 has WTForms, or mocks it during this call: it isn't a dependency of this package.
    wtforms = importlib.import_module("wtforms")
    schema = field["schema"]
    name = {"integer": "IntegerField", "boolean": "BooleanField"}.get(schema["type"][0], "StringField")
    if schema.get("format") == "password":
        name = "PasswordField"
    allowed = [_any_of(schema["enum"])] if "enum" in schema else []
    return getattr(wtforms, name)(field["label"], validators=allowed, description=field["description"])


def _any_of(choices: Sequence[str]) -> Any:
    # Airflow 3.1 renders this as a dropdown.
    return importlib.import_module("wtforms.validators").any_of(choices)


ASSET_AUTHORITY = "asset_authority"
"""The field with the authority in the URIs of a connection's assets."""


def is_extra_field(conn_type: str, name: str) -> bool:
    """Return whether the extra of a connection of a type may have a field."""
    from airflow_provider_lancens.namespace.property_keys import STORAGE_PREFIX

    return name in extra_fields(conn_type) or name.startswith(STORAGE_PREFIX)


def extra_properties(connection: Connection, conn_type: str, apart: Collection[str] = ()) -> dict[str, str]:
    """Return the properties in a connection's extra, without empty fields.

    Args:
        connection: any connection of that type.
        conn_type: the connection type, whose fields, and ``storage.*``, are allowed.
        apart: keys that the caller reads by itself.

    Returns:
        The namespace's properties as strings; the namespace parses them.

    Raises:
        AirflowFailException: an unknown key, a list or an object, a relative ``root``, or a storage option
            that airflow.cfg doesn't allow.
    """
    from airflow_provider_lancens.hooks import storage_options
    from airflow_provider_lancens.namespace import property_keys

    prefix = property_keys.STORAGE_PREFIX
    given = {key: value for key, value in read_extra(connection).items() if key not in apart}
    extra = {key: value for key, value in given.items() if value not in (None, "")}
    for key, value in extra.items():
        if not is_extra_field(conn_type, key):
            known = ", ".join((*extra_fields(conn_type), f"{prefix}<Lance storage option>"))
            raise _refusal(connection, key, f"is unknown; expected {known}")
        if not isinstance(value, str | int | float):
            kind = type(value).__name__
            raise _refusal(connection, key, f"is a {kind}; expected text, a number, true, false")
    check_root(connection, extra.get(property_keys.ROOT))
    properties = {key: _text(value) for key, value in extra.items()}
    storage = property_keys.storage_options(properties)
    for name in storage:
        reason = storage_options.refusal(name, storage)
        if reason is not None:
            raise _refusal(connection, prefix + name, reason)
    storage = storage_options.endpoint_of_s3_alone(storage)
    others = {key: value for key, value in properties.items() if not key.startswith(prefix)}
    return {**others, **{prefix + name: value for name, value in storage.items()}}


def read_extra(connection: Connection) -> Mapping[str, Any]:
    """Parse a connection's extra.

    Airflow's own ``extra_dejson`` returns an empty extra if it can't be parsed, and calls the supervisor,
    which a trigger's thread must not do on Airflow 3.1.

    Raises:
        AirflowFailException: it isn't a JSON object.
    """
    try:
        extra = json.loads(connection.extra or "{}")
    except ValueError:
        extra = None
    if not isinstance(extra, dict):
        # Neither the extra nor the parser's message is shown: both may contain a secret.
        raise AirflowFailException(
            f"connection {connection.conn_id!r}, field Extra: is not a JSON object; write it as "
            '{"root": "/lake", …}'
        )
    return extra


def asset_authority(connection: Connection) -> str:
    """Return the authority in the URIs of a connection's assets: its field, by default its id.

    Raises:
        AirflowFailException: the field's value is invalid, or the extra isn't a JSON object.
    """
    given = read_extra(connection).get(ASSET_AUTHORITY)
    if given in (None, ""):
        return str(connection.conn_id)
    if not is_asset_authority(given):
        raise _refusal(connection, ASSET_AUTHORITY, f"is {given!r}; expected {ALLOWED_AUTHORITY}")
    return str(given)


def check_root(connection: Connection, root: object) -> None:
    """Check a root.

    Args:
        connection: the connection, for the message.
        root: its root; None if it has none.

    Raises:
        AirflowFailException: it is a relative path; it isn't shown.
    """
    from airflow_provider_lancens.namespace.property_keys import ROOT

    if root is not None and not (str(root).startswith("/") or "://" in str(root)):
        reason = "is a relative path, which each worker would resolve differently"
        raise _refusal(
            connection, ROOT, f"{reason}; expected an absolute path, or a URI such as s3://bucket/lake"
        )


def _text(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refusal(connection: Connection, key: str, reason: str) -> AirflowFailException:
    name = field_name(connection.conn_type or "", key)
    return AirflowFailException(f"connection {connection.conn_id!r}, {name}: {reason}")
