"""Parses arguments of operators and sensors, which may be rendered from templates.

A template renders every value as text, unless its DAG renders native objects, which makes numbers of digits.
Ambiguous values are refused by argument name, before anything is done. Messages never contain the values of
a mapping, which may be secrets.

An argument that is left out has a default: the newest version, the default key, no check. An argument that is
taken from another task's output is empty if that task was marked as success by hand, and must not silently
get this default: operators and sensors refuse it before they do anything, and so do the functions for
TaskFlow tasks if None or empty text is passed.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.identifiers import FIRST_STAGED, InvalidIdentifierError, NamespaceId, TableId
from airflow_provider_lancens.spark.options import VERSION_AUTHORITIES, not_a_choice, not_a_flag

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context
else:
    BaseOperator = object

_Id = TypeVar("_Id", NamespaceId, TableId)
_Choice = TypeVar("_Choice", bound=str)

_NOTHING = (None, "", "None")
_BOOLEANS = {"True": "all rows match", "False": "no row matches"}
_TABLES = "database$table, or a list of these"
AUTHORITIES = tuple(VERSION_AUTHORITIES)
"""Values of arguments `version_authority`."""
_TEMPLATE_HINT = (
    "a template renders it as text: pass another task's `.output`, or let the DAG render native "
    "objects (render_template_as_native_obj=True)"
)


def parse_namespace(text: str) -> NamespaceId:
    """Parse a namespace's identifier, as a person writes it: see `NamespaceId.written`.

    Raises:
        AirflowFailException: it is invalid; the message names the argument.
    """
    namespace = _parse_identifier("namespace", text, NamespaceId.written, "database")
    if namespace.is_root:
        raise AirflowFailException(f"namespace={text!r}: is not a namespace; write it as database")
    return namespace


def parse_table(text: str, argument: str = "table") -> TableId:
    """Parse a table's identifier, as a person writes it: see `TableId.written`.

    Args:
        text: the identifier.
        argument: what the caller calls it, for the message.

    Raises:
        AirflowFailException: it is invalid; the message names the argument.
    """
    return _parse_identifier(argument, text, TableId.written, "database$table")


def parse_result_table(text: str) -> TableId:
    """Parse a table's identifier in an XCom or another result: see `TableId.of_result`.

    Raises:
        AirflowFailException: it is invalid; the message names the argument.
    """
    return _parse_identifier("table", text, TableId.of_result, "database$table")


def parse_tables(table: str | Iterable[str]) -> list[TableId]:
    """Parse a table's identifier, or a list of them, without duplicates.

    Raises:
        AirflowFailException: it is empty or contains an invalid identifier.
    """
    named = [table] if isinstance(table, str) else parse_list("table", table, _TABLES)
    if not named:
        raise AirflowFailException(f"table={table!r}: is not a table; expected {_TABLES}")
    return list(dict.fromkeys(parse_table(identifier) for identifier in named))


def parse_version(argument: str, value: Any) -> int | None:
    """Parse a version, which a template may have rendered as text.

    Args:
        argument: its name, for the message.
        value: an integer, its digits, or an empty value: None, ``"None"`` or ``""``. Not the number of a
            staged version, which has no place among the others: none follows it, and a wait for a greater one
            never ends.

    Raises:
        AirflowFailException: it is anything else; the message names the argument.
    """
    text = parse_text(value)
    if text is None:
        return None
    if isinstance(value, bool) or not (text.isascii() and text.isdecimal()):
        raise AirflowFailException(
            f"{argument}={value!r}: not a version; expected a whole number of at least 0, or None"
        )
    version = int(text)
    if version >= FIRST_STAGED:
        raise AirflowFailException(
            f"{argument}={version}: is the number of a staged version, which only its own readers see; "
            "publish it first, with LancePublishOperator, and pass the version of that task"
        )
    return version


def parse_text(value: Any) -> str | None:
    """Parse text, or a number that native rendering made of it; None if it is empty."""
    text = "" if value is None else str(value).strip()
    return None if text in _NOTHING else text


def parse_condition(argument: str, value: Any) -> str | None:
    """Parse a condition; None if it is empty.

    Raises:
        AirflowFailException: it isn't text, or it is the text of True or False: the first would be the
            condition that all rows match.
    """
    if value is not None and not isinstance(value, str):
        raise AirflowFailException(f"{argument}={value!r}: is {_type(value)}; expected a condition as text")
    return parse_text(check_condition(argument, value))


def check_condition(argument: str, value: Any) -> Any:
    """Return a condition as it was rendered, unless it is a Python boolean as text.

    Raises:
        AirflowFailException: a template has made it of True or False, such as of the result of a check.
    """
    if isinstance(value, str) and (text := value.strip()) in _BOOLEANS:
        raise AirflowFailException(
            f"{argument}={text!r}: is the text of a Python boolean, such as a template makes of a check; "
            f"write {text.upper()} for the condition that {_BOOLEANS[text]}"
        )
    return value


def parse_number(value: Any) -> Any:
    """Parse a number that a template may have rendered as text; return any other value unchanged."""
    text = parse_text(value)
    if text is None or not isinstance(value, str):
        return None if text is None else value
    for number in (int, float):
        with contextlib.suppress(ValueError):
            return number(text)
    return value


def is_template(value: Any) -> bool:
    """Whether a value is known only once a task runs: text with a template, or the output of another task."""
    return hasattr(value, "resolve") or (isinstance(value, str) and ("{{" in value or "{%" in value))


def parse_mapping(argument: str, value: Any) -> dict[str, Any]:
    """Parse a mapping of names to values, which may be empty.

    Args:
        argument: its name, for the message.
        value: a mapping, or an empty value: None, ``"None"`` or ``""``.

    Raises:
        AirflowFailException: it is anything else; the message names the argument and the type.
    """
    try:
        return check_mapping(argument, None if value in _NOTHING else value)
    except TypeError as error:
        raise refusal(str(error), value) from error


def parse_settings(argument: str, value: Any) -> dict[str, str]:
    """Parse a mapping of names to text; numbers and booleans become text as in JSON.

    Raises:
        AirflowFailException: it is not a mapping, or contains other values.
    """
    settings = parse_mapping(argument, value)
    for name, setting in settings.items():
        if not isinstance(setting, str | int | float):
            raise AirflowFailException(
                f"{argument}[{name!r}]: is {_type(setting)}; expected text, a number or a boolean"
            )
    return {
        name: setting if isinstance(setting, str) else json.dumps(setting)
        for name, setting in settings.items()
    }


def parse_list(argument: str, value: Any, allowed: str) -> list[str]:
    """Parse a list of text, which may be empty.

    Args:
        argument: its name, for the message.
        value: a list of text, or an empty value: None, ``"None"`` or ``""``.
        allowed: what it is a list of, for the message.

    Raises:
        AirflowFailException: it is anything else, such as text, which would be taken as a list of letters.
    """
    if value in _NOTHING:
        return []
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise refusal(f"{argument}: is {_type(value)}; expected {allowed}", value)
    for element in value:
        if not isinstance(element, str):
            raise AirflowFailException(f"{argument}: contains a value {_type(element)}; expected {allowed}")
    return list(value)


def check_mapping(argument: str, value: Any) -> dict[str, Any]:
    """Check a mapping of names to values that is not a template; None becomes an empty one.

    Raises:
        TypeError: it is anything else. Raised while a DAG is parsed, so that it shows as an import error.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{argument}: is {_type(value)}; expected a mapping of names to values")
    for name in value:
        if not isinstance(name, str):
            raise TypeError(f"{argument}: contains the name {name!r} {_type(name)}; expected text")
    return dict(value)


