"""A task that runs, and runs again, in a process of these tests, without an Airflow around it."""

import json
import logging
import sys
from types import SimpleNamespace
from typing import Any

from airflow.sdk import BaseOperator


def run_twice(task: BaseOperator) -> None:
    """Print what it answers each time; its log goes to stderr."""
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    instance = SimpleNamespace(dag_id="dag", task_id=task.task_id, map_index=-1)
    context: Any = {"ti": instance, "run_id": "1"}
    answers = [task.execute(context), task.execute(context)]
    sys.stdout.write(json.dumps(answers) + "\n")
