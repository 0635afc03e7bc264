"""A Spark driver process, which `driver_processes.py` starts, suspends, resumes or kills.

It reads a job per line from standard input, and writes a line with each result to standard output.
"""

import json
import sys
from typing import Any

from lance_namespace.errors import LanceNamespaceError
from pyspark.errors import PySparkException

from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.session import spark_session
from tests.integration.spark.faults.step_gates import Freeze, Gate
from tests.integration.spark.faults.write_ways import WAYS
from tests.servers.spark import PRELOADED


def say(**answer: Any) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main() -> None:
    given = json.loads(sys.argv[1])
    local = {"spark.master": "local[1]", "spark.driver.memory": "512m", **PRELOADED}
    conf = given if "spark.master" in given else {**local, **given}
    with spark_session("driver", conf) as spark:
        say(ready=True)
        for line in sys.stdin:
            job = json.loads(line)
            spec = NamespaceSpec(job["impl"], job["properties"])
            write, kind = WAYS[job["way"]], Freeze if job["freezes"] else Gate
            gate = kind(job["step"], job["gate"])
            try:
                with gate.closed():
                    result = write(spark, spec, job["table"], job["ids"], gate=gate, **job["how"])
            except LanceNamespaceError as error:
                say(code=int(error.code), message=str(error))
            except PySparkException as error:  # raised in a process that plans or commits for Spark
                say(message=str(error))
            else:
                say(**result.as_dict())


if __name__ == "__main__":
    main()
