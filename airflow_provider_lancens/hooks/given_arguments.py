"""Arguments that were given, but are empty when the task runs.

An argument that is left out has a meaning of its own: the newest version, the default key, no check. One that
is taken from a task comes out empty if that task was marked as success by hand, and must not get that meaning
in silence. Operators and sensors refuse it before they do anything, and so do the functions for TaskFlow
tasks if None or empty text is passed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.template_args import is_template, parse_text

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context
else:
    BaseOperator = object

P = ParamSpec("P")
T = TypeVar("T")


class GivenArguments(BaseOperator):
    """Makes an operator or a sensor refuse arguments that are given by templates and come out empty."""

    may_be_empty: ClassVar[Collection[str]] = ()
    """The templated arguments that have a documented meaning if they come out empty."""
    checked_by_key: ClassVar[Collection[str]] = ()
    """The templated arguments of which each value of a mapping is checked."""

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
            if is_template(value):
                given[name] = ()
                if getattr(self, name) is value:  # Airflow before 3.3 keeps a template that comes out empty
                    setattr(self, name, self.render_template(value, context, jinja_env))
            elif name in self.checked_by_key and isinstance(value, Mapping):
                given[name] = [key for key, one in value.items() if is_template(one)]
        if parent is self:
            self._given = given

    def pre_execute(self, context: Context) -> None:
        """Check the arguments, after Airflow has stored them for its page of rendered templates.

        Raises:
            AirflowFailException: one is given by a template, and empty.
        """
        super().pre_execute(context)
        for name, keys in (self._given or {}).items():
            value = getattr(self, name)
            values = [value[key] for key in keys] if isinstance(value, Mapping) else [value]
            if name not in self.may_be_empty and any(map(_is_empty, values)):
                raise AirflowFailException(
                    f"{name}: it is given by a template or by another task, but came out empty; the task "
                    "that it is taken from has returned nothing, as if it was marked as success or skipped. "
                    "Clear that task: if it has committed before, it finds that commit and returns its "
                    f"version. If there is to be no {name}, leave it out"
                )


def not_empty(*names: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make a function refuse None and empty text for arguments that may be left out.

    Args:
        names: the arguments.
    """

    def decorated(function: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(function)

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> T:
            given = signature.bind(*args, **kwargs).arguments
            for name in names:
                if name in given and _is_empty(given[name]):
                    raise AirflowFailException(
                        f"{name}={given[name]!r}: it is passed, but empty, as a value is of a task that was "
                        "marked as success or skipped. Clear that task: if it has committed before, it finds "
                        f"that commit and returns its version. If there is to be no {name}, leave it out"
                    )
            return function(*args, **kwargs)

        return checked

    return decorated


def _is_empty(value: Any) -> bool:
    return (value is None or isinstance(value, str)) and parse_text(value) is None
