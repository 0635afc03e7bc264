"""A poll calls few functions of the package: profiled while a poller serves a real wait.

Counts the functions from a trigger that subscribes, through the poller, its worker threads, the hook and the
namespace to the backend, and back to the trigger's event. Nested functions belong to the enclosing one. Not
counted: the clients of metastore and storage (below the backend's `Metastore`, and the object store), and
value types with their checks. Opening the connection, and reading it again every 30 seconds, is done once per
connection and not part of a poll.
"""

import asyncio
import re
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

from airflow_provider_lancens.triggers import LanceTableVersionTrigger
from tests.integration.airflow.tables import Table

MOST_FUNCTIONS, MOST_FILES = 20, 8
MOST_OF_ALL = 85
"""Functions with those of clients and values."""
PACKAGE = "/airflow_provider_lancens/"
CLIENTS = r"namespace/(hive/(?!metastore)|storage/)"
VALUES = r"identifiers|redaction|namespace/(locations|table_properties|table_status|requests)\.py"
BACKEND_CHECKS = ("HiveDatabases.check_name",)


class Profile:
    """The package's functions that the event loop and the poller's threads call while it is active."""

    def __init__(self) -> None:
        self.on = False
        self.entered: set[tuple[str, str]] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        thread = threading.current_thread()
        if (
            not self.on
            or event != "call"
            or not (thread is threading.main_thread() or thread.name.startswith("lance-"))
        ):
            return
        _, inside, file = frame.f_code.co_filename.rpartition(PACKAGE)
        name = frame.f_code.co_qualname.partition(".<locals>")[0]
        if inside and not name.startswith("<"):
            self.entered.add((file, name))

    @property
    def hops(self) -> list[tuple[str, str]]:
        return sorted(
            (file, name)
            for file, name in self.entered
            if not re.match(f"{CLIENTS}|{VALUES}", file) and name not in BACKEND_CHECKS
        )


@pytest.fixture
def profile() -> Iterator[Profile]:
    """Installed before the poller starts its threads, which inherit it."""
    profile = Profile()
    threading.setprofile(profile)
    sys.setprofile(profile)
    yield profile
    sys.setprofile(None)
    threading.setprofile(None)


def trigger(lake: str, table: Table, after_version: int) -> LanceTableVersionTrigger:
    return LanceTableVersionTrigger(
        table=str(table), lance_conn_id=lake, after_version=after_version, poll_interval=0.2
    )


async def event(trigger: LanceTableVersionTrigger) -> Any:
    async with asyncio.timeout(60):
        return (await anext(aiter(trigger.run()))).payload


@pytest.mark.parametrize("authority", ["storage", "impl"])
async def test_a_poll_passes_through_few_functions(
    lake: str, table: Table, profile: Profile, authority: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_provider_lancens.triggers.poller._REREAD_SECONDS", 3600.0)
    await asyncio.to_thread(table.declare, managed_by=authority)
    await asyncio.to_thread(table.advance)
    polled_before = asyncio.create_task(event(trigger(lake, table, after_version=2)))
    await event(trigger(lake, table, after_version=0))
    profiled = trigger(lake, table, after_version=1)

    profile.on = True
    waiting = asyncio.create_task(event(profiled))
    await asyncio.to_thread(table.advance)
    assert (await waiting)["version"] == 2
    profile.on = False
    polled_before.cancel()

    shown = "\n".join(f"{file}: {name}" for file, name in profile.hops)
    assert {"hive/metastore.py", "triggers/poller.py"} <= {
        file.removeprefix("namespace/") for file, _ in profile.hops
    }, shown
    assert len(profile.hops) <= MOST_FUNCTIONS, shown
    assert len({file for file, _ in profile.hops}) <= MOST_FILES, shown
    assert len(profile.entered) <= MOST_OF_ALL, len(profile.entered)
