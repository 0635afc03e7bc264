"""Checks the types of the arguments of public methods, by their annotations, before anything is done.

Arguments come from people, and from templates and XComs. One of a wrong type would otherwise fail anywhere
below, in words of a library, and as an error that Airflow retries. Plain data: imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NoReturn

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.options import check_choice, check_flag, is_list

_Check = Callable[[str, Any], object]


def check_arguments(method: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Check the types of the arguments of a call, as far as `CHECKS` has their annotations.

    Args:
        method: the method; its annotations are text.
        args: the positional arguments of the call, without ``self``.
        kwargs: the others by name.

    Raises:
        InvalidInputError: (13) one is of another type; the message names it.
    """
    code = method.__code__
    positional = code.co_varnames[1 : code.co_argcount]
    for name, value in (*zip(positional, args, strict=False), *kwargs.items()):
        check = CHECKS.get(method.__annotations__.get(name, ""))
        if check is not None:
            check(name, value)


def check_fields(argument: str, given: object, kind: type) -> None:
    """Check that all keys of a mapping are fields of a dataclass.

    Raises:
        InvalidInputError: (13) one isn't; the message names it and the fields.
    """
    allowed = kind.__annotations__
    if isinstance(given, Mapping) and (unknown := [name for name in given if name not in allowed]):
        _refuse(f"{argument}: {unknown[0]!r} is unknown; expected {', '.join(allowed)}")


def check_names(argument: str, value: object) -> None:
    """Check that a value is a list of text, and not text, which would be a list of letters.

    Raises:
        InvalidInputError: (13) it isn't.
    """
    if not is_list(value) or not all(isinstance(element, str) for element in value):
        _refuse(f"{argument}: expected a list of names, got {value!r}")


def check_texts(argument: str, value: object) -> None:
    """Check that a value is a mapping of text to text; the message has no value, which may be a secret.

    Raises:
        InvalidInputError: (13) it isn't.
    """
    for name, text in _check_mapping(argument, value).items():
        if not isinstance(text, str):
            _refuse(f"{argument}: expected text, {name!r} is of type {type(text).__name__}")


def _check_text(argument: str, value: object) -> None:
    if not isinstance(value, str):
        _refuse(f"{argument}: expected text, got {value!r}")
    _check_encoding(argument, value)


def _check_encoding(argument: str, value: object) -> None:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            _refuse(f"{argument}: expected text that UTF-8 can encode, got {value!r}: {error.reason}")


def _check_mapping(argument: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        _refuse(f"{argument}: expected a mapping of names, got a value of type {type(value).__name__}")
    for name in value:
        if not isinstance(name, str):
            _refuse(f"{argument}: expected text as names, got {name!r}")
    return value


def _check_timedelta(argument: str, value: object) -> None:
    if not isinstance(value, timedelta):
        _refuse(f"{argument}: expected a timedelta, got {value!r}")


def _check_age(argument: str, value: object) -> None:
    if not isinstance(value, timedelta | str):
        _refuse(f"{argument}: expected a timedelta, or text such as PT6H, got {value!r}")


def _check_type(argument: str, value: object) -> None:
    is_arrow = any(base.__module__.startswith("pyarrow.") for base in type(value).__mro__)  # no import
    if not isinstance(value, str) and not is_arrow:
        _refuse(f"{argument}: expected the name of a type or a pyarrow.DataType, got {value!r}")


def _check_options(kind: str) -> _Check:
    """Return the check of the options of a class, or of a mapping of its fields."""

    def check(argument: str, value: object) -> None:
        if type(value).__name__ != kind and not isinstance(value, Mapping):
            _refuse(f"{argument}: expected {kind} or a mapping of its fields, got {value!r}")
        if isinstance(value, Mapping):
            _check_mapping(argument, value)

    return check


def _check_indices(argument: str, value: object) -> None:
    if not is_list(value):
        _refuse(f"{argument}: expected a list of IndexSpec or mappings of its fields, got {value!r}")
    for number, spec in enumerate(value):
        _check_options("IndexSpec")(f"{argument}[{number}]", spec)


def _or_none(check: _Check) -> _Check:
    return lambda argument, value: None if value is None else check(argument, value)


def _refuse(message: str) -> NoReturn:
    raise spec_errors.InvalidInputError(message)


_check_thresholds = _check_options("Thresholds")
CHECKS: Mapping[str, _Check] = {
    "bool": check_flag,
    "str": _check_text,
    "str | None": _or_none(_check_text),
    "str | WriteIdentity": _check_encoding,
    "str | WriteIdentity | None": _check_encoding,
    "Key": _check_encoding,
    "VersionLike": _check_encoding,
    "VersionLike | None": _check_encoding,
    "Sequence[str]": check_names,
    "Sequence[str] | None": _or_none(check_names),
    "Columns": _or_none(check_names),
    "Mapping[str, str] | None": _or_none(check_texts),
    "Mapping[str, Any] | None": _or_none(_check_mapping),
    "Mapping[str, BlobRange] | None": _or_none(_check_mapping),
    "Mapping[str, str | pa.DataType] | None": _or_none(_check_mapping),
    "timedelta": _check_timedelta,
    "timedelta | None": _or_none(_check_timedelta),
    "timedelta | str | None": _or_none(_check_age),
    "str | pa.DataType | None": _or_none(_check_type),
    "IfMissing": lambda argument, value: check_choice(argument, value, ("fail", "skip")),
    "Thresholds | Mapping[str, Any] | None": _or_none(_check_thresholds),
    "CompactionOptions | Mapping[str, Any] | None": _or_none(_check_options("CompactionOptions")),
    "TableLayout | Mapping[str, Any] | None": _or_none(_check_options("TableLayout")),
    "Sequence[IndexSpec | Mapping[str, Any]]": _check_indices,
}
"""The checks by annotation."""
