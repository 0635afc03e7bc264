"""Invalid arguments of operators fail when the DAG is parsed."""

import re
from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.operators.changes import LanceFindChangesOperator
from airflow_provider_lancens.operators.namespaces import (
    LanceCreateNamespaceOperator,
    LanceDropNamespaceOperator,
)
from airflow_provider_lancens.operators.release_sets import (
    LanceFindReleaseOperator,
    LanceReleaseOperator,
)
from airflow_provider_lancens.operators.restore_table import LanceRestoreOperator
from airflow_provider_lancens.operators.stream import LanceStreamOperator
from airflow_provider_lancens.operators.tables import (
    LanceDeclareTableOperator,
    LanceDeregisterTableOperator,
    LanceDropTableOperator,
    LanceRegisterTableOperator,
)
from airflow_provider_lancens.operators.version_authority import (
    LanceAdvanceVersionOperator,
    LanceCheckTableOperator,
    LanceConvertTableOperator,
)
from airflow_provider_lancens.operators.versions import LanceDeleteTagOperator, LanceTagOperator
from airflow_provider_lancens.sensors.table_version_sensor import LanceTableVersionSensor


@pytest.mark.parametrize(
    ("operator", "arguments", "message"),
    [
        (
            LanceCreateNamespaceOperator,
            {"namespace": "a", "if_exists": "ignore"},
            "if_exists: expected one of skip, fail, got 'ignore'",
        ),
        (
            LanceDropNamespaceOperator,
            {"namespace": "a", "if_missing": "x"},
            "if_missing: expected one of skip, fail, got 'x'",
        ),
        (
            LanceDeclareTableOperator,
            {"table": "a$b", "if_exists": "replace"},
            "expected one of skip, fail, got",
        ),
        (LanceDeclareTableOperator, {"table": "a$b", "version_authority": "impl"}, "storage, catalog"),
        (LanceConvertTableOperator, {"table": "a$b", "version_authority": "hms"}, "storage, catalog"),
        (LanceDeclareTableOperator, {"table": ["a$b", "a$c"], "location": "/a"}, "single table only"),
        (
            LanceDeclareTableOperator,
            {"table": "a$b", "version_authority": "storage", "properties": {"managed_by": "impl"}},
            "not allowed with properties",
        ),
        (LanceDeregisterTableOperator, {"table": "a$b", "if_missing": ""}, "expected one of skip, fail, got"),
        (
            LanceRegisterTableOperator,
            {"table": "a$b", "location": "/a/b", "if_exists": "overwrite"},
            "expected one of skip, fail, replace, got",
        ),
        (LanceDropTableOperator, {"table": "a$b", "if_missing": "x"}, "expected one of skip, fail, got"),
        (LanceCheckTableOperator, {"table": "a$b", "if_inconsistent": "x"}, "fail, report, adopt"),
        (LanceDeleteTagOperator, {"table": "a$b", "tag": "t", "if_missing": "x"}, "skip, fail"),
        (
            LanceFindChangesOperator,
            {"table": "a$b", "bookmark": "t", "if_unavailable": "skip"},
            "expected one of fail, read_all, got",
        ),
    ],
)
def test_an_invalid_choice_is_refused_with_the_allowed_ones(
    operator: type[Any], arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        operator(task_id="task", **arguments)


@pytest.mark.parametrize(
    "operator",
    [
        LanceCreateNamespaceOperator,
        LanceDropNamespaceOperator,
        LanceDeclareTableOperator,
        LanceRegisterTableOperator,
        LanceDeregisterTableOperator,
        LanceDropTableOperator,
        LanceAdvanceVersionOperator,
        LanceConvertTableOperator,
        LanceCheckTableOperator,
        LanceTagOperator,
        LanceDeleteTagOperator,
    ],
)
def test_arguments_that_name_things_are_templated(operator: type[Any]) -> None:
    assert {"lance_conn_id"} < set(operator.template_fields)
    assert {"namespace", "table"} & set(operator.template_fields)


STAGED = 2**63 + 7


@pytest.mark.parametrize(
    ("operator", "arguments"),
    [
        (LanceTagOperator, {"table": "a$b", "version": str(STAGED), "tag": "t"}),
        (LanceRestoreOperator, {"table": "a$b", "version": STAGED}),
        (LanceAdvanceVersionOperator, {"table": "a$b", "expected_version": 1, "version": STAGED}),
        (LanceReleaseOperator, {"release_set": "a$r", "tables": [{"table": "a$b", "version": STAGED}]}),
        (LanceReleaseOperator, {"release_set": "a$r", "tables": {"a$b": STAGED}}),
        (LanceFindReleaseOperator, {"release_set": {"table": "a$r", "version": STAGED}}),
        (LanceTableVersionSensor, {"table": "a$b", "min_version": STAGED}),
        (LanceTableVersionSensor, {"table": "a$b", "after_version": str(STAGED)}),
    ],
)
def test_a_staged_version_is_refused_where_a_version_is_expected(
    operator: type[Any], arguments: dict[str, Any]
) -> None:
    with pytest.raises(AirflowFailException, match=r"number of a staged version, .* publish it first"):
        operator(task_id="task", **arguments).execute({"ti": None})


@pytest.mark.parametrize("value", [timedelta(0), timedelta(-1), 30, "P30D"])
def test_an_invalid_expiry_of_a_tag_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="expires_after: expected a timedelta of at least a millisecond"):
        LanceTagOperator(task_id="task", table="a$b", version=1, tag="t", expires_after=value)


@pytest.mark.parametrize("tables", ["a$b", 1])
def test_the_tables_of_a_release_are_a_list_or_a_mapping(tables: Any) -> None:
    message = f"tables: expected a list of XComs .*, or a mapping .*, got {re.escape(repr(tables))}"
    with pytest.raises(AirflowFailException, match=message):
        LanceReleaseOperator(task_id="task", release_set="a$r", tables=tables).execute({})


def test_the_source_of_a_stream_is_a_function() -> None:
    source: Any = "orders"
    with pytest.raises(TypeError, match="source: expected a function, got a value of type str"):
        LanceStreamOperator(task_id="task", table="a$b", source=source, checkpoint="/c")
