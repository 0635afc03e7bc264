"""The hook to a folder of tables, a REST service, or any other implementation of Lance Namespace."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from airflow.sdk.log import mask_secret

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.connection_fields import (
    ASSET_AUTHORITY,
    check_root,
    extra_properties,
    field_name,
    hook_of_connection_type,
    read_extra,
)
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.namespace.property_keys import ROOT, STORAGE_PREFIX

_PROPERTIES = {"properties": "property.", "secret_properties": "secret."}
"""The fields with the implementation's own properties, and their prefixes for `CatalogNamespace`."""
_REFUSED = {
    STORAGE_PREFIX: "is a storage option; set it as an extra of its own, where it is checked",
    "dynamic_context_provider.": "names a class that would run with the permissions of Airflow's processes, "
    "which whoever edits a connection may not choose; write a class of lance_namespace that creates it, and "
    "name that as impl",
}
"""Prefixes of properties that a connection may not have, and why."""
_AS_JSON = 'write it as {"name": "value", …}, whose values are text'
_IMPLEMENTATION = re.compile(r"dir|rest|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_IMPL, _URI, _DIR = "impl", "uri", "dir"


@hook_of_connection_type("lance")
class LanceCatalogHook(LanceHook):
    """Lance tables in a folder or a bucket, a REST service, or another implementation of Lance Namespace.

    The storage decides the versions of the tables.

    Args:
        lance_conn_id: a connection of type ``lance``.
    """

    namespace_impl = "airflow_provider_lancens.namespace.CatalogNamespace"
    reference_field = ""

    async def aprepare(self) -> None:
        """Do nothing: no other connection is needed."""

    @property
    def reference(self) -> None:
        """None: the connection refers to no other one."""
        return

    @property
    def impl(self) -> str:
        """The implementation: ``dir``, ``rest``, or the dotted path of a class."""
        return str(read_extra(self.connection).get(_IMPL) or _DIR).strip()

    def namespace_properties(self) -> dict[str, str]:
        """Return the namespace's properties, all strings, including the connection's secrets.

        Raises:
            AirflowFailException: a field of the connection is invalid; the message names it.
        """
        own = extra_properties(self.connection, self.conn_type, apart=_PROPERTIES)
        if own.pop(ASSET_AUTHORITY, None) is not None:
            _ = self.asset_authority  # raises for an invalid authority before anything is written
        for field, prefix in _PROPERTIES.items():
            own |= {f"{prefix}{name}": value for name, value in self._properties_in(field).items()}
        return {**own, **self.endpoint_properties(), **self.credential_properties()}

    def endpoint_properties(self) -> dict[str, str]:
        """Return ``impl``, and the root or the URI of the service.

        Raises:
            AirflowFailException: one of them is invalid; its value isn't shown.
        """
        root, uri = read_extra(self.connection).get(ROOT), self.connection.host
        check_root(self.connection, root or None)
        # Values aren't shown, since a secret may have been entered into the wrong field.
        if not _IMPLEMENTATION.fullmatch(self.impl):
            raise self._refusal(
                _IMPL, "is invalid; expected dir, rest, or the dotted path of a class of lance_namespace"
            )
        if uri and "://" not in uri:
            raise self._refusal(_URI, "is not a URI; expected one such as https://catalog:8443")
        where = {ROOT: root, _URI: _with_port(uri, self.connection.port)}
        return {_IMPL: self.impl, **{key: str(value) for key, value in where.items() if value}}

    def credential_properties(self) -> dict[str, str]:
        """Return the ``token``, from the password."""
        return {"token": self.connection.password} if self.connection.password else {}

    def _properties_in(self, field: str) -> Mapping[str, str]:
        """Return the properties in a field: a JSON object in the extra, or its text, as in the form.

        Raises:
            AirflowFailException: it is something else, a value isn't text, or a property isn't allowed; no
                value is shown.
        """
        given: Any = read_extra(self.connection).get(field)
        if given in (None, ""):
            return {}
        if isinstance(given, str):
            try:
                given = json.loads(given)
            except ValueError:
                given = None
        if not isinstance(given, dict):
            raise self._refusal(field, f"is not a JSON object; {_AS_JSON}")
        for name, value in given.items():
            self._check_property(field, name, value)
            if field != "properties" and value:
                mask_secret(value)
        return given

    def _check_property(self, field: str, name: str, value: Any) -> None:
        for prefix, reason in _REFUSED.items():
            if name.strip().lower().startswith(prefix):
                raise self._refusal(field, f"{name!r} {reason}")
        if not isinstance(value, str):
            raise self._refusal(field, f"{name!r} is a {type(value).__name__}, not text; {_AS_JSON}")

    def _refusal(self, field: str, reason: str) -> AirflowFailException:
        return AirflowFailException(
            f"connection {self.lance_conn_id!r}, {field_name(self.conn_type, field)}: {reason}"
        )


def _with_port(uri: str | None, port: int | None) -> str | None:
    """Return a URI with the port of its connection, which the form hides, if it has none itself."""
    with suppress(ValueError):  # an invalid URI is refused later
        parts = urlsplit(uri or "")
        if port and parts.netloc and parts.port is None:
            return parts._replace(netloc=f"{parts.netloc.removesuffix(':')}:{port}").geturl()
    return uri
