"""Arguments as people and templates give them to operators and sensors."""

from __future__ import annotations

from typing import Any

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_lancens.identifiers import InvalidIdentifierError, NamespaceId, TableId

_NOTHING = ("", "None")


def parse_namespace(text: str) -> NamespaceId:
    """A namespace's identifier.

    Raises:
        AirflowFailException: it can't be one; the message names the argument.
    """
    try:
        return NamespaceId.parse(text)
    except InvalidIdentifierError as error:
        raise AirflowFailException(f"namespace={text!r}: {error}; write it as database") from error


def parse_table(text: str) -> TableId:
    """A table's identifier.

    Raises:
        AirflowFailException: it can't be one; the message names the argument.
    """
    try:
        return TableId.parse(text)
    except InvalidIdentifierError as error:
        raise AirflowFailException(f"table={text!r}: {error}; write it as database$table") from error


def parse_version(argument: str, value: Any) -> int | None:
    """A version, which a template may have turned into text.

    Args:
        argument: its name, for the message.
        value: a whole number, its digits, or nothing: None, ``"None"`` or ``""``.

    Raises:
        AirflowFailException: it is something else; the message names the argument.
    """
    text = "" if value is None else str(value).strip()
    if text in _NOTHING:
        return None
    if isinstance(value, bool) or not (text.isascii() and text.isdecimal()):
        raise AirflowFailException(
            f"{argument}={value!r}: not a version; allowed: a whole number of at least 0, or None"
        )
    return int(text)


def check_choice(argument: str, value: str, allowed: tuple[str, ...]) -> str:
    """One of a few words.

    Raises:
        ValueError: it is another one. Raised where a DAG is parsed, so that it shows as an import error.
    """
    if value not in allowed:
        raise ValueError(f"{argument}={value!r}; allowed: {', '.join(allowed)}")
    return value
