"""A Spark driver in a process of its own: `drivers.py` starts it, and stops, releases or kills it.

It takes a job a line on standard input and answers a line each on standard output.
"""

import json
import sys
from typing import Any

from lance_namespace.errors import LanceNamespaceError

from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.session import spark_session
from tests.integration.spark.faults.gates import Gate
from tests.integration.spark.faults.ways import WAYS


def say(**answer: Any) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main() -> None:
    conf = {"spark.master": "local[1]", "spark.driver.memory": "512m", **json.loads(sys.argv[1])}
    with spark_session("driver", conf) as spark:
        say(ready=True)
        for line in sys.stdin:
            job = json.loads(line)
            spec = NamespaceSpec(job["impl"], job["properties"])
            write, gate = WAYS[job["way"]], Gate(job["step"], job["gate"])
            try:
                with gate.closed():
                    result = write(spark, spec, job["table"], job["ids"], gate=gate, **job["how"])
            except LanceNamespaceError as error:
                say(code=int(error.code))
            else:
                say(**result.as_dict())


if __name__ == "__main__":
    main()
