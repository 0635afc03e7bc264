"""Invalid arguments of operators fail when the DAG is parsed."""

from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_lancens.operators.changes import LanceFindChangesOperator
from airflow_provider_lancens.operators.namespaces import (
    LanceCreateNamespaceOperator,
    LanceDropNamespaceOperator,
)
from airflow_provider_lancens.operators.tables import (
    LanceDeclareTableOperator,
    LanceDeregisterTableOperator,
    LanceDropTableOperator,
    LanceRegisterTableOperator,
)
from airflow_provider_lancens.operators.version_authority import (
    LanceCheckTableOperator,
    LanceConvertTableOperator,
)
from airflow_provider_lancens.operators.versions import (
    LanceAdvanceTableVersionOperator,
    LanceDeleteTagOperator,
    LanceTagVersionOperator,
)


@pytest.mark.parametrize(
    ("operator", "arguments", "message"),
    [
        (LanceCreateNamespaceOperator, {"namespace": "a", "if_exists": "ignore"}, "if_exists='ignore'"),
        (LanceDropNamespaceOperator, {"namespace": "a", "if_missing": "x"}, "if_missing='x'"),
        (LanceDropNamespaceOperator, {"namespace": "a", "behavior": "CASCADE"}, "restrict, cascade"),
        (LanceDeclareTableOperator, {"table": "a$b", "if_exists": "replace"}, "allowed: skip, fail"),
        (LanceDeregisterTableOperator, {"table": "a$b", "if_missing": ""}, "allowed: skip, fail"),
        (
            LanceRegisterTableOperator,
            {"table": "a$b", "location": "/a/b", "if_exists": "overwrite"},
            "allowed: skip, fail, replace",
        ),
        (LanceDropTableOperator, {"table": "a$b", "if_missing": "x"}, "allowed: skip, fail"),
        (LanceCheckTableOperator, {"table": "a$b", "if_inconsistent": "x"}, "fail, report, adopt"),
        (LanceDeleteTagOperator, {"table": "a$b", "tag": "t", "if_missing": "x"}, "skip, fail"),
        (
            LanceFindChangesOperator,
            {"table": "a$b", "bookmark": "t", "if_expired": "skip"},
            "allowed: fail, read_all",
        ),
    ],
)
def test_an_invalid_choice_is_refused_with_the_allowed_ones(
    operator: type[Any], arguments: dict[str, str], message: str
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
        LanceAdvanceTableVersionOperator,
        LanceConvertTableOperator,
        LanceCheckTableOperator,
        LanceTagVersionOperator,
        LanceDeleteTagOperator,
    ],
)
def test_arguments_that_name_things_are_templated(operator: type[Any]) -> None:
    assert {"lance_conn_id"} < set(operator.template_fields)
    assert {"namespace", "table"} & set(operator.template_fields)


@pytest.mark.parametrize("value", [timedelta(0), timedelta(-1), 30, "P30D"])
def test_an_invalid_expiry_of_a_tag_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="expires_after: expected a timedelta of at least a millisecond"):
        LanceTagVersionOperator(task_id="task", table="a$b", version=1, tag="t", expires_after=value)
