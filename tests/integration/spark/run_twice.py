"""Runs a task twice, as a retry does, without Airflow."""

import json
import logging
import sys
from types import SimpleNamespace
from typing import Any

from airflow.sdk import BaseOperator


def run_twice(task: BaseOperator) -> None:
    """Run it twice, and print its results; its log goes to stderr."""
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    instance = SimpleNamespace(dag_id="dag", task_id=task.task_id, map_index=-1, max_tries=0)
    context: Any = {"ti": instance, "run_id": "1"}
    answers = [task.execute(context), task.execute(context)]
    sys.stdout.write(json.dumps(answers) + "\n")
