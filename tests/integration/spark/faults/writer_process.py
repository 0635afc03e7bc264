"""Changes tables without Spark: `frozen_process.py` starts it, suspends it at a step and resumes it.

It reads a job per line from standard input, and writes a line with each result to standard output.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from lance_namespace.errors import LanceNamespaceError

from airflow_provider_lancens.spark import NamespaceSpec
from tests.integration.spark.faults.maintenance_steps import MAINTENANCE_STEPS
from tests.integration.spark.faults.orders_table import Orders
from tests.integration.spark.faults.step_gates import freeze
from tests.integration.spark.faults.table_actions import ACTIONS, MAINTAIN, work_without_spark
from tests.integration.spark.faults.write_steps import FREEZING_STEPS

_ACTIONS = {**ACTIONS, "maintain": MAINTAIN}
_STEPS = {**FREEZING_STEPS, **MAINTENANCE_STEPS}


def work(job: dict[str, Any]) -> dict[str, Any]:
    orders = Orders(NamespaceSpec(job["impl"], job["properties"]), job["table"], "append")
    action, step = _ACTIONS[job["action"]], _STEPS[job["step"]]
    try:
        with step.interrupted_by(lambda: freeze(Path(job["note"]))):
            return {"version": action.run(orders).version}
    except LanceNamespaceError as error:
        return {"code": int(error.code), "message": str(error)}
    except Exception as error:  # noqa: BLE001 - the test says what it expected instead
        return {"unexpected": repr(error)}


def main() -> None:
    work_without_spark(pytest.MonkeyPatch())
    for line in sys.stdin:
        sys.stdout.write(json.dumps(work(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
