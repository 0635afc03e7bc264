"""Write rows as fragments: while the end of one file is uploaded, the next one is filled. Runs on executors.

Lance collects 8 MB of a column before it writes them. Of a table with many narrow columns, it therefore
writes most of a file when that file ends, and takes no further rows until it is uploaded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from lance import FragmentMetadata

WriteRows = Callable[[pa.RecordBatchReader], "list[FragmentMetadata]"]
"""Writes all rows of a reader, as one fragment or more."""

AT_ONCE = 2
"""Calls that run in parallel: one takes rows, the other one uploads the rest of its last file."""
_ROWS_OF_A_CALL = 1024 * 1024
"""Minimum number of rows: each call costs a few requests."""


def write_overlapping(
    write: WriteRows, batches: Iterator[pa.RecordBatch], schema: pa.Schema, max_rows_per_file: int
) -> list[FragmentMetadata]:
    """Write rows by calls that overlap, each of which ends with a file.

    Args:
        write: writes rows as files of `max_rows_per_file`; it is called from several threads.
        batches: the rows.
        schema: their columns.
        max_rows_per_file: the number of rows after which a file ends.

    Returns:
        The fragments, in the order of the rows; none if there are no rows.

    Raises:
        Exception: the first error of a call, after all others have ended.
    """
    rows = _Rows(batches)
    calls: list[Future[list[FragmentMetadata]]] = []
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="lance-write") as pool:
        while rows.more():
            call = _Call(rows, max(1, _ROWS_OF_A_CALL // max_rows_per_file) * max_rows_per_file)
            calls.append(pool.submit(call.run, write, schema))
            call.took_its_rows.wait()
    if rows.error is not None:
        raise rows.error
    return [fragment for call in calls for fragment in call.result()]


class _Rows:
    """The rows of all calls; one thread at a time takes of them."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._next: pa.RecordBatch | None = None
        self.error: BaseException | None = None
        """The first error of a call, after which no other one should go on."""

    def more(self) -> bool:
        """Whether there are rows for another call."""
        if self.error is not None:
            return False
        while self._next is None or not self._next.num_rows:
            self._next = next(self._batches, None)
            if self._next is None:
                return False
        return True

    def take(self, most: int) -> pa.RecordBatch | None:
        """Return the next rows; None if there are no more."""
        if not self.more() or self._next is None:
            return None
        batch, self._next = self._next.slice(0, most), self._next.slice(most)
        return batch


class _Call:
    def __init__(self, rows: _Rows, most: int) -> None:
        self._rows, self._most = rows, most
        self.took_its_rows = threading.Event()

    def run(self, write: WriteRows, schema: pa.Schema) -> list[FragmentMetadata]:
        try:
            return write(pa.RecordBatchReader.from_batches(schema, self._batches()))
        except BaseException as error:
            if self._rows.error is None:
                self._rows.error = error
            raise
        finally:
            self.took_its_rows.set()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        missing = self._most
        while missing and (batch := self._rows.take(missing)) is not None:
            missing -= batch.num_rows
            if not missing:
                # Before the last batch is passed: Lance finishes a file that is full before it asks for more.
                self.took_its_rows.set()
            yield batch
        if self._rows.error is not None:
            raise InterruptedError("another file of this task could not be written")
