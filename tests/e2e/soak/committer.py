"""Commits one row a second, to each table in turn, as another program would.

Run as a program: ``python -m tests.e2e.soak.committer URI ROOT TABLE...``. It makes the first version of each
table at once, and goes on when it reads a line. It prints a JSON object per commit, and ends with SIGTERM.
"""

import itertools
import json
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import closing

from airflow_provider_lancens.namespace import Hive2Namespace
from tests.e2e.soak.form import COMMITS_A_MINUTE, is_managed
from tests.integration.airflow.tables import Table


def main(uri: str, root: str, names: Sequence[str]) -> None:
    """Declare the tables, and commit until SIGTERM."""
    end = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: end.set())
    with closing(Hive2Namespace(uri=uri, root=root)) as namespace:
        tables = [Table(namespace, *name.split("$")) for name in names]
        for table in tables:
            table.declare(managed_by="impl" if is_managed(table.name) else "storage")
            commit(table)
        sys.stdin.readline()
        started = time.time()
        for number, table in enumerate(itertools.cycle(tables)):
            if end.wait(max(0.0, started + number * 60 / COMMITS_A_MINUTE - time.time())):
                return
            commit(table)


def commit(table: Table) -> None:
    """Commit a row, and report it."""
    note = {"table": str(table), "version": table.advance(), "at": time.time()}
    print(json.dumps(note), flush=True)  # noqa: T201 - its output


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
