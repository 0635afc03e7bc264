"""Arguments of maintenance operators, checked when the DAG is parsed or once they are rendered."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.operators import (
    LanceCleanUpVersionsOperator,
    LanceCompactTableOperator,
    LanceCreateIndexOperator,
    LanceMaintainOperator,
    LanceRemoveOrphansOperator,
)
from airflow_provider_lancens.operators._spark.maintenance_args import parse_thresholds
from airflow_provider_lancens.spark.maintenance.maintenance_options import DEFAULT_THRESHOLDS, Thresholds

INDEX = {"column": "day", "index_type": "BITMAP"}
VECTOR_INDEX = {"column": "v", "index_type": "IVF_PQ"}


@pytest.mark.parametrize(
    ("operator", "arguments", "message"),
    [
        (LanceMaintainOperator, {"min_small_fragments": 0}, "min_small_fragments: .*at least 1, got 0"),
        (LanceMaintainOperator, {"max_deleted_share": 10}, "max_deleted_share: .*from 0 to 1, got 10"),
        (LanceMaintainOperator, {"max_unindexed_share": -1}, "max_unindexed_share: .*got -1"),
        (LanceMaintainOperator, {"max_removal_delay": 7}, "max_removal_delay: expected a timedelta"),
        (LanceMaintainOperator, {"compaction": {"rows": 1}}, "compaction: .*'rows'"),
        (
            LanceMaintainOperator,
            {"indices": [{"column": "day"}]},
            r"indices\[0\]: requires 'index_type'",
        ),
        (LanceMaintainOperator, {"indices": [INDEX, {**INDEX, "type": 1}]}, r"indices\[1\]: has 'type'"),
        (
            LanceMaintainOperator,
            {"indices": [{**INDEX, "index_type": "X"}]},
            r"indices\[0\]: .*expected one of .*, got 'X'",
        ),
        (LanceMaintainOperator, {"indices": [INDEX, INDEX]}, "indices: 'day_idx' is the name of more"),
        (LanceMaintainOperator, {"segments": 0}, "segments: .*at least 1"),
        (LanceMaintainOperator, {"older_than": 14}, "older_than: expected a timedelta"),
        (LanceMaintainOperator, {"keep_versions": 0}, "keep_versions: .*at least 1"),
        (LanceMaintainOperator, {"keys_older_than": 1}, "keys_older_than: expected a timedelta"),
        (LanceMaintainOperator, {"orphans_older_than": 1}, "orphans_older_than: expected a timedelta"),
        (
            LanceMaintainOperator,
            {"orphans_older_than": timedelta(minutes=9)},
            "orphans_older_than: expected at least 0:10:00, got 0:09:00",
        ),
        (LanceCompactTableOperator, {"min_small_fragments": "10"}, "min_small_fragments: .*got '10'"),
        (LanceCompactTableOperator, {"max_deleted_share": 2}, "max_deleted_share: .*got 2"),
        (
            LanceCreateIndexOperator,
            {**INDEX, "max_unindexed_share": 0.1},
            "max_unindexed_share: requires if_exists='extend' or 'replace', got 'skip'",
        ),
        (
            LanceCreateIndexOperator,
            {**INDEX, "if_exists": "extend", "max_unindexed_share": 2},
            "max_unindexed_share: .*got 2",
        ),
        (LanceCleanUpVersionsOperator, {"min_removable_versions": 0}, "min_removable_versions: .*got 0"),
        (LanceCleanUpVersionsOperator, {"max_removal_delay": "1 d"}, "max_removal_delay: .*got '1 d'"),
        (LanceCompactTableOperator, {"options": {"rows": 1}}, "options: .*'rows'"),
        (LanceCompactTableOperator, {"options": {"num_threads": 0}}, "options: .*num_threads: .*at least 1"),
        (
            LanceCreateIndexOperator,
            {**VECTOR_INDEX, "index_type": "TREE"},
            "index_type: expected one of BTREE.*, got 'TREE'",
        ),
        (
            LanceCreateIndexOperator,
            {**VECTOR_INDEX, "options": {"metric": "far"}},
            r"options\['metric'\]: expected one of l2, cosine, dot, got 'far'",
        ),
        (
            LanceCreateIndexOperator,
            {**VECTOR_INDEX, "if_exists": "maybe"},
            "if_exists: expected one of skip, extend.*, got 'maybe'",
        ),
        (LanceCreateIndexOperator, {**VECTOR_INDEX, "segments": 0}, "segments: .*at least 1, got 0"),
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
def test_an_invalid_argument_is_refused_when_the_dag_is_parsed(
    operator: type[Any], arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        operator(task_id="maintain", table="db$t", **arguments)


@pytest.mark.parametrize("indices", ["day", INDEX, 1, ["day"]])
def test_indices_are_a_list_of_mappings(indices: Any) -> None:
    with pytest.raises(TypeError, match=r"^indices.*: is of type \w+; expected "):
        LanceMaintainOperator(task_id="maintain", table="db$t", indices=indices)


def test_the_defaults_are_those_of_the_function() -> None:
    task = LanceMaintainOperator(task_id="maintain", table="db$t")

    names = [name for name in task.template_fields if hasattr(DEFAULT_THRESHOLDS, name)]
    assert len(names) == 5
    assert parse_thresholds(task, *names) == DEFAULT_THRESHOLDS


@pytest.mark.parametrize("operator", [LanceCompactTableOperator, LanceCleanUpVersionsOperator])
def test_operators_for_single_steps_have_no_thresholds_by_default(operator: type[Any]) -> None:
    task = operator(task_id="maintain", table="db$t")

    names = [name for name in task.template_fields if hasattr(DEFAULT_THRESHOLDS, name)]
    assert len(names) == 2
    assert parse_thresholds(task, *names) == Thresholds()


def rendered(native: bool = False, **values: Any) -> LanceMaintainOperator:
    templates: Any = {name: f"{{{{ params.{name} }}}}" for name in values}
    with DAG(dag_id="dag", params=values, render_template_as_native_obj=native):
        task = LanceMaintainOperator(task_id="maintain", table="db$t", **templates)
    task.render_template_fields({"params": values})  # type: ignore[typeddict-item]
    return task


@pytest.mark.parametrize("native", [False, True])
def test_a_threshold_may_be_a_template(native: bool) -> None:
    task = rendered(native, min_small_fragments=3, max_deleted_share=0.5, max_unindexed_share=None)

    thresholds = parse_thresholds(task, "min_small_fragments", "max_deleted_share", "max_unindexed_share")

    assert thresholds == Thresholds(min_small_fragments=3, max_deleted_share=0.5)


def test_a_duration_may_be_a_template_of_a_dag_that_renders_native_objects() -> None:
    week = timedelta(days=7)
    with DAG(dag_id="dag", render_template_as_native_obj=True):
        task = LanceMaintainOperator(task_id="m", table="db$t", max_removal_delay="{{ week }}")
    task.render_template_fields({"week": week})  # type: ignore[typeddict-unknown-key]

    assert parse_thresholds(task, "max_removal_delay").max_removal_delay == week


def test_a_rendered_threshold_that_is_invalid_fails_without_retries(connect: Callable[..., str]) -> None:
    task = rendered(min_small_fragments="many")
    task.lance_conn_id = connect(host="metastore.invalid")

    with pytest.raises(AirflowFailException, match=r"^min_small_fragments: expected a whole.*got 'many'$"):
        task.execute({"run_id": "1"})  # type: ignore[typeddict-item]
