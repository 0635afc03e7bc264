"""Time between two polls, and credentials that are replaced between them."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import lance
import pyarrow as pa
import pytest
from lance_namespace import DescribeTableRequest, DescribeTableResponse, LanceNamespace
from lance_namespace.errors import PermissionDeniedError, UnauthenticatedError

from airflow_provider_lancens.namespace.storage import object_store
from airflow_provider_lancens.triggers import shared_poller
from airflow_provider_lancens.triggers.shared_poller import pause
from airflow_provider_lancens.triggers.table_version_trigger import LanceTableVersionTrigger


class Guarded(LanceNamespace):
    """Knows tables in a folder, and accepts only one token at a time."""

    folder: ClassVar[Path]
    token: ClassVar[str]
    asked: ClassVar[list[str]]

    def __init__(self, token: str, **_storage: str) -> None:
        self._token = token

    def namespace_id(self) -> str:
        return "guarded"

    def describe_table(self, request: DescribeTableRequest) -> DescribeTableResponse:
        self.asked.append(self._token)
        if self._token != self.token:
            raise UnauthenticatedError("the token isn't valid any more")
        return DescribeTableResponse(location=str(self.folder / "$".join(request.id or [])))


@pytest.fixture
def guarded(connect: Callable[..., str], tmp_path: Path) -> Callable[..., str]:
    """Define the connection to the guarded namespace, with a token."""
    Guarded.folder, Guarded.token, Guarded.asked = tmp_path, "of-today", []

    def define(token: str, **extra: str) -> str:
        own = {"impl": f"{__name__}.Guarded", "secret_properties": {"token": token}}
        return connect(conn_type="lance", extra={**own, **extra})

    return define


async def event(lake: str, table: str, **arguments: Any) -> Any:
    trigger = LanceTableVersionTrigger(
        table=table, lance_conn_id=lake, **{"poll_interval": 0.05, **arguments}
    )
    async with asyncio.timeout(60):
        return (await anext(aiter(trigger.run()))).payload


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - other threads ask
            await asyncio.sleep(0.01)


async def test_a_token_that_was_replaced_ends_no_wait(
    guarded: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_poller, "_JUST_READ_SECONDS", 0.0)
    waits = [asyncio.ensure_future(event(guarded("of-today"), table)) for table in "ab"]
    await until(lambda: len(Guarded.asked) > 2)
    guarded("of-tomorrow")
    Guarded.token = "of-tomorrow"
    await until(lambda: "of-tomorrow" in Guarded.asked)
    for table in "ab":
        lance.write_dataset(pa.table({"id": [1]}), str(tmp_path / table))
    assert [one["version"] for one in await asyncio.gather(*waits)] == [1, 1]


async def test_storage_credentials_that_were_replaced_end_no_wait(
    guarded: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_poller, "_JUST_READ_SECONDS", 0.0)
    accepted, refused = ["us-east-1"], []

    def listed(location: str, options: dict[str, str]) -> int | None:
        if not set(accepted) & set(options.values()):
            refused.append(location)
            raise PermissionDeniedError("status code: 403")
        return 7 if "eu-west-1" in accepted else None

    monkeypatch.setattr(object_store, "latest_version", listed)
    wait = asyncio.ensure_future(event(guarded("of-today", **{"storage.region": "us-east-1"}), "a"))
    await until(lambda: len(Guarded.asked) > 2)
    guarded("of-today", **{"storage.region": "eu-west-1"})
    accepted[:] = ["eu-west-1"]
    assert (await wait)["version"] == 7
    assert refused


async def test_refused_credentials_end_the_wait(guarded: Callable[..., str]) -> None:
    found = await event(guarded("of-yesterday"), "a")
    assert found["status"] == "error"
    assert "the token isn't valid any more" in found["message"]


def longest(interval: float, failures: int) -> float:
    return max(pause(interval, failures) for _ in range(200))


def test_successful_polls_repeat_at_the_interval_with_jitter() -> None:
    pauses = {pause(10, 0) for _ in range(50)}
    assert len(pauses) > 1
    assert all(9 <= seconds <= 11 for seconds in pauses)


def test_failed_polls_back_off_exponentially() -> None:
    assert longest(5, 0) < min(pause(5, 2) for _ in range(200)) < longest(5, 2) <= 22


@pytest.mark.parametrize(("interval", "most"), [(5, 66), (300, 330)])
def test_the_backoff_is_limited(interval: float, most: float) -> None:
    assert longest(interval, 10_000) <= most


def test_an_interval_of_zero_does_not_poll_without_a_pause() -> None:
    assert min(pause(0, 0) for _ in range(200)) >= 0.045
    assert pause(0, 3) > pause(0, 0)
