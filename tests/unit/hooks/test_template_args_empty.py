"""Arguments that are given by templates, and come out empty; and flags, which take no templates."""

import inspect
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from airflow.sdk import DAG, BaseOperator
from airflow.sdk.definitions._internal.mixins import ResolveMixin

from airflow_provider_lancens import operators, sensors
from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.template_args import refuse_empty
from airflow_provider_lancens.operators import (
    LanceAlterTableOperator,
    LanceAppendOperator,
    LanceCreateIndexOperator,
    LanceMaintainOperator,
    LanceOverwriteOperator,
    LanceReleaseOperator,
)
from airflow_provider_lancens.operators.decorator import lance_spark_task
from airflow_provider_lancens.sensors import LanceTableVersionSensor

REQUIRED: dict[str, Any] = {
    "bookmark": "consumer",
    "checkpoint": "/checkpoints",
    "column": "c",
    "columns": ["a"],
    "expected_version": 1,
    "function": lambda: None,
    "index_type": "BTREE",
    "location": "/data/t",
    "namespace": "db",
    "on": ["id"],
    "release_set": "db$releases",
    "source": lambda: None,
    "staged": {"table": "db$t", "version": 3},
    "table": "db$t",
    "tables": {"db$t": 1},
    "tag": "gold",
    "version": 1,
    "version_authority": "catalog",
    "where": "n = 1",
}
MAY_BE_EMPTY = {
    "max_deleted_share",
    "max_removal_delay",
    "max_unindexed_share",
    "min_removable_versions",
    "min_small_fragments",
}
COLUMN_CHANGES = {"rename", "types", "nullable", "add", "expressions", "drop"}
"""Arguments of LanceAlterTableOperator of which it takes at least one."""
KINDS = [
    kind
    for package in (operators, sensors)
    for name in package.__all__
    if inspect.isclass(kind := getattr(package, name)) and issubclass(kind, BaseOperator)
]


class Nothing(ResolveMixin):
    """Another task's output, if that was marked as success."""

    def iter_references(self) -> Iterator[Any]:
        return iter(())

    def resolve(self, context: Any) -> Any:
        return None


def parameters(kind: type[Any]) -> dict[str, inspect.Parameter]:
    found: dict[str, inspect.Parameter] = {}
    for one in reversed(kind.__mro__):
        if one.__module__.startswith("airflow_provider_lancens") and "__init__" in vars(one):
            found |= inspect.signature(inspect.unwrap(vars(one)["__init__"])).parameters
    return found


def fields() -> Iterator[Any]:
    for kind in KINDS:
        for name in kind.template_fields:
            if name in parameters(kind):
                yield pytest.param(kind, name, id=f"{kind.__name__}-{name}")


def flags() -> Iterator[Any]:
    for kind in KINDS:
        for name, one in parameters(kind).items():
            if isinstance(one.default, bool):
                yield pytest.param(kind, name, id=f"{kind.__name__}-{name}")


def parsed(kind: type[Any], given: dict[str, Any]) -> BaseOperator:
    required = {
        name: REQUIRED[name]
        for name, one in parameters(kind).items()
        if one.default is inspect.Parameter.empty and one.kind is one.KEYWORD_ONLY
    }
    if kind is LanceAlterTableOperator and not given.keys() & COLUMN_CHANGES:
        required["drop"] = ["a"]
    if kind is LanceCreateIndexOperator and "max_unindexed_share" in given:
        required["if_exists"] = "extend"
    task: BaseOperator = kind(task_id="task", **{**required, **given})
    return task


def rendered(kind: type[Any], given: dict[str, Any], *, native: bool = False, **context: Any) -> BaseOperator:
    with DAG(dag_id="dag", render_template_as_native_obj=native):
        task = parsed(kind, given)
    task.render_template_fields(context)  # type: ignore[arg-type]
    return task


@pytest.mark.parametrize("given", ["{{ none }}", "{{ empty }}", Nothing()], ids=["None", "empty", "output"])
@pytest.mark.parametrize(("kind", "argument"), list(fields()))
def test_an_argument_that_came_out_empty_is_refused(kind: type[Any], argument: str, given: Any) -> None:
    task = rendered(kind, {argument: given}, none=None, empty="")

    if argument in MAY_BE_EMPTY:
        task.pre_execute({})
        return
    with pytest.raises(AirflowFailException, match=rf"^{argument}: .* marked as success .* Clear that task"):
        task.pre_execute({})


