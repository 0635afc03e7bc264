"""An executor with daemon threads."""

import threading
from collections.abc import Iterator
from concurrent.futures import wait

import pytest

from airflow_provider_lancens.triggers.worker_threads import DaemonThreads


@pytest.fixture
def threads() -> Iterator[DaemonThreads]:
    made = DaemonThreads(2, "some")
    yield made
    made.shutdown()


def test_a_call_returns_or_raises_to_its_caller(threads: DaemonThreads) -> None:
    assert threads.submit(divmod, 7, 2).result(10) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        threads.submit(divmod, 7, 0).result(10)


def test_the_number_of_daemon_threads_is_limited(threads: DaemonThreads) -> None:
    both = threading.Barrier(2)

    def meet() -> threading.Thread:
        both.wait(10)
        return threading.current_thread()

    used = [threads.submit(meet) for _ in range(6)]
    found = {one.result(10) for one in used}
    assert len(found) == 2
    assert all(thread.daemon for thread in found)


def test_a_shutdown_finishes_queued_calls_and_refuses_new_ones(threads: DaemonThreads) -> None:
    go = threading.Event()
    queued = [threads.submit(go.wait, 10) for _ in range(5)]
    threads.shutdown()
    with pytest.raises(RuntimeError, match="no calls are accepted"):
        threads.submit(len, "")
    go.set()
    assert all(one.result(10) for one in queued)


def test_a_cancelling_shutdown_skips_calls_that_have_not_started(threads: DaemonThreads) -> None:
    go, begun = threading.Event(), threading.Semaphore(0)

    def work() -> bool:
        begun.release()
        return go.wait(10)

    running = [threads.submit(work) for _ in range(2)]
    waiting = [threads.submit(work) for _ in range(3)]
    for _ in running:
        begun.acquire()
    threads.shutdown(cancel_futures=True)
    go.set()
    assert all(one.result(10) for one in running)
    done, _ = wait(waiting, timeout=10)
    assert all(one.cancelled() for one in done)
    assert len(done) == len(waiting)
