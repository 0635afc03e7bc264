"""Runs a task twice, as a retry does, without Airflow."""

import json
import logging
import sys
from types import SimpleNamespace
from typing import Any

from airflow.sdk import BaseOperator


def context_of(task: BaseOperator, try_number: int) -> Any:
    """The context of a try."""
    instance = SimpleNamespace(
        dag_id="dag", task_id=task.task_id, map_index=-1, try_number=try_number, max_tries=1
    )
    return {"ti": instance, "run_id": "1"}


def run_twice(task: BaseOperator) -> None:
    """Run it twice, and print its results; its log goes to stderr."""
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    answers = [task.execute(context_of(task, 1)), task.execute(context_of(task, 2))]
    sys.stdout.write(json.dumps(answers) + "\n")
