"""Responses of the specification whose repr and str hide vended credentials.

Callers log responses as they are. The fields, `model_dump` and `to_dict`, by which Lance's core reads them,
are the models' own.
"""

from __future__ import annotations

import pprint
from collections.abc import Iterator
from typing import Any

from lance_namespace_urllib3_client import models

from airflow_provider_lancens.redaction import MASK, is_secret, redact

_OPTIONS = "storage_options"


class _Redacted:
    """Mixin, to be the first base of a model, that hides option values and credentials in URLs."""

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:  # pydantic builds repr and str from this
        for name, value in super().__repr_args__():  # type: ignore[misc]
            yield name, _shown(str(name), value)

    def to_str(self) -> str:
        """Return the fields as text, redacted as in the repr."""
        fields: dict[str, Any] = self.model_dump(by_alias=True)  # type: ignore[attr-defined]
        return pprint.pformat({name: _shown(name, value) for name, value in fields.items()})


class CreateNamespaceResponse(_Redacted, models.CreateNamespaceResponse):
    """See `models.CreateNamespaceResponse`."""


class DescribeNamespaceResponse(_Redacted, models.DescribeNamespaceResponse):
    """See `models.DescribeNamespaceResponse`."""


class DropNamespaceResponse(_Redacted, models.DropNamespaceResponse):
    """See `models.DropNamespaceResponse`."""


class CreateTableResponse(_Redacted, models.CreateTableResponse):
    """See `models.CreateTableResponse`."""


class DeclareTableResponse(_Redacted, models.DeclareTableResponse):
    """See `models.DeclareTableResponse`."""


class DescribeTableResponse(_Redacted, models.DescribeTableResponse):
    """See `models.DescribeTableResponse`."""


class RegisterTableResponse(_Redacted, models.RegisterTableResponse):
    """See `models.RegisterTableResponse`."""


class DeregisterTableResponse(_Redacted, models.DeregisterTableResponse):
    """See `models.DeregisterTableResponse`."""


class DropTableResponse(_Redacted, models.DropTableResponse):
    """See `models.DropTableResponse`."""


def _shown(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: MASK if name == _OPTIONS else _shown(key, field_value) for key, field_value in value.items()
        }
    if isinstance(value, str):
        return MASK if is_secret(name) else redact(value)
    return value