def test_an_argument_that_was_left_out_or_has_a_value_is_accepted() -> None:
    rendered(LanceReleaseOperator, {}).pre_execute({})
    rendered(LanceReleaseOperator, {"expected_version": None}).pre_execute({})
    task = rendered(LanceReleaseOperator, {"expected_version": "{{ zero }}"}, native=True, zero=0)
    task.pre_execute({})
    assert vars(task)["expected_version"] == 0


@pytest.mark.parametrize("argument", ["after_version", "min_version"])
@pytest.mark.parametrize("value", [None, ""])
def test_a_bound_of_one_table_that_came_out_empty_is_refused(argument: str, value: Any) -> None:
    bounds = {"db$a": "{{ bound }}", "db$b": 3}
    task = rendered(LanceTableVersionSensor, {argument: bounds}, bound=value)

    with pytest.raises(AirflowFailException, match=rf"^{argument}: "):
        task.pre_execute({})
    rendered(LanceTableVersionSensor, {argument: bounds}, bound=2).pre_execute({})


def test_an_argument_of_a_mapped_task_that_came_out_empty_is_refused() -> None:
    with DAG(dag_id="dag"):
        tasks = LanceAppendOperator.partial(task_id="task", source=lambda: None, key="{{ empty }}").expand(
            table=["db$a", "db$b"]
        )
    context: Any = {"ti": None, "empty": ""}
    task = tasks.unmap({"table": "db$a"})
    task._do_render_template_fields(task, tasks.template_fields, context, tasks.get_template_env(), set())

    with pytest.raises(AirflowFailException, match=r"^key: "):
        task.pre_execute({})


def overwrites(**given: Any) -> Any:
    return LanceOverwriteOperator.partial(task_id="task", table="db$t", source=lambda spark: None, **given)


def waits(**given: Any) -> Any:
    return LanceTableVersionSensor.partial(task_id="task", table="db$t", **given)


def item_of(expand: Callable[[], Any], index: int, listing: Any = None) -> BaseOperator:
    """Return the rendered operator of an item of a mapped task.

    Args:
        expand: maps the task.
        index: that of the item.
        listing: what the task `listing` returned.
    """
    with DAG(dag_id="dag") as dag:
        tasks = expand()
    pulled = {"xcom_pull": lambda **arguments: listing, "_upstream_map_indexes": {}}
    context: Any = {
        "ti": SimpleNamespace(map_index=index, **pulled),
        "dag": dag,
        "dag_run": SimpleNamespace(conf={}),
        "params": {},
        "none": None,
    }
    tasks.render_template_fields(context)
    task: BaseOperator = context["task"]
    task.pre_execute(context)
    return task


def listed() -> Any:
    return BaseOperator(task_id="listing").output


@pytest.mark.parametrize(
    ("expand", "argument"),
    [
        (lambda: overwrites().expand(where=["day = 1", None]), "where"),
        (lambda: overwrites().expand(key=["a", ""]), "key"),
        (lambda: overwrites().expand(where=["day = 1", "{{ none }}"]), "where"),
        (lambda: overwrites().expand_kwargs([{"where": "day = 1"}, {"where": None}]), "where"),
        (lambda: overwrites().expand(key=["a"], where=["day = 1", None]), "where"),
        (lambda: overwrites().expand_kwargs([{"on": ["day"]}, {"on": None}]), "on"),
        (lambda: waits().expand(after_version=[3, None]), "after_version"),
        (lambda: waits().expand_kwargs([{"min_version": 3}, {"min_version": None}]), "min_version"),
        (
            lambda: LanceReleaseOperator.partial(
                task_id="task", release_set="db$r", tables={"db$t": 1}
            ).expand(expected_version=[3, None]),
            "expected_version",
        ),
    ],
)
def test_an_argument_that_an_item_of_a_mapped_task_gives_and_is_empty_is_refused(
    expand: Callable[[], Any], argument: str
) -> None:
    item_of(expand, 0)
    with pytest.raises(AirflowFailException, match=rf"^{argument}: .* marked as success .* Clear that task"):
        item_of(expand, 1)


