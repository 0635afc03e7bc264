"""Request parsing: models come from Python, plain dicts from pylance's and LanceDB's Rust core."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import (
    DELIMITER,
    InvalidIdentifierError,
    NamespaceId,
    TableId,
    delimited,
)
from airflow_provider_lancens.namespace.metastore_protocol import Metastore
from airflow_provider_lancens.namespace.operations.branches import MAIN
from airflow_provider_lancens.namespace.operations.cascade import ForeignTables

Request = TypeVar("Request", bound=BaseModel)

_BRANCH_FIELDS = ("branch", "from_branch")
ANY_TABLE = "*"
"""Allows every foreign table of a namespace to be dropped."""
_FORMS = {2: "database.table", 3: "catalog.database.table"}
"""How identifiers are written, by their number of levels."""


def as_model(model: type[Request], request: Request | Mapping[str, Any]) -> Request:
    """Convert a request to `model`, in which no branch is named if it is the main one.

    Raises:
        InvalidInputError: (13) a field has the wrong type; the message names it.
        UnsupportedOperationError: (0) the request has an identity of its own.
    """
    if not isinstance(request, (model, Mapping)):
        raise spec_errors.InvalidInputError(
            f"expected a {model.__name__} or a dict, got {type(request).__name__}"
        )
    try:
        parsed = request if isinstance(request, model) else model.model_validate(dict(request))
    except ValidationError as error:
        fields = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        # Not chained: pydantic quotes the input, such as properties that contain a secret.
        raise spec_errors.InvalidInputError(f"{model.__name__}: {fields}") from None
    if getattr(parsed, "identity", None) is not None:
        raise spec_errors.UnsupportedOperationError(
            f"{model.__name__}.identity: this namespace authenticates with its properties, not per "
            "request; leave it out"
        )
    of_main = [name for name in _BRANCH_FIELDS if getattr(parsed, name, None) == MAIN]
    return parsed.model_copy(update=dict.fromkeys(of_main)) if of_main else parsed


def refuse(request: BaseModel, reasons: Mapping[str, str]) -> None:
    """Refuse unsupported fields of a request, rather than ignore them.

    Raises:
        UnsupportedOperationError: (0) one of them is set; the message says why, and what to do instead.
    """
    for name, reason in reasons.items():
        if getattr(request, name):
            raise spec_errors.UnsupportedOperationError(f"{type(request).__name__}.{name}: {reason}")


def choice(value: str | None, allowed: Collection[str], default: str, argument: str) -> str:
    """Parse a mode or behavior in any case and style: ``ExistOk`` is ``exist_ok`` is ``EXIST_OK``."""
    if value is None:
        return default
    plain = value.replace("_", "").lower()
    for candidate in allowed:
        if candidate.replace("_", "").lower() == plain:
            return candidate
    raise spec_errors.InvalidInputError(f"{argument}: expected one of {', '.join(allowed)}, got {value!r}")


def namespace_id(parts: Sequence[str] | None, metastore: Metastore) -> NamespaceId:
    """Return the identifier of a namespace, validated for this metastore; None is the root.

    Raises:
        InvalidInputError: (13) it has too many levels, or a level is an invalid name.
    """
    levels = metastore.namespace_levels
    _refuse_dots("namespace", parts or (), levels)
    namespace = _identifier(NamespaceId, parts or (), metastore)
    if len(namespace) > levels:
        raise spec_errors.InvalidInputError(
            f"namespace {str(namespace)!r} has {len(namespace)} levels; expected at most {levels}"
        )
    return namespace


def child_namespace_id(parts: Sequence[str] | None, metastore: Metastore, verb: str) -> NamespaceId:
    """Return a validated namespace identifier for an operation that the root doesn't support."""
    namespace = namespace_id(parts, metastore)
    if namespace.is_root:
        raise spec_errors.InvalidInputError(f"the root namespace can't be {verb}; name a namespace by its id")
    return namespace


def database_id(parts: Sequence[str] | None, metastore: Metastore) -> NamespaceId:
    """Return a validated identifier of a database, the innermost level, which alone has tables."""
    namespace = namespace_id(parts, metastore)
    if len(namespace) != metastore.namespace_levels:
        raise spec_errors.InvalidInputError(
            f"namespace {str(namespace)!r} has {len(namespace)} levels, but only those with "
            f"{metastore.namespace_levels} contain tables; list_all_tables lists them all"
        )
    return namespace


def table_id(parts: Sequence[str] | None, metastore: Metastore) -> TableId:
    """Return the identifier of a table, validated for this metastore.

    Raises:
        InvalidInputError: (13) no id, the wrong number of levels, or a level is an invalid name.
    """
    if not parts:
        raise spec_errors.InvalidInputError("id: a table's identifier is required, but missing")
    wanted = metastore.namespace_levels + 1
    _refuse_dots("table", parts, wanted)
    table = _identifier(TableId, parts, metastore)
    if len(table) != wanted:
        raise spec_errors.InvalidInputError(
            f"table {str(table)!r} has {len(table)} levels; expected: {wanted}"
        )
    return table


def foreign_tables_of(texts: Iterable[str], metastore: Metastore) -> ForeignTables:
    """Parse the tables that aren't Lance and that a cascade may drop nevertheless.

    Args:
        texts: their identifiers, ``database.table`` or ``database$table``; ``*`` for any.
        metastore: the metastore, whose number of levels each identifier must have.

    Raises:
        InvalidInputError: (13) a text isn't a table's identifier.
    """
    named: set[TableId] = set()
    wanted = metastore.namespace_levels + 1
    for text in (text.strip() for text in texts):
        if text == ANY_TABLE:
            return ForeignTables(any=True)
        try:
            table = TableId.of_result(text)  # written by an author, or printed by a plan
        except InvalidIdentifierError as error:
            raise spec_errors.InvalidInputError(f"foreign tables: {error}") from error
        if len(table) != wanted:  # only the levels are checked: foreign tables may have any name
            raise spec_errors.InvalidInputError(
                f"foreign tables: table {text!r}: expected an identifier of {wanted} levels, "
                f"{_FORMS[wanted]}, or {ANY_TABLE!r} for any table"
            )
        named.add(table)
    return ForeignTables(frozenset(named))


Identifier = TypeVar("Identifier", NamespaceId, TableId)


def _refuse_dots(kind: str, parts: Sequence[str], levels: int) -> None:
    if len(parts) >= levels or not all(isinstance(part, str) for part in parts):
        return
    text = DELIMITER.join(parts)
    if written := delimited(text, levels):
        raise spec_errors.InvalidInputError(
            f"{kind} {text!r}: its levels must be separated by {DELIMITER!r}; write it as {written!r}"
        )


def _identifier(kind: type[Identifier], parts: Sequence[str], metastore: Metastore) -> Identifier:
    try:
        identifier = kind.of(parts)
    except InvalidIdentifierError as error:
        raise spec_errors.InvalidInputError(str(error)) from error
    for part in identifier.parts:
        metastore.check_name(part)
    return identifier
