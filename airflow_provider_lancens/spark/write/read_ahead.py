"""Read batches ahead in a thread, so that reading overlaps with encoding and uploading. Runs on executors."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

AHEAD_BYTES = 32 * 1024 * 1024
"""Bound of the batches that wait; a larger one waits alone."""


def read_ahead(batches: Iterator[pa.RecordBatch], most: int = AHEAD_BYTES) -> Generator[pa.RecordBatch]:
    """Yield the batches, which a thread reads while the caller works on earlier ones.

    Args:
        batches: the source; it is read by one thread, and not after this generator was closed.
        most: how many bytes of them may wait.

    Raises:
        Exception: what the source raised, after the batches before.
    """
    ahead = _ReadAhead(batches, most)
    thread = threading.Thread(target=ahead.fill, name="lance-read-ahead", daemon=True)
    thread.start()
    try:
        yield from ahead.take()
    finally:
        ahead.stop()
        thread.join()


class _ReadAhead:
    def __init__(self, batches: Iterator[pa.RecordBatch], most: int) -> None:
        self._batches, self._most = batches, most
        self._waiting: deque[pa.RecordBatch] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._ended = self._stopped = False
        self._error: BaseException | None = None

    def fill(self) -> None:
        """Read until the end, an error, or `stop`."""
        try:
            for batch in self._batches:
                if not self._add(batch):
                    break
        except BaseException as error:  # noqa: BLE001 raised where the batches are taken
            self._error = error
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def take(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches in order, then raise the source's error."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ended)
                if not self._waiting:
                    break
                batch = self._waiting.popleft()
                self._bytes -= batch.nbytes
                self._changed.notify_all()
            yield batch
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Have the thread end after the batch that it is reading."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _add(self, batch: pa.RecordBatch) -> bool:
        size = batch.nbytes
        with self._changed:
            self._changed.wait_for(
                lambda: self._stopped or not self._waiting or self._bytes + size <= self._most
            )
            self._waiting.append(batch)
            self._bytes += size
            self._changed.notify_all()
            return not self._stopped
