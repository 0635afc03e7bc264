"""The shared poll on Glue uses its connection's current keys."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_provider_lancens.hooks import LanceGlueHook, LanceRetryableError
from airflow_provider_lancens.triggers.table_version_trigger import LanceTableVersionTrigger
from tests.servers.glue_double import REGION, GlueDouble


async def signed_with(glue: GlueDouble, key_id: str) -> None:
    """Return once a request signed by this key arrives."""
    async with asyncio.timeout(60):
        while not any(key_id in request.headers["AUTHORIZATION"] for request in glue.requests):  # noqa: ASYNC110 - a server notes them
            await asyncio.sleep(0.01)


async def test_rotated_keys_sign_the_next_polls_of_a_wait(
    glue: GlueDouble,
    connect: Callable[..., str],
    database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("airflow_provider_lancens.triggers.shared_poller._REREAD_SECONDS", 0.0)
    extra = {"endpoint": glue.endpoint, "region": REGION, "root": str(tmp_path)}

    def rotate(key_id: str) -> str:
        return connect("glue", "lance_glue", login=key_id, password="a-secret", extra=extra)

    trigger = LanceTableVersionTrigger(
        table=f"{database}$orders", lance_conn_id=rotate("AKIDOFYESTERDAY"), poll_interval=0.05
    )
    wait = asyncio.ensure_future(anext(trigger.run()))
    await signed_with(glue, "AKIDOFYESTERDAY")
    rotate("AKIDOFTODAY")
    await signed_with(glue, "AKIDOFTODAY")
    assert not wait.done()
    wait.cancel()
    await asyncio.gather(wait, return_exceptions=True)


async def test_a_wait_survives_credentials_that_are_unavailable_at_first(
    glue: GlueDouble,
    connect: Callable[..., str],
    database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    properties, refused = LanceGlueHook.namespace_properties, threading.Event()

    def unavailable_once(hook: LanceGlueHook) -> dict[str, str]:
        if not refused.is_set():
            refused.set()
            raise LanceRetryableError("getting AWS credentials: the service is unavailable")
        return properties(hook)

    monkeypatch.setattr(LanceGlueHook, "namespace_properties", unavailable_once)
    connection = connect(
        "glue",
        "lance_glue",
        login="AKIDOFLATER",
        password="a-secret",
        extra={"endpoint": glue.endpoint, "region": REGION, "root": str(tmp_path)},
    )
    trigger = LanceTableVersionTrigger(
        table=f"{database}$orders", lance_conn_id=connection, poll_interval=0.05
    )
    wait = asyncio.ensure_future(anext(trigger.run()))
    await signed_with(glue, "AKIDOFLATER")
    assert refused.is_set()
    wait.cancel()
    await asyncio.gather(wait, return_exceptions=True)
