"""Reads of the Lance page run apart from the event loop, and each has a deadline."""

import asyncio
import threading
import time

import pytest

from airflow_provider_lancens.ui.reader_threads import ReaderThreads, TooManyReadsError


def test_a_read_returns_its_result_and_the_loop_goes_on_meanwhile() -> None:
    release = threading.Event()

    async def both() -> bool:
        reading = asyncio.ensure_future(ReaderThreads(threads=1).run(release.wait))
        await asyncio.sleep(0)
        release.set()  # reached although the read blocks its thread
        return await reading

    assert asyncio.run(both())


def test_an_error_of_a_read_is_raised() -> None:
    def fail() -> None:
        raise KeyError("missing")

    with pytest.raises(KeyError, match="missing"):
        asyncio.run(ReaderThreads().run(fail))


def test_a_read_that_hangs_misses_its_deadline_and_others_are_answered() -> None:
    hang = threading.Event()
    threads = ReaderThreads(threads=2, seconds=0.2)

    async def ask() -> str:
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            await threads.run(hang.wait)
        assert time.monotonic() - started < 2
        return await threads.run(str, 1)

    try:
        assert asyncio.run(ask()) == "1"
    finally:
        hang.set()


def test_a_read_that_found_no_thread_in_time_never_begins() -> None:
    hang, begun = threading.Event(), threading.Event()
    threads = ReaderThreads(threads=1, seconds=0.2)

    async def ask() -> None:
        answers = await asyncio.gather(threads.run(hang.wait), threads.run(begun.set), return_exceptions=True)
        assert [type(one) for one in answers] == [TimeoutError, TimeoutError]

    asyncio.run(ask())
    hang.set()
    threads._pool.shutdown()
    assert not begun.is_set()


def test_reads_that_hang_do_not_pile_up() -> None:
    hang = threading.Event()
    threads = ReaderThreads(threads=1, waiting=2, seconds=0.2)

    async def ask() -> None:
        hanging = [asyncio.ensure_future(threads.run(hang.wait)) for _ in range(2)]
        await asyncio.sleep(0.05)
        with pytest.raises(TooManyReadsError):
            await threads.run(str)
        await asyncio.gather(*hanging, return_exceptions=True)

    try:
        asyncio.run(ask())
    finally:
        hang.set()
