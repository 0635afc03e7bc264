"""Mappings and lists rendered from a template: accepted, or refused by name."""

from collections.abc import Callable
from typing import Any

import pytest
from airflow.sdk import DAG, BaseOperator

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.operators.alter_table import LanceAlterTableOperator
from airflow_provider_lancens.operators.changes import LanceFindChangesOperator
from airflow_provider_lancens.operators.computed_column import LanceComputeColumnOperator
from airflow_provider_lancens.operators.delete_rows import LanceDeleteOperator
from airflow_provider_lancens.operators.ingest import (
    LanceAppendOperator,
    LanceOverwriteOperator,
    LanceUpsertOperator,
)
from airflow_provider_lancens.operators.maintenance import (
    LanceCompactTableOperator,
    LanceCreateIndexOperator,
)
from airflow_provider_lancens.operators.namespaces import (
    LanceCreateNamespaceOperator,
    LanceDropNamespaceOperator,
)
from airflow_provider_lancens.operators.release_sets import (
    LanceFindReleaseOperator,
    LanceReleaseOperator,
)
from airflow_provider_lancens.operators.restore_table import LanceRestoreOperator
from airflow_provider_lancens.operators.tables import LanceDeclareTableOperator, LanceRegisterTableOperator
from airflow_provider_lancens.operators.version_authority import LanceConvertTableOperator
from airflow_provider_lancens.sensors.table_version_sensor import LanceTableVersionSensor

Rendered = Callable[..., BaseOperator]

VALUES: dict[str, Any] = {
    "mapping": {"mine": "1", "secret": "hush"},
    "list": ["db$a", "db$b"],
    "text": "hush",
    "number": 2013,
    "odd": {1: "a"},
    "none": None,
    "blank": "a b",
    "flag": True,
    "no": False,
    "all": "True",
}


def rows(spark: Any, **arguments: Any) -> Any:
    raise AssertionError("no Spark here")


OPERATORS: dict[str, tuple[type[BaseOperator], dict[str, Any]]] = {
    "create": (LanceCreateNamespaceOperator, {"namespace": "db"}),
    "drop": (LanceDropNamespaceOperator, {"namespace": "db"}),
    "declare": (LanceDeclareTableOperator, {"table": "db$t"}),
    "register": (LanceRegisterTableOperator, {"table": "db$t", "location": "/data/t"}),
    "ingest": (LanceAppendOperator, {"table": "db$t", "source": rows}),
    "overwrite": (LanceOverwriteOperator, {"table": "db$t", "source": rows}),
    "upsert": (LanceUpsertOperator, {"table": "db$t", "source": rows, "on": ["n"]}),
    "compact": (LanceCompactTableOperator, {"table": "db$t"}),
    "index": (LanceCreateIndexOperator, {"table": "db$t", "column": "c", "index_type": "BTREE"}),
    "restore": (LanceRestoreOperator, {"table": "db$t", "version": 1}),
    "compute": (
        LanceComputeColumnOperator,
        {"table": "db$t", "column": "c", "function": rows, "columns": ["a"]},
    ),
    "delete": (LanceDeleteOperator, {"table": "db$t", "where": "n = 1"}),
    "alter": (LanceAlterTableOperator, {"table": "db$t", "add": {"x": "int"}}),
    "convert": (LanceConvertTableOperator, {"table": "db$t", "version_authority": "storage"}),
    "find changes": (LanceFindChangesOperator, {"table": "db$t", "bookmark": "b"}),
    "release": (LanceReleaseOperator, {"release_set": "db$r", "tables": {"db$t": 1}}),
    "find release": (LanceFindReleaseOperator, {"release_set": "db$r"}),
    "wait": (LanceTableVersionSensor, {"after_version": 1}),
}
MAPPINGS = [
    ("create", "properties"),
    ("declare", "properties"),
    ("register", "properties"),
    ("ingest", "inputs"),
    ("ingest", "op_kwargs"),
    ("alter", "add"),
    ("alter", "expressions"),
    ("alter", "rename"),
    ("alter", "types"),
]


