"""The shared poll on Glue follows its connection's keys."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_provider_lancens.triggers.table_version import LanceTableVersionTrigger
from tests.servers.glue_double import REGION, GlueDouble


async def signed_with(glue: GlueDouble, key_id: str) -> None:
    """Return when a request comes that this key signed."""
    async with asyncio.timeout(60):
        while not any(key_id in request.headers["AUTHORIZATION"] for request in glue.requests):  # noqa: ASYNC110 - a server notes them
            await asyncio.sleep(0.01)


async def test_keys_that_were_rotated_sign_the_next_looks_of_a_wait(
    glue: GlueDouble,
    connect: Callable[..., str],
    database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("airflow_provider_lancens.triggers.poller._REREAD_SECONDS", 0.0)
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
