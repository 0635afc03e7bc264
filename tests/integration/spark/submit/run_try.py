"""Runs one try of an ingestion on the Spark of a connection; a test may kill it, as any worker of Airflow."""

import json
import logging
import signal
import sys

from airflow_provider_lancens.operators.ingest import LanceAppendOperator
from tests.integration.spark.run_twice import context_of
from tests.integration.spark.submit.ingestion_sources import held


def main() -> None:
    given = json.loads(sys.argv[1])
    try_number = given.pop("try_number")
    task = LanceAppendOperator(task_id="ingest", lance_conn_id="lake", source=held, **given)
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    signal.signal(signal.SIGTERM, lambda *_: task.on_kill())
    sys.stdout.write(json.dumps(task.execute(context_of(task, try_number))) + "\n")


if __name__ == "__main__":
    main()