@pytest.fixture
def rendered(connect: Callable[..., str]) -> Rendered:
    """An operator whose argument is a template, after Airflow has rendered it."""
    lake = connect(host="metastore.invalid")

    def make(name: str, argument: str, value: str, *, native: bool = False) -> BaseOperator:
        kind, arguments = OPERATORS[name]
        template = {argument: f"{{{{ params.{value} }}}}"}
        with DAG(dag_id="dag", params=VALUES, render_template_as_native_obj=native):
            task = kind(task_id="task", lance_conn_id=lake, **{**arguments, **template})
        task.render_template_fields({"params": VALUES})  # type: ignore[typeddict-item]
        return task

    return make


def execute(task: BaseOperator) -> Any:
    context: Any = {"run_id": "1"}
    return task.execute(context)


@pytest.mark.parametrize(("operator", "argument"), MAPPINGS)
def test_a_mapping_rendered_as_text_fails_without_retry(
    rendered: Rendered, operator: str, argument: str
) -> None:
    with pytest.raises(
        AirflowFailException, match=rf"^{argument}: is of type str; expected a mapping.*; a template.*native"
    ) as failed:
        execute(rendered(operator, argument, "mapping"))
    assert "hush" not in str(failed.value)


@pytest.mark.parametrize(("operator", "argument"), MAPPINGS)
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("number", "is of type int; expected a mapping of names to values"),
        ("list", "is of type list; expected a mapping of names to values"),
        ("odd", "contains the name 1 of type int; expected text"),
    ],
)
def test_an_invalid_mapping_fails_without_retry(
    rendered: Rendered, operator: str, argument: str, value: str, message: str
) -> None:
    with pytest.raises(AirflowFailException, match=rf"^{argument}: {message}$"):
        execute(rendered(operator, argument, value, native=True))


@pytest.mark.parametrize(
    ("operator", "value", "native", "message"),
    [
        ("drop", "list", False, r"is of type str; expected a list of identifiers, or \['\*'\]; a template"),
        ("drop", "mapping", True, "is of type dict; expected a list"),
        ("drop", "number", True, "is of type int; expected a list"),
    ],
)
def test_an_invalid_list_fails_without_retry(
    rendered: Rendered, operator: str, value: str, native: bool, message: str
) -> None:
    with pytest.raises(AirflowFailException, match=f"^foreign_tables: {message}"):
        execute(rendered(operator, "foreign_tables", value, native=native))


@pytest.mark.parametrize(
    ("value", "native", "message"),
    [
        ("list", False, r"polling table \"\['db\$a', .*only letters, digits and '_'"),
        ("number", True, r"^table: is of type int; expected database\$table, or a list of these"),
        ("mapping", True, r"^table: is of type dict; expected database\$table, or a list of these"),
        ("none", True, "^table=None: is not a table"),
    ],
)
def test_a_sensor_on_an_invalid_table_or_list_fails_without_retry(
    rendered: Rendered, value: str, native: bool, message: str
) -> None:
    with pytest.raises(AirflowFailException, match=message):
        rendered("wait", "table", value, native=native).poke({})  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("operator", "argument", "value", "message"),
    [
        (
            "convert",
            "version_authority",
            "text",
            "^version_authority: expected one of storage, catalog, got 'hush'$",
        ),
        ("find changes", "bookmark", "blank", "^bookmark='a b': is not a valid tag name"),
        ("release", "release_set", "number", "^release_set=2013"),
        ("find release", "release_set", "number", "^release_set=2013: 2013 is not a string"),
        ("create", "namespace", "list", "^namespace=.* is not a string"),
        ("delete", "where", "flag", "^where=True: is of type bool; expected a condition as text"),
        ("compute", "where", "flag", "^where=True: is of type bool; expected a condition as text"),
    ],
)
def test_an_invalid_value_is_refused_by_the_name_of_the_operators_argument(
    rendered: Rendered, operator: str, argument: str, value: str, message: str
) -> None:
    with pytest.raises(AirflowFailException, match=message):
        execute(rendered(operator, argument, value, native=True))


