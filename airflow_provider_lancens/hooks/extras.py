"""A connection's extra: from what people, URIs and the UI write there to a namespace's properties."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_lancens.hooks.form import extra_fields

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Connection

_STORAGE_PREFIX = "storage."
_ROOT = "root"


def extra_properties(connection: Connection, conn_type: str) -> dict[str, str]:
    """The properties that a connection's extra holds; fields left empty are left out.

    Args:
        connection: any connection of that type.
        conn_type: its fields, and ``storage.*``, are what is allowed.

    Returns:
        The namespace's properties as strings. How each is read is the namespace's business.

    Raises:
        AirflowFailException: an unknown key, a list or an object, or a relative ``root``.
    """
    extra = {key: value for key, value in read_extra(connection).items() if value not in (None, "")}
    allowed = extra_fields(conn_type)
    for key, value in extra.items():
        if key not in allowed and not key.startswith(_STORAGE_PREFIX):
            known = ", ".join((*allowed, f"{_STORAGE_PREFIX}<option of Lance>"))
            raise _refusal(connection, key, f"is unknown; allowed: {known}")
        if not isinstance(value, str | int | float):
            kind = type(value).__name__
            raise _refusal(connection, key, f"is a {kind}; allowed: text, a number, true, false")
    _check_root(connection, extra.get(_ROOT))
    return {key: _text(value) for key, value in extra.items()}


def read_extra(connection: Connection) -> Mapping[str, Any]:
    """A connection's extra as it stands there.

    Airflow's own ``extra_dejson`` answers an empty extra where it can't be read, and talks to the
    supervisor, which a trigger's thread must not do on Airflow 3.1: hence this.

    Raises:
        AirflowFailException: it isn't a JSON object.
    """
    try:
        extra = json.loads(connection.extra or "{}")
    except ValueError:
        extra = None
    if not isinstance(extra, dict):
        # Neither the extra nor the parser's message is shown: both may carry a secret.
        raise AirflowFailException(
            f"connection {connection.conn_id!r}, field Extra: not a JSON object; "
            'write it as {"root": "/lake", …}'
        )
    return extra


def _check_root(connection: Connection, root: object) -> None:
    if root is not None and not (str(root).startswith("/") or "://" in str(root)):
        reason = f"is {root!r}, a relative path, which each worker would read differently"
        raise _refusal(connection, _ROOT, f"{reason}; allowed: an absolute path or a URI: s3://bucket/lake")


def _text(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refusal(connection: Connection, key: str, reason: str) -> AirflowFailException:
    return AirflowFailException(f"connection {connection.conn_id!r}, extra {key!r}: {reason}")
