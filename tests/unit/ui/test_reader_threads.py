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
        return await threads.run(lambda: "1")

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


def test_slow_tables_of_one_connection_leave_threads_to_others() -> None:
    """Each of many tables holds its reads, as a tenant can make them; other tables are answered at once."""
    hang = threading.Event()
    threads = ReaderThreads(threads=8, seconds=5, slow_seconds=0.1)

    async def ask() -> list[float]:
        slow = [
            asyncio.ensure_future(threads.run(hang.wait, "lake", f"slow_{number % 9}"))
            for number in range(20)
        ]
        await asyncio.sleep(0.05)
        seconds = []
        for conn, table in (("lake", "quick"), ("lake", ""), ("pond", "quick"), ("", "")):
            started = time.monotonic()
            assert await threads.run(lambda: 1, conn, table) == 1
            seconds.append(time.monotonic() - started)
        for one in slow:
            one.cancel()
        return seconds

    try:
        assert max(asyncio.run(ask())) < 2
    finally:
        hang.set()


def test_one_table_holds_two_threads_at_most() -> None:
    hang, begun = threading.Event(), []
    threads = ReaderThreads(seconds=1, slow_seconds=0.05)

    def read() -> None:
        begun.append(1)
        hang.wait()

    async def ask() -> None:
        await asyncio.gather(*(threads.run(read, "lake", "t") for _ in range(9)), return_exceptions=True)

    try:
        asyncio.run(ask())
        assert len(begun) == 2
    finally:
        hang.set()


def test_a_connection_that_hangs_fills_half_of_the_queue_at_most() -> None:
    hang = threading.Event()
    threads = ReaderThreads(threads=1, waiting=4, seconds=0.5, slow_seconds=0.05)

    async def ask() -> None:
        hanging = [asyncio.ensure_future(threads.run(hang.wait, "lake")) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(TooManyReadsError):
            await threads.run(hang.wait, "lake")
        assert await threads.run(lambda: 1, "pond") == 1
        await asyncio.gather(*hanging, return_exceptions=True)

    try:
        asyncio.run(ask())
    finally:
        hang.set()
