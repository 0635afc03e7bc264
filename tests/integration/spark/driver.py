"""A Spark driver in a process of its own: `drivers.py` starts it, and pauses, releases or kills it.

It takes a job a line on standard input and answers a line each on standard output. Before its
commit, when all files are written, it says that it is there and waits to be told to go on.
"""

import json
import sys
from typing import Any

from lance_namespace.errors import LanceNamespaceError

from airflow_provider_lancens.spark import NamespaceSpec, write_table
from airflow_provider_lancens.spark.commit import Committer, Outcome
from airflow_provider_lancens.spark.session import spark_session

commit = Committer.commit


def commit_when_told(self: Committer, *arguments: Any, **options: Any) -> Outcome:
    """Stop where a driver is most vulnerable: between its write and its commit."""
    say(paused=True)
    sys.stdin.readline()
    return commit(self, *arguments, **options)


def say(**answer: Any) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main() -> None:
    Committer.commit = commit_when_told  # type: ignore[method-assign]
    with spark_session("driver", {"spark.master": "local[1]", "spark.driver.memory": "512m"}) as spark:
        say(ready=True)
        for line in sys.stdin:
            job = json.loads(line)
            spec = NamespaceSpec(job["impl"], job["properties"])
            rows = spark.range(*job["ids"])
            try:
                result = write_table(rows, spec, job["table"], **job["how"])
            except LanceNamespaceError as error:
                say(code=int(error.code))
            else:
                say(**result.as_dict())


if __name__ == "__main__":
    main()
