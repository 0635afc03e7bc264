"""One ingestion by its operator, somewhere in the world of Spark; run by `test_secrets.py`.

In a process of its own: a process has one Spark.
"""

import json
import sys
from typing import Any

from airflow_provider_lancens.operators.spark_ingest import LanceSparkIngestOperator
from tests.integration.spark.places.sources import cheap
from tests.integration.spark.places.twice import run_twice


class Submitted(LanceSparkIngestOperator):
    """The same by spark-submit, although its driver stays here: no cluster of ours takes a Python driver."""

    def _written(self, source: Any, namespace: Any, table: Any, name: Any) -> Any:
        return self._submitted(self.spark_place(), source, table, {"mode": self.mode, **name})


def main() -> None:
    given = json.load(sys.stdin)
    kind = Submitted if given.pop("submitted", False) else LanceSparkIngestOperator
    run_twice(kind(task_id="ingest", lance_conn_id="lake", source=cheap, **given))


if __name__ == "__main__":
    main()