@pytest.mark.parametrize("operator", ["create", "drop"])
@pytest.mark.parametrize("namespace", [None, ""])
def test_the_root_is_no_namespace_to_create_or_drop(
    connect: Callable[..., str], operator: str, namespace: Any
) -> None:
    kind, _ = OPERATORS[operator]
    task = kind(task_id="task", lance_conn_id=connect(host="metastore.invalid"), namespace=namespace)

    with pytest.raises(AirflowFailException, match=f"^namespace={namespace!r}: is not a namespace"):
        execute(task)


def test_text_that_is_the_name_of_a_boolean_is_rendered_as_text(rendered: Rendered) -> None:
    task: Any = rendered("delete", "where", "all", native=True)

    assert task.where == "True"


@pytest.mark.parametrize("operator", ["delete", "compute"])
@pytest.mark.parametrize("flag", ["flag", "no"])
def test_a_check_that_a_template_renders_as_text_is_no_condition(
    rendered: Rendered, operator: str, flag: str
) -> None:
    text = str(VALUES[flag])

    with pytest.raises(AirflowFailException, match=f"^where='{text}': .* write {text.upper()} for"):
        execute(rendered(operator, "where", flag))


@pytest.mark.parametrize(("operator", "argument"), [("overwrite", "where"), ("upsert", "delete_when")])
@pytest.mark.parametrize("flag", ["flag", "no"])
def test_a_check_that_a_template_renders_as_text_chooses_no_rows_to_replace_or_delete(
    rendered: Rendered, operator: str, argument: str, flag: str
) -> None:
    task: Any = rendered(operator, argument, flag)

    with pytest.raises(AirflowFailException, match=f"^{argument}='{VALUES[flag]}': .* a Python boolean"):
        task.rendered_change()


def test_a_check_that_a_template_renders_as_text_filters_no_files() -> None:
    files = {"format": "csv", "paths": ["/in"], "filter": "{{ params.flag }}"}
    with DAG(dag_id="dag", params=VALUES):
        task: Any = LanceAppendOperator(task_id="task", table="db$t", source=files)
    task.render_template_fields({"params": VALUES})

    with pytest.raises(AirflowFailException, match=r"^source: filter='True': .* a Python boolean"):
        task._parsed_source()


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("field", ["filter", "columns", "schema"])
def test_files_are_not_read_as_a_whole_if_a_field_comes_out_empty(field: str, native: bool) -> None:
    files = {"format": "csv", "paths": ["{{ params.text }}"], field: "{{ params.none }}"}
    with DAG(dag_id="dag", params=VALUES, render_template_as_native_obj=native):
        task = LanceAppendOperator(task_id="task", table="db$t", source=files)
    task.render_template_fields({"params": VALUES})  # type: ignore[typeddict-item]

    with pytest.raises(AirflowFailException, match=rf"^source: {field}: .* came out empty"):
        task.pre_execute({})  # type: ignore[typeddict-item]


@pytest.mark.parametrize("operator", ["ingest", "compact", "index"])
def test_sparks_configuration_is_a_mapping_in_every_operator(rendered: Rendered, operator: str) -> None:
    with pytest.raises(
        AirflowFailException, match=r"^spark_conf: is of type str; expected a mapping.*; a template"
    ):
        rendered(operator, "spark_conf", "mapping").spark_deployment()  # type: ignore[attr-defined]

    deployment = rendered(operator, "spark_conf", "mapping", native=True).spark_deployment()  # type: ignore[attr-defined]
    assert deployment.conf == VALUES["mapping"]


@pytest.mark.parametrize("operator", ["ingest", "compact", "index"])
def test_templates_in_options_are_refused_when_the_dag_is_parsed(rendered: Rendered, operator: str) -> None:
    with pytest.raises(TypeError, match=r"^options: is of type str; expected a mapping of names to values$"):
        rendered(operator, "options", "mapping")