def check_column_name(argument: str, value: Any) -> Any:
    """Return the value if it is text, a template or None.

    Raises:
        TypeError: it is anything else. Raised while a DAG is parsed, so that it shows as an import error.
    """
    if not (value is None or isinstance(value, str) or is_template(value)):
        raise TypeError(f"{argument}: is {_type(value)}; expected the name of a column")
    return value


def check_choice(argument: str, value: _Choice, allowed: tuple[str, ...]) -> _Choice:
    """Return the value if it is one of the allowed ones.

    Raises:
        ValueError: it is not. Raised while a DAG is parsed, so that it shows as an import error.
    """
    if value not in allowed:
        raise ValueError(not_a_choice(argument, value, allowed))
    return value


def check_flag(argument: str, value: Any) -> bool:
    """Return the value if it is True or False; any text, such as ``"false"``, would count as True.

    Raises:
        TypeError: it is anything else. Raised while a DAG is parsed, so that it shows as an import error.
    """
    if not isinstance(value, bool):
        hint = "; this argument isn't templated, and takes no output of another task"
        raise TypeError(f"{not_a_flag(argument, value)}{hint if is_template(value) else ''}")
    return value


class CheckedTemplateArgs(BaseOperator):
    """Makes an operator or a sensor refuse arguments that are given by templates and come out empty."""

    may_be_empty: ClassVar[Collection[str]] = ()
    """The templated arguments that have a documented meaning if they come out empty."""
    checked_by_key: ClassVar[Collection[str]] = ()
    """The templated arguments of which each value of a mapping is checked."""
    argument_names: ClassVar[Mapping[str, str]] = {}
    """The names of arguments that are templated as other fields."""
    checked_if_mapped: ClassVar[Collection[str]] = ()
    """The other arguments whose default an item of a mapped task gets only if it leaves them out."""

    _given: Mapping[str, Collection[Any]] | None = None
    """The arguments that were templates, or the keys of a mapping whose values were."""

    def _do_render_template_fields(
        self, parent: Any, template_fields: Iterable[str], context: Any, jinja_env: Any, seen_oids: Any
    ) -> None:
        # Unlike `render_template_fields`, Airflow calls this for mapped tasks too.
        names = list(template_fields)
        before = {name: getattr(self, name) for name in names} if parent is self else {}
        super()._do_render_template_fields(parent, names, context, jinja_env, seen_oids)
        given: dict[str, Collection[Any]] = {}
        for name, value in before.items():
            if is_template(value) or callable(value):  # Airflow calls a callable field to get its value
                given[name] = ()
                if getattr(self, name) is value:  # Airflow before 3.3 keeps a template that comes out empty
                    setattr(self, name, self.render_template(value, context, jinja_env, seen_oids))
            elif name in self.checked_by_key and isinstance(value, Mapping):
                given[name] = [key for key, element in value.items() if is_template(element)]
            if isinstance(value, str) and type(getattr(self, name)) in (int, float, bool):
                setattr(self, name, _unless_text(value, context, jinja_env, getattr(self, name)))
        if parent is self:
            self._given = given

    def pre_execute(self, context: Context) -> None:
        """Check the arguments, after Airflow has stored them for its page of rendered templates.

        Raises:
            AirflowFailException: one is given by a template or by the item of a mapped task, and empty.
        """
        super().pre_execute(context)
        for name, keys in (self._given or {}).items():
            value, argument = getattr(self, name), self.argument_names.get(name, name)
            values = {argument: value}
            if isinstance(value, Mapping):
                values = {f"{argument}: {key}": value[key] for key in keys}
            for shown, element in values.items():
                if name not in self.may_be_empty and _is_empty(element):
                    raise AirflowFailException(
                        f"{shown}: it is given by a template or by another task, but came out empty; the "
                        "task that it is taken from has returned nothing, as if it was marked as success or "
                        f"skipped. {_clear_or_leave_out(shown)}"
                    )
        self._check_item(context)

    def _check_item(self, context: Context) -> None:
        """Refuse arguments that the item of a mapped task gives, and that are empty."""
        from airflow_provider_lancens.hooks.mapped_tasks import arguments_of_item, map_index

        index = map_index(context)
        empty = [name for name in self.template_fields if _is_empty(getattr(self, name, None))]
        checked = [*(name for name in empty if name not in self.may_be_empty), *self.checked_if_mapped]
        if index is None or not checked:
            return
        given = arguments_of_item(self, context)
        for name in checked:
            if name in given and _is_empty(given[name]):
                raise AirflowFailException(
                    f"{name}: item {index}, which the task is mapped over, gives it as {given[name]!r}, as "
                    "if the task that it is taken from was marked as success or skipped. "
                    f"{_clear_or_leave_out(name)} of the item, which expand_kwargs allows"
                )