@pytest.mark.parametrize("value", [None, ""])
def test_an_empty_item_of_a_list_that_another_task_returned_is_refused(value: Any) -> None:
    said = r"^key: item 1, which the task is mapped over, gives"

    with pytest.raises(AirflowFailException, match=said):
        item_of(lambda: overwrites().expand(key=listed()), 1, ["a", value])
    with pytest.raises(AirflowFailException, match=said):
        item_of(lambda: overwrites().expand_kwargs(listed()), 1, [{"key": "a"}, {"key": value}])


def test_an_item_of_a_mapped_task_may_leave_arguments_out() -> None:
    task = item_of(lambda: overwrites().expand_kwargs([{"where": "day = 1"}, {"key": "all"}]), 1)
    assert vars(task)["where"] is None
    item_of(lambda: overwrites(where=None).expand(key=["a", "b"]), 1)


def test_a_threshold_of_an_item_of_a_mapped_task_may_be_empty() -> None:
    def expand() -> Any:
        partial = LanceMaintainOperator.partial(task_id="task", table="db$t")
        return partial.expand(max_deleted_share=[0.2, None])

    assert vars(item_of(expand, 1))["max_deleted_share"] is None


def test_the_arguments_of_a_mapped_function_may_be_empty() -> None:
    def load(lake: Any, spark_conn_id: Any) -> None:
        pass

    task: Any = lance_spark_task(load)
    item_of(lambda: task.expand(spark_conn_id=["a", None]).operator, 1)


@pytest.mark.parametrize("argument", ["lance_conn_id", "spark_conn_id"])
def test_a_connection_of_a_decorated_function_that_came_out_empty_is_refused(argument: str) -> None:
    def load(lake: Any, day: Any) -> None:
        pass

    with DAG(dag_id="dag"):
        task: Any = lance_spark_task(load, **{argument: "{{ empty }}"})(None).operator
    task.render_template_fields({"empty": ""})

    with pytest.raises(AirflowFailException, match=rf"^{argument}: it is given by a template"):
        task.pre_execute({})


def test_what_another_task_returned_for_an_item_is_not_rendered() -> None:
    task = item_of(lambda: overwrites().expand(where=listed()), 0, ["day = '{{ none }}'"])

    assert vars(task)["where"] == "day = '{{ none }}'"


def test_a_field_that_a_function_leaves_empty_is_refused() -> None:
    task = rendered(LanceReleaseOperator, {"key": lambda context, jinja_env: None})

    with pytest.raises(AirflowFailException, match=r"^key: it is given by a template"):
        task.pre_execute({})


@pytest.mark.parametrize("value", ["false", "{{ params.flag }}", None, 1, Nothing()])
@pytest.mark.parametrize(("kind", "argument"), list(flags()))
def test_a_flag_that_is_neither_true_nor_false_is_refused_when_the_dag_is_parsed(
    kind: type[Any], argument: str, value: Any
) -> None:
    with pytest.raises(TypeError, match=rf"^{argument}: expected True or False, got ") as refused:
        parsed(kind, {argument: value})
    is_resolved_later = value == "{{ params.flag }}" or isinstance(value, Nothing)
    assert ("this argument isn't templated" in str(refused.value)) == is_resolved_later


def test_an_item_of_a_mapped_task_may_give_a_flag() -> None:
    task = item_of(lambda: overwrites().expand(stage=listed()), 1, [False, True])

    assert cast("LanceOverwriteOperator", task).rendered_change().stage


def test_what_is_passed_to_a_function_and_empty_is_refused() -> None:
    for accepted in ({"table": "t"}, {"table": "t", "version": 3}, {"version": "gold", "filter": None}):
        refuse_empty(("version",), accepted)
    for value in (None, ""):
        with pytest.raises(
            AirflowFailException, match=rf"^version={value!r}: it is passed, but empty, .* marked as success"
        ):
            refuse_empty(("version", "key"), {"table": "t", "version": value})
