"""Runs an ingestion twice on the Spark of a connection; started by the fixture `ingest`.

In a separate process, which can have only one Spark session.
"""

import json
import sys
from typing import Any

from airflow_provider_lancens.operators._spark.submission import make_job
from airflow_provider_lancens.operators.ingest import LanceAppendOperator
from tests.integration.spark.run_twice import run_twice
from tests.integration.spark.submit.ingestion_sources import cheap


class Submitted(LanceAppendOperator):
    """The same by spark-submit in client mode, since a standalone cluster doesn't support Python drivers."""

    def _written(self, source: Any, writes: Any, context: Any) -> Any:
        job = make_job(self.hook, source, writes.target.id, writes.requests)
        result = self.submit(self.spark_deployment(), job, context)
        return result, writes.inputs_of_result(result), {}


def main() -> None:
    given = json.load(sys.stdin)
    kind = Submitted if given.pop("submitted", False) else LanceAppendOperator
    run_twice(kind(task_id="ingest", lance_conn_id="lake", source=cheap, **given))


if __name__ == "__main__":
    main()
