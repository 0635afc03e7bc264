"""The decorator ``@task.lance_spark``: a task of a function, with Spark and the tables of a connection."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from inspect import Parameter, isasyncgenfunction, iscoroutinefunction, isgeneratorfunction, signature
from typing import TYPE_CHECKING, Any

from airflow.sdk.bases.decorator import DecoratedOperator, task_decorator_factory

from airflow_provider_lancens.hooks.template_args import CheckedTemplateArgs, check_flag
from airflow_provider_lancens.provider_info import DEFAULT_CONNECTION

try:
    from airflow.sdk.bases.decorator import determine_kwargs
except ImportError:  # Airflow 3.1
    from airflow.utils.operator_helpers import determine_kwargs  # type: ignore[attr-defined]

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.bases.decorator import TaskDecorator

_LAKE = "lake"


class LanceSparkDecoratedOperator(CheckedTemplateArgs, DecoratedOperator):
    """Call a function within a block of `airflow_provider_lancens.operators.lance_spark`.

    Args:
        python_callable: the function. Its argument ``lake`` is the catalog of the connection, with the
            session as ``lake.spark``; the other arguments are given where it is called in the DAG.
        op_args: positional arguments of the function. Templated.
        op_kwargs: keyword arguments of the function. Templated.
        lance_conn_id: see `airflow_provider_lancens.operators.lance_spark`. Templated.
        spark_conn_id: see `airflow_provider_lancens.operators.lance_spark`. Templated.
        spark_conf: see `airflow_provider_lancens.operators.lance_spark`. Templated.
        hive_tables: see `airflow_provider_lancens.operators.lance_spark`.

    Raises:
        ValueError: the function has no argument ``lake``, is asynchronous, or yields.
    """

    custom_operator_name = "@task.lance_spark"
    template_fields: Sequence[str] = (
        *DecoratedOperator.template_fields,
        "lance_conn_id",
        "spark_conn_id",
        "spark_conf",
    )
    template_fields_renderers = {**DecoratedOperator.template_fields_renderers, "spark_conf": "json"}

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        op_args: Collection[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        lance_conn_id: str = DEFAULT_CONNECTION,
        spark_conn_id: str | None = None,
        spark_conf: Mapping[str, str] | None = None,
        hive_tables: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            python_callable=_with_lake_given_later(python_callable),
            op_args=op_args,
            op_kwargs=op_kwargs,
            **kwargs,
        )
        self.lance_conn_id = lance_conn_id
        self.spark_conn_id = spark_conn_id
        self.spark_conf = spark_conf
        self._hive_tables = check_flag("hive_tables", hive_tables)

    def execute(self, context: Context) -> Any:
        """Return what the function returns.

        Raises:
            AirflowFailException: a connection is invalid, or what the function does with a table is.
            LanceRetryableError: the metastore or the storage is unavailable, or the task was killed.
        """
        from airflow_provider_lancens.operators.taskflow import lance_spark

        with lance_spark(
            lance_conn_id=self.lance_conn_id,
            spark_conn_id=self.spark_conn_id,
            spark_conf=self.spark_conf,
            hive_tables=self._hive_tables,
        ) as lake:
            given = {**context, **self.op_kwargs, _LAKE: lake}
            return self.python_callable(
                *self.op_args, **determine_kwargs(self.python_callable, self.op_args, given)
            )


def _with_lake_given_later(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with ``lake`` as a keyword that may be missing where it is called in a DAG."""
    given = signature(function)
    if _LAKE not in given.parameters:
        raise ValueError(
            f"@task.lance_spark: {function.__name__} has no argument {_LAKE!r}; it is the catalog, from "
            f"which the function opens tables: {_LAKE}.table('db.t').read()"
        )

    if iscoroutinefunction(function) or isasyncgenfunction(function) or isgeneratorfunction(function):
        raise ValueError(
            f"@task.lance_spark: {function.__name__} is asynchronous or yields, so that a call doesn't run "
            "it; make it a function that returns its result"
        )

    position = list(given.parameters).index(_LAKE)
    is_positional = given.parameters[_LAKE].kind in (
        Parameter.POSITIONAL_ONLY,
        Parameter.POSITIONAL_OR_KEYWORD,
    )

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if is_positional and len(args) >= position:
            # In the DAG, positional arguments are passed without `lake`.
            args = (*args[:position], kwargs.pop(_LAKE), *args[position:])
        return function(*args, **kwargs)

    others = [parameter for parameter in given.parameters.values() if parameter.name != _LAKE]
    rest = [parameter for parameter in others if parameter.kind is Parameter.VAR_KEYWORD]
    lake = Parameter(_LAKE, Parameter.KEYWORD_ONLY, default=None)
    parameters = [*(parameter for parameter in others if parameter not in rest), lake, *rest]
    called.__signature__ = given.replace(parameters=parameters)  # type: ignore[attr-defined]
    return called


def lance_spark_task(
    python_callable: Callable[..., Any] | None = None, multiple_outputs: bool | None = None, **kwargs: Any
) -> TaskDecorator:
    """Make a task of a function that uses Spark and the tables of a connection; Airflow calls it by its name.

    Args:
        python_callable: the function.
        multiple_outputs: whether each key of the dictionary that it returns is an XCom of its own.
        kwargs: arguments of `LanceSparkDecoratedOperator`, and of every task.
    """
    return task_decorator_factory(
        python_callable=python_callable,
        multiple_outputs=multiple_outputs,
        decorated_operator_class=LanceSparkDecoratedOperator,
        **kwargs,
    )
