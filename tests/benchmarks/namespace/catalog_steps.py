"""What steps over a large catalog cost their process: calls, seconds and memory.

Run as a program: ``python -m tests.benchmarks.namespace.catalog_steps JSON``, where the JSON holds the kind
of the namespace, its properties, the numbers of tables and of databases, and the names of the steps (without
names, all of them). It prints a JSON object for each step. A step runs in a process of its own, since the
highest memory is the whole process's.
"""

import json
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from airflow_provider_lancens import namespace as namespaces
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.glue.api import GlueClient
from airflow_provider_lancens.namespace.hive.connection import Connection
from airflow_provider_lancens.namespace.operations.cascade import Cascade
from airflow_provider_lancens.namespace.paging import page_of

PAGE = 100
PAGES = 20
WAITS = 1000
CROWDED, SINGLE = "crowded", "one"
"""The database of many tables, and the one of a single table that all other databases are copies of."""


class Steps:
    """The steps, by the names of their methods."""

    def __init__(self, namespace: Any, tables: int, databases: int) -> None:
        self.namespace = namespace
        self.tables = tables
        self.databases = databases

    def list_whole(self) -> object:
        return self.namespace.list_tables({"id": [CROWDED]})

    def first_page(self) -> object:
        return self._page(None)

    def last_page(self) -> object:
        return self._page(self._token_before_the_last_page())

    def some_pages(self) -> object:
        """Twenty pages, one after the other."""
        return list(self._pages(PAGES))

    def all_pages(self) -> object:
        count = sum(len(page.tables) for page in self._pages(self.tables))
        assert count >= self.tables
        return count

    def first_page_with_data(self) -> object:
        return self._page(None, include_declared=False)

    def last_page_with_data(self) -> object:
        return self._page(self._token_before_the_last_page(), include_declared=False)

    def whole_with_data(self) -> object:
        return self.namespace.list_tables({"id": [CROWDED], "include_declared": False})

    def namespaces_whole(self) -> object:
        return self.namespace.list_namespaces({"id": []})

    def namespaces_page(self) -> object:
        return self.namespace.list_namespaces({"id": [], "limit": PAGE})

    def all_tables_first_page(self) -> object:
        return self.namespace.list_all_tables({"limit": PAGE})

    def plan(self) -> object:
        plan = self.namespace.plan_drop_namespace({"id": [CROWDED]})
        assert len(plan.tables) >= self.tables
        return plan

    def plan_and_check(self) -> object:
        """A plan, and the check before its first drop that nothing has changed."""
        plan = self.namespace.plan_drop_namespace({"id": [CROWDED]})
        Cascade(self.namespace._metastore)._check_unchanged(plan)
        return plan

    def poll_one_database(self) -> object:
        stride = max(1, self.tables // WAITS)
        return self._poll(f"{CROWDED}$t_{number:06}" for number in range(0, self.tables, stride))

    def poll_all_databases(self) -> object:
        return self._poll(f"{SINGLE}_{number:06}$t" for number in range(self.databases))

    def _page(self, token: str | None, **more: Any) -> Any:
        found = self.namespace.list_tables({"id": [CROWDED], "limit": PAGE, "page_token": token, **more})
        assert len(found.tables) == PAGE, len(found.tables)
        return found

    def _token_before_the_last_page(self) -> str | None:
        return page_of([f"t_{self.tables - PAGE - 1:06}", "u"], None, 1).token

    def _pages(self, most: int) -> Iterator[Any]:
        token = None
        for _ in range(most):
            page = self.namespace.list_tables({"id": [CROWDED], "limit": PAGE, "page_token": token})
            yield page
            token = page.page_token
            if not token:
                return

    def _poll(self, names: Iterator[str]) -> object:
        tables = [TableId.parse(name) for name in names][:WAITS]
        found = self.namespace.poll_tables(tables)
        assert len(found) == len(tables)
        assert all(getattr(status, "location", None) for status in found.values()), next(iter(found.values()))
        return found


def counted_calls() -> Counter[str]:
    """Count the calls of this process to metastores, by name."""
    calls: Counter[str] = Counter()
    send = Connection._call

    def counted(self: Connection, method: Callable[..., Any], *arguments: Any) -> Any:
        calls[method.__name__] += 1
        return send(self, method, *arguments)

    def make(self: Any) -> Any:
        client = original(self)
        client.meta.events.register(
            "before-send.glue", lambda request, **_: calls.update([_operation(request)])
        )
        return client

    original = GlueClient._make
    Connection._call = counted  # type: ignore[method-assign]
    GlueClient._make = make  # type: ignore[method-assign]
    return calls


def _operation(request: Any) -> str:
    target = request.headers["X-Amz-Target"]
    return (target.decode() if isinstance(target, bytes) else str(target)).rpartition(".")[2]


def measured(step: Callable[[], object], calls: Counter[str]) -> dict[str, Any]:
    """Run a step in a process of its own."""
    receiving, sending = os.pipe()
    if child := os.fork():
        os.close(sending)
        with os.fdopen(receiving) as pipe:
            told = pipe.read()
        os.waitpid(child, 0)
        assert told, step.__name__
        return dict(json.loads(told))
    try:
        os.write(sending, json.dumps(_run(step, calls)).encode())
    except BaseException as error:  # noqa: BLE001 - the parent shows it
        os.write(sending, json.dumps({"error": repr(error)}).encode())
    finally:
        os._exit(0)


def _run(step: Callable[[], object], calls: Counter[str]) -> dict[str, Any]:
    before = _resident_megabytes()
    started = time.perf_counter()
    result = step()
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    kept = _resident_megabytes() if result is not None else 0.0
    return {
        "calls": sum(calls.values()),
        "by_name": dict(calls),
        "seconds": round(seconds, 3),
        "peak_megabytes": round(peak - before, 1),
        "kept_megabytes": round(kept - before, 1),
    }


def _resident_megabytes() -> float:
    with open("/proc/self/statm") as file:  # noqa: PTH123 - as light as can be
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def main(kind: str, properties: dict[str, str], tables: int, databases: int, steps: list[str]) -> None:
    import boto3  # noqa: F401 - loading it isn't a cost of a step

    import airflow_provider_lancens.namespace.storage.object_store  # noqa: F401 - the same

    calls = counted_calls()
    everything = Steps(getattr(namespaces, kind)(**properties), tables, databases)
    names = steps or [name for name in vars(Steps) if not name.startswith("_")]
    for name in names:
        result = {"step": name, **measured(getattr(everything, name), calls)}
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
