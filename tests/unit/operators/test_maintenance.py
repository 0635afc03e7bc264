"""Arguments of maintenance operators, checked when the DAG is parsed."""

from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_lancens.operators import (
    LanceCleanUpVersionsOperator,
    LanceCompactTableOperator,
    LanceCreateIndexOperator,
    LanceRemoveOrphansOperator,
)

INDEX = {"column": "v", "index_type": "IVF_PQ"}


@pytest.mark.parametrize(
    ("operator", "arguments", "message"),
    [
        (LanceCompactTableOperator, {"options": {"rows": 1}}, "options: .*'rows'"),
        (LanceCompactTableOperator, {"options": {"num_threads": 0}}, "options: .*num_threads: .*at least 1"),
        (
            LanceCreateIndexOperator,
            {**INDEX, "index_type": "TREE"},
            "index_type: expected one of BTREE.*, got 'TREE'",
        ),
        (
            LanceCreateIndexOperator,
            {**INDEX, "options": {"metric": "far"}},
            "expected one of l2, cosine, dot.*, got 'far'",
        ),
        (
            LanceCreateIndexOperator,
            {**INDEX, "if_exists": "maybe"},
            "if_exists: expected one of skip, extend.*, got 'maybe'",
        ),
        (LanceCreateIndexOperator, {**INDEX, "segments": 0}, "segments: .*at least 1, got 0"),
        (LanceCleanUpVersionsOperator, {"older_than": 14}, "older_than: expected a timedelta.*got 14"),
        (LanceCleanUpVersionsOperator, {"older_than": timedelta(-1)}, "older_than: .*at least 0"),
        (LanceCleanUpVersionsOperator, {"keep_versions": 0}, "keep_versions: .*at least 1"),
        (
            LanceCleanUpVersionsOperator,
            {"keys_older_than": 400},
            "keys_older_than: expected a timedelta.*got 400",
        ),
        (LanceRemoveOrphansOperator, {"older_than": "a week"}, "older_than: expected a timedelta.*'a week'"),
    ],
)
def test_an_invalid_argument_fails_when_the_dag_is_parsed(
    operator: type[Any], arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        operator(task_id="maintain", table="db$t", **arguments)
