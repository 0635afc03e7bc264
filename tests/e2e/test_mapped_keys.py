"""Default keys of mapped tasks, as Airflow runs them: each has what it was given, not its position."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TREE = Path(__file__).parents[2]
KINDS = ("expand", "expand_kwargs", "chained", "changed", "group.in_group")
DAY = "2026-11-01T00:00:00+00:00"
READ = """
import json, sys, runpy, pendulum
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session

def run(dag, items):
    run = dag.test(run_conf={"items": items}, logical_date=pendulum.parse(sys.argv[2]))
    found = {}
    with create_session() as session:
        for task in run.get_task_instances(session=session):
            query = XComModel.get_many(run_id=run.run_id, dag_ids=run.dag_id, task_ids=task.task_id,
                map_indexes=task.map_index, key="return_value")
            one = session.scalars(query).first()
            value = None if one is None else XComModel.deserialize_value(one)
            found.setdefault(task.task_id, {})[task.map_index] = value
    return str(run.state), {name: [each[index] for index in sorted(each)] for name, each in found.items()}

dag = runpy.run_path(sys.argv[1])["dag"]
print(json.dumps([run(dag, items) for items in json.loads(sys.argv[3])]))
"""

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def runs(airflow_home: dict[str, str]) -> list[tuple[str, dict[str, Any]]]:
    """Two runs of one day: the list of the second has a new item in front, and an item twice."""
    lists = json.dumps([["a", "b"], ["new", "b", "a", "a"]])
    command = [sys.executable, "-c", READ, str(TREE / "tests/e2e/dags/mapped_keys.py"), DAY, lists]
    done = subprocess.run(command, env={**os.environ, **airflow_home}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    answer: list[tuple[str, dict[str, Any]]] = json.loads(done.stdout.splitlines()[-1])
    return answer


def keys(tasks: dict[str, Any], task_id: str) -> list[str]:
    return [one["key"] for one in tasks[task_id]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_mapped_task_keeps_its_key_when_the_list_around_its_item_changes(runs: Any, kind: str) -> None:
    (first_state, first), (second_state, second) = runs
    a, b = keys(first, kind)
    new, b_again, a_again, a_twice = keys(second, kind)

    assert (first_state, second_state) == ("success", "success")
    assert (a_again, b_again) == (a, b)
    assert len({a, b, new, a_twice}) == 4
    assert a_twice == a.replace("]", "#2]")


def test_a_product_of_lists_has_one_key_for_each_pair(runs: Any) -> None:
    (_, first), (_, second) = runs

    assert len(set(keys(first, "product"))) == 4
    assert len(set(keys(second, "product"))) == 8
    assert set(keys(first, "product")) <= set(keys(second, "product"))


def test_a_template_in_an_item_is_part_of_the_key_as_it_was_written(runs: Any) -> None:
    (_, first), (_, second) = runs

    assert keys(first, "literal") == keys(second, "literal")
    assert len(set(keys(first, "literal"))) == 2


def test_a_run_that_is_tested_again_is_another_execution_with_the_same_key(runs: Any) -> None:
    (_, first), (_, second) = runs

    assert keys(first, "plain") == keys(second, "plain")
    assert first["plain"][0]["execution_id"] != second["plain"][0]["execution_id"]
