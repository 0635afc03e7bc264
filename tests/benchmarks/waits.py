"""The cost of many waits in one event loop, with a real metastore.

Run as a program: ``python -m tests.benchmarks.waits FOLDER WAITS DATABASES TICK TICKS``. It prints a
JSON object; tables that an earlier run left in FOLDER are reused.
A separate process, since memory and stalls are measured for the whole process.
"""

import asyncio
import gc
import json
import os
import sys
import time
import tracemalloc
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_lancens.embedded import EmbeddedMetastore
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.triggers.table_version_trigger import LanceTableVersionTrigger
from tests.benchmarks.event_loop_stalls import Stalls
from tests.benchmarks.naive_trigger import NaiveTrigger
from tests.servers.proxy import Proxy

CONNECTION = "bench"
MOST_NAIVE = 200
AT_ONCE = 50
"""Triggers started before the event loop gets its turn; a triggerer starts them one by one."""


class EmptyTrigger(BaseTrigger):
    """Waits for nothing."""

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return "", {}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        await asyncio.Event().wait()
        yield TriggerEvent({})


def make_tables(uri: str, root: Path, databases: int, tables: int) -> list[str]:
    """Create managed tables by direct calls to the metastore, since ten thousand take minutes."""
    from airflow_provider_lancens.identifiers import NamespaceId
    from airflow_provider_lancens.namespace import table_properties
    from airflow_provider_lancens.namespace.config import Properties
    from airflow_provider_lancens.namespace.hive.metastore import HiveMetastore
    from airflow_provider_lancens.namespace.hive.settings import ClientSettings
    from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable, Namespace

    with closing(HiveMetastore(ClientSettings.parse(Properties({"uri": uri}, {"uri"})))) as metastore:
        names = []
        for number in range(databases):
            database = NamespaceId.of([f"bench_{number}"])
            if database.name not in metastore.list_namespaces(NamespaceId(())):
                metastore.create_namespace(Namespace(database, f"file://{root}/{database.name}.db"))
            there = set(metastore.list_tables(database))
            for one in range(tables // databases):
                table = database.table(f"t_{one}")
                names.append(str(table))
                if table.name in there:
                    continue
                parameters = {
                    **table_properties.new_table_parameters({"managed_by": "impl"}),
                    table_properties.VERSION: "1",
                }
                metastore.create_table(
                    CatalogTable(table, f"file://{root}/{database.name}.db/{one}", parameters)
                )
        return names


async def start(triggers: Sequence[BaseTrigger]) -> list[asyncio.Task[Any]]:
    tasks = []
    for turn, trigger in enumerate(triggers):
        tasks.append(asyncio.create_task(first_event(trigger)))
        if turn % AT_ONCE == 0:
            await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


async def first_event(trigger: BaseTrigger) -> Any:
    return (await anext(aiter(trigger.run()))).payload


async def stop(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for turn, task in enumerate(tasks):
        task.cancel()
        if turn % AT_ONCE == 0:
            await asyncio.sleep(0)
    await asyncio.gather(*tasks, return_exceptions=True)


async def memory_of(triggers: int, make: Any) -> float:
    """Memory of one more trigger, in bytes."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    tasks = await start([make(number) for number in range(triggers)])
    await asyncio.sleep(1.5)
    gc.collect()
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    await stop(tasks)
    return held / triggers


async def measure(make: Any, tables: Sequence[str], proxy: Proxy, ticks: int) -> dict[str, Any]:
    """Run one trigger per table for a number of polls, and count calls and connections."""
    calls, connections, worked = len(proxy.calls), proxy.connections, time.process_time()
    async with Stalls() as stalls, timed_looks() as looks:
        tasks = await start([make(table) for table in tables])
        started = stalls.take()
        while len(looks) < ticks:  # noqa: ASYNC110 - another thread notes them
            await asyncio.sleep(0.1)
        running = stalls.take()
    cpu = time.process_time() - worked
    seen = proxy.calls[calls:]
    done = [task for task in tasks if task.done()]
    await stop(tasks)
    assert not done, done[0].result()
    return {
        "calls_a_tick": len(seen) / len(looks),
        "cpu_seconds_a_tick": cpu / len(looks),
        "seconds_of_looks": looks,
        "connections": proxy.connections - connections,
        "stall_starting": started,
        "stall_running": running,
    }


async def naive_calls(tables: Sequence[str], proxy: Proxy) -> dict[str, float]:
    """Calls and CPU seconds per poll and table of a naive trigger."""
    calls, connections, worked = len(proxy.calls), proxy.connections, time.process_time()
    triggers = [NaiveTrigger(table, CONNECTION, after=1, interval=3600) for table in tables]
    async with Stalls() as stalls:
        tasks = await start(triggers)
        while any(trigger.looks == 0 for trigger in triggers):  # noqa: ASYNC110 - it is compared, not timed
            await asyncio.sleep(0.1)
        stall = stalls.take()
    cpu = time.process_time() - worked
    await stop(tasks)
    return {
        "cpu_seconds_a_wait": cpu / len(tables),
        "calls_a_wait": (len(proxy.calls) - calls) / len(tables),
        "connections_a_wait": (proxy.connections - connections) / len(tables),
        "stall": stall["loop"],
    }


@asynccontextmanager
async def timed_looks() -> AsyncIterator[list[float]]:
    """Record the duration of each poll."""
    looks: list[float] = []
    plain = LanceHook.poll_tables

    def timed(self: LanceHook, tables: Any, known: Any = None) -> Any:
        started = time.perf_counter()
        statuses = plain(self, tables, known)
        looks.append(round(time.perf_counter() - started, 3))
        return statuses

    LanceHook.poll_tables = timed  # type: ignore[method-assign]
    yield looks
    LanceHook.poll_tables = plain  # type: ignore[method-assign]


async def compare(
    tables: Sequence[str], databases: int, proxy: Proxy, tick: float, ticks: int
) -> dict[str, Any]:
    def shared(table: str) -> BaseTrigger:
        return LanceTableVersionTrigger(
            table=table, lance_conn_id=CONNECTION, after_version=1, poll_interval=tick
        )

    cold = await measure(shared, tables, proxy, 1)
    warm = await measure(shared, tables, proxy, ticks)
    empty = await memory_of(len(tables), lambda number: EmptyTrigger())
    ours = await memory_of(len(tables), lambda number: shared(tables[number]))
    naive = await naive_calls(tables[:: max(1, len(tables) // MOST_NAIVE)], proxy)
    return {
        "waits": len(tables),
        "databases": databases,
        "cold": cold,
        "warm": warm,
        "bytes_a_wait": ours - empty,
        "bytes_of_an_empty_trigger": empty,
        "naive": naive,
        "naive_ratio": naive["calls_a_wait"] * len(tables) / warm["calls_a_tick"],
    }


def main(folder: Path, waits: int, databases: int, tick: float, ticks: int) -> dict[str, Any]:
    with EmbeddedMetastore(folder / "metastore") as metastore:
        tables = make_tables(metastore.uri, folder, databases, waits)
        with Proxy(metastore.uri) as proxy:
            os.environ[f"AIRFLOW_CONN_{CONNECTION.upper()}"] = json.dumps(
                {"conn_type": "lance_hive2", "host": proxy.uri, "extra": {"root": str(folder)}}
            )
            # A collection of Airflow's modules takes 0.12 s in any process, whatever it waits for.
            gc.collect()
            gc.freeze()
            return asyncio.run(compare(tables, databases, proxy, tick, ticks))


if __name__ == "__main__":
    folder, waits, databases, tick, ticks = sys.argv[1:]
    result = main(Path(folder), int(waits), int(databases), float(tick), int(ticks))
    sys.stdout.write(json.dumps(result) + "\n")
