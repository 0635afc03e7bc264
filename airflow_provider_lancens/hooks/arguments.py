"""Arguments as people and templates give them to operators and sensors.

A template makes text of everything, unless its DAG renders native objects, which makes numbers of digits.
What can't be told any more is refused by name, before anything is done. A mapping's values are in no message:
they may be secrets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_lancens.identifiers import InvalidIdentifierError, NamespaceId, TableId

_NOTHING = (None, "", "None")
_TEXT_OF_A_TEMPLATE = (
    "a template makes text of it: give another task's `.output`, or let the DAG render native objects "
    "(render_template_as_native_obj=True)"
)


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
    text = parse_text(value)
    if text is None:
        return None
    if isinstance(value, bool) or not (text.isascii() and text.isdecimal()):
        raise AirflowFailException(
            f"{argument}={value!r}: not a version; allowed: a whole number of at least 0, or None"
        )
    return int(text)


def parse_text(value: Any) -> str | None:
    """Words, or a number that native rendering made of them; None where there is nothing."""
    text = "" if value is None else str(value).strip()
    return None if text in _NOTHING else text


def parse_mapping(argument: str, value: Any) -> dict[str, Any]:
    """Values by name; empty where there is nothing.

    Args:
        argument: its name, for the message.
        value: a mapping, or nothing: None, ``"None"`` or ``""``.

    Raises:
        AirflowFailException: it is something else; the message names the argument and the type.
    """
    try:
        return check_mapping(argument, None if value in _NOTHING else value)
    except TypeError as error:
        raise _refusal(str(error), value) from error


def parse_settings(argument: str, value: Any) -> dict[str, str]:
    """The same for what is text by name; a number or a boolean becomes text as JSON writes it.

    Raises:
        AirflowFailException: it is no mapping, or holds something else.
    """
    settings = parse_mapping(argument, value)
    for name, one in settings.items():
        if not isinstance(one, str | int | float):
            raise AirflowFailException(
                f"{argument}[{name!r}]: is {_type(one)}; allowed: text, a number or a boolean"
            )
    return {name: one if isinstance(one, str) else json.dumps(one) for name, one in settings.items()}


def parse_list(argument: str, value: Any, allowed: str) -> list[str]:
    """Words in a row; empty where there is nothing.

    Args:
        argument: its name, for the message.
        value: a list of text, or nothing: None, ``"None"`` or ``""``.
        allowed: what it is a list of, for the message.

    Raises:
        AirflowFailException: it is something else, such as text, which would count as a list of letters.
    """
    if value in _NOTHING:
        return []
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise _refusal(f"{argument}: is {_type(value)}; allowed: {allowed}", value)
    for one in value:
        if not isinstance(one, str):
            raise AirflowFailException(f"{argument}: holds a value {_type(one)}; allowed: {allowed}")
    return list(value)


def check_mapping(argument: str, value: Any) -> dict[str, Any]:
    """Values by name, in an argument that is no template; empty where it is None.

    Raises:
        TypeError: it is something else. Raised where a DAG is parsed, so that it shows as an import error.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{argument}: is {_type(value)}; allowed: a mapping of names to values")
    for name in value:
        if not isinstance(name, str):
            raise TypeError(f"{argument}: has {name!r} as a name, {_type(name)}; allowed: text")
    return dict(value)


def check_choice(argument: str, value: str, allowed: tuple[str, ...]) -> str:
    """One of a few words.

    Raises:
        ValueError: it is another one. Raised where a DAG is parsed, so that it shows as an import error.
    """
    if value not in allowed:
        raise ValueError(f"{argument}={value!r}; allowed: {', '.join(allowed)}")
    return value


def _refusal(words: str, value: Any) -> AirflowFailException:
    return AirflowFailException(f"{words}; {_TEXT_OF_A_TEMPLATE}" if isinstance(value, str) else words)


def _type(value: Any) -> str:
    return f"of type {type(value).__name__}"
