"""Limits of a metastore, checked here since HMS retries a change that its database refuses for 20 s.

The widths are taken from the schema that Hive itself ships, the same in 2.3.10, 3.1.3 and 4.0.1. The maximum
length of a table property's value differs between databases, and is left to them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable, Namespace

MAX_TEXT = 16_000_000
"""Bytes of one string on the wire: a longer one in a reply counts as corrupt, and none is ever written."""
MAX_REPLY = 256 * 2**20
"""Bytes of one reply, and of one frame of SASL: more than any batch of wide tables."""
MAX_NEGOTIATION = 2**20
"""Bytes of one message of SASL's negotiation, when it isn't known yet who the server is."""
MAX_NAME = 128
MAX_TABLE_KEY = 256
MAX_NAMESPACE_KEY = 180
MAX_NAMESPACE_VALUE = 4000
MAX_LOCATION = 4000
MAX_DESCRIPTION = 4000
MAX_OWNER = 128
_NAME = re.compile(r"[a-z0-9_]+")


def check_name(name: str) -> None:
    """Refuse a name that HMS can't store, or accepts but misplaces, as 4.0.1 does ``../x``.

    Raises:
        InvalidInputError: (13) with the reason, as by all checks here.
    """
    _check_length(f"name {name[:40]!r}", name, MAX_NAME)
    if not _NAME.fullmatch(name):
        raise InvalidInputError(f"name {name!r}: Hive allows only letters, digits and '_'")


def check_table(table: CatalogTable) -> None:
    """Refuse a table whose location or parameters HMS can't store."""
    _check_length(f"table {table.id}: its location", table.location, MAX_LOCATION)
    check_parameters(table.id, table.parameters)


def check_parameters(table: TableId, parameters: Mapping[str, str]) -> None:
    """Refuse parameters that HMS can't store."""
    for key, value in parameters.items():
        subject = f"table {table}: property {key[:40]!r}"
        _check_length(subject, key, MAX_TABLE_KEY)
        _check_text(subject, key, value)


def check_namespace(namespace: Namespace) -> None:
    """Refuse a catalog or database whose fields HMS can't store."""
    subject = f"namespace {namespace.id}"
    _check_length(f"{subject}: its location", namespace.location, MAX_LOCATION)
    _check_length(f"{subject}: its description", namespace.description, MAX_DESCRIPTION)
    _check_length(f"{subject}: its owner", namespace.owner, MAX_OWNER)
    for key, value in namespace.properties.items():
        _check_length(f"{subject}: property {key[:40]!r}", key, MAX_NAMESPACE_KEY)
        _check_length(f"{subject}: the value of property {key!r}", value, MAX_NAMESPACE_VALUE)
        _check_text(f"{subject}: property {key!r}", key, value)


def _check_text(subject: str, key: str, value: str) -> None:
    if "\0" in key or "\0" in value:
        raise InvalidInputError(f"{subject} contains a null character, which some databases cannot store")
    if len(value.encode(errors="surrogatepass")) > MAX_TEXT:
        raise InvalidInputError(f"{subject}: its value may have at most {MAX_TEXT} bytes, got more")


def _check_length(subject: str, text: str | None, maximum: int) -> None:
    if text is not None and len(text) > maximum:
        raise InvalidInputError(f"{subject}: Hive allows at most {maximum} characters, got {len(text)}")