def refuse_empty(names: Collection[str], given: Mapping[str, Any]) -> None:
    """Refuse None and empty text for arguments that may be left out.

    Args:
        names: the arguments.
        given: the arguments that were passed, by name.

    Raises:
        AirflowFailException: one of them is empty.
    """
    for name in names:
        if name in given and _is_empty(given[name]):
            raise AirflowFailException(
                f"{name}={given[name]!r}: it is passed, but empty, as a value is of a task that was "
                f"marked as success or skipped. {_clear_or_leave_out(name)}"
            )


def _clear_or_leave_out(name: str) -> str:
    return (
        "Clear that task: if it has committed before, it finds that commit and returns its version. If there "
        f"is to be no {name}, leave it out"
    )


def _parse_identifier(argument: str, text: str, parse: Callable[[str], _Id], form: str) -> _Id:
    try:
        return parse(text)
    except InvalidIdentifierError as error:
        raise AirflowFailException(f"{argument}={text!r}: {error}; write it as {form}") from error


def refusal(message: str, value: Any) -> AirflowFailException:
    """Return the error of a value; of text, it says how a template gives an object."""
    return AirflowFailException(f"{message}; {_TEMPLATE_HINT}" if isinstance(value, str) else message)


def _type(value: Any) -> str:
    return f"of type {type(value).__name__}"


def _unless_text(template: str, context: Mapping[str, Any], jinja_env: Any, number: Any) -> Any:
    """Return a number or a boolean that a template renders to, or the text if it renders to text.

    Native rendering would make the tag ``2026_11_01`` 20261101, ``1_0`` version 10, and ``True`` a boolean.
    """
    parsed = jinja_env.from_string(template)
    nodes = list(parsed.root_render_func(parsed.new_context(dict(context))))
    is_number = len(nodes) == 1 and not isinstance(nodes[0], str)
    return number if is_number else "".join(map(str, nodes))


def _is_empty(value: Any) -> bool:
    return (value is None or isinstance(value, str)) and parse_text(value) is None
