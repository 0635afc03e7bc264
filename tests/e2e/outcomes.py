"""The results of DAGs that were run one after the other by `run_dag`."""

import json
from collections.abc import Iterator
from typing import Any


class Outcome(dict[str, Any]):
    """Each task's state and XCom, by its id."""

    log = ""
    """What the run logged."""


def outcomes_in(log: str) -> Iterator[Outcome]:
    """The outcomes of the DAGs that were run one after the other."""
    lines: list[str] = []
    for line in log.splitlines():
        if line.startswith("{"):
            outcome = Outcome(json.loads(line))
            outcome.log, lines = "\n".join(lines), []
            yield outcome
        else:
            lines.append(line)


def xcom(outcome: Outcome, task: str) -> Any:
    """The XCom of a task, which must have succeeded."""
    assert outcome[task]["state"] == "success", f"{outcome}\n{outcome.log[-20_000:]}"
    return outcome[task]["xcom"]
