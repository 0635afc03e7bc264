"""Requests as they come: models from Python, plain dicts from pylance's and LanceDB's Rust core."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

from lance_namespace.errors import InvalidInputError, UnsupportedOperationError
from pydantic import BaseModel, ValidationError

from airflow_provider_lancens.identifiers import InvalidIdentifierError, NamespaceId, TableId
from airflow_provider_lancens.namespace.metastore import Metastore

Request = TypeVar("Request", bound=BaseModel)


def as_model(model: type[Request], request: Request | Mapping[str, Any]) -> Request:
    """The request as `model`.

    Raises:
        InvalidInputError: (13) a field has the wrong type; the message names it.
        UnsupportedOperationError: (0) the request carries an identity of its own.
    """
    parsed = request if isinstance(request, model) else _parse(model, request)
    if getattr(parsed, "identity", None) is not None:
        raise UnsupportedOperationError(
            f"{model.__name__}.identity: this namespace authenticates by its own properties, "
            "not by request; leave it out"
        )
    return parsed


def refuse(request: BaseModel, reasons: Mapping[str, str]) -> None:
    """Refuse the fields of a request that can't be honored, rather than ignore them.

    Raises:
        UnsupportedOperationError: (0) one of them is set; the message says why not, and what else to do.
    """
    for name, reason in reasons.items():
        if getattr(request, name):
            raise UnsupportedOperationError(f"{type(request).__name__}.{name}: {reason}")


def choice(value: str | None, allowed: Collection[str], default: str, argument: str) -> str:
    """A mode or behavior in any case and style: ``ExistOk`` is ``exist_ok`` is ``EXIST_OK``."""
    if value is None:
        return default
    plain = value.replace("_", "").lower()
    for candidate in allowed:
        if candidate.replace("_", "").lower() == plain:
            return candidate
    raise InvalidInputError(f"{argument}: expected one of {', '.join(allowed)}, got {value!r}")


def namespace_id(parts: Sequence[str] | None, metastore: Metastore) -> NamespaceId:
    """A namespace that this metastore can hold, root included; None is the root.

    Raises:
        InvalidInputError: (13) it has too many levels, or a level can't be a name there.
    """
    levels = metastore.namespace_levels
    namespace = _identifier(NamespaceId, parts or (), metastore)
    if len(namespace) > levels:
        raise InvalidInputError(
            f"namespace {str(namespace)!r} has {len(namespace)} levels; allowed here: at most {levels}"
        )
    return namespace


def child_namespace_id(parts: Sequence[str] | None, metastore: Metastore, verb: str) -> NamespaceId:
    """The same for an operation that the root can't undergo."""
    namespace = namespace_id(parts, metastore)
    if namespace.is_root:
        raise InvalidInputError(f"the root namespace can't be {verb}; name a namespace by its id")
    return namespace


def database_id(parts: Sequence[str] | None, metastore: Metastore) -> NamespaceId:
    """The same for an operation on the tables of a namespace: only the innermost level holds any."""
    namespace = namespace_id(parts, metastore)
    if len(namespace) != metastore.namespace_levels:
        raise InvalidInputError(
            f"namespace {str(namespace)!r} has {len(namespace)} levels, but only those with "
            f"{metastore.namespace_levels} hold tables; list_all_tables lists them all"
        )
    return namespace


def table_id(parts: Sequence[str] | None, metastore: Metastore) -> TableId:
    """A table that this metastore can hold.

    Raises:
        InvalidInputError: (13) no id, the wrong number of levels, or a level can't be a name there.
    """
    if not parts:
        raise InvalidInputError("a table's id is missing")
    table = _identifier(TableId, parts, metastore)
    wanted = metastore.namespace_levels + 1
    if len(table) != wanted:
        raise InvalidInputError(f"table {str(table)!r} has {len(table)} levels; needed here: {wanted}")
    return table


Identifier = TypeVar("Identifier", NamespaceId, TableId)


def _identifier(kind: type[Identifier], parts: Sequence[str], metastore: Metastore) -> Identifier:
    try:
        identifier = kind.of(parts)
    except InvalidIdentifierError as error:
        raise InvalidInputError(str(error)) from error
    for part in identifier.parts:
        metastore.check_name(part)
    return identifier


def _parse(model: type[Request], request: object) -> Request:
    if not isinstance(request, Mapping):
        raise InvalidInputError(f"expected a {model.__name__} or a dict, got {type(request).__name__}")
    try:
        return model.model_validate(dict(request))
    except ValidationError as error:
        fields = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise InvalidInputError(f"{model.__name__}: {fields}") from error
