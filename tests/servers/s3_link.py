"""The network of the S3 double: bandwidth that all connections share, and faults of single requests."""

import socket
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import BinaryIO

from tests.servers.s3_uploads import RefusedError

CHUNK = 64 * 1024
_BURST_SECONDS = 0.1
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""Linger for zero seconds: closing the socket then sends RST."""


@dataclass
class Bandwidth:
    """A token bucket for one direction; connections take turns by chunks."""

    bytes_per_second: float | None = None
    """None is unlimited."""
    passed: int = 0
    """Bytes of bodies so far."""
    _free_at: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, count: int) -> None:
        """Wait until so many bytes may pass."""
        with self._lock:
            self.passed += count
            if not self.bytes_per_second:
                return
            now = time.monotonic()
            self._free_at = max(self._free_at, now - _BURST_SECONDS) + count / self.bytes_per_second
            wait = self._free_at - now
        if wait > 0:
            time.sleep(wait)


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one request; a body is stalled or cut after `bytes_before`."""

    refusal: tuple[HTTPStatus, str] | None = None
    """The status and the error code to answer with."""
    bytes_before: int = 0
    stall: float = 0.0
    """Seconds in which nothing arrives, in the middle of the body."""
    reset: bool = False
    """Whether the connection is then reset."""


SLOW_DOWN = Fault(refusal=(HTTPStatus.SERVICE_UNAVAILABLE, "SlowDown"))


class ConnectionLostError(Exception):
    """The connection was reset by a fault."""


@dataclass(frozen=True)
class Transfer:
    """Passes the body of one request, or of its response, at the link's pace."""

    connection: socket.socket
    bandwidth: Bandwidth
    fault: Fault

    def receive(self, source: BinaryIO, count: int) -> bytes:
        """Read a body from the client."""
        body = bytearray()
        for size in self._sizes(count):
            self.bandwidth.take(size)
            body += source.read(size)
        return bytes(body)

    def send(self, target: BinaryIO, body: bytes) -> None:
        """Write a body to the client."""
        rest = memoryview(body)
        for size in self._sizes(len(body)):
            self.bandwidth.take(size)
            target.write(rest[:size])
            target.flush()
            rest = rest[size:]

    def refuse(self) -> None:
        """Refuse the request, if that is the fault."""
        if self.fault.refusal:
            raise RefusedError(*self.fault.refusal)

    def _sizes(self, count: int) -> Iterator[int]:
        until = min(self.fault.bytes_before, count)
        yield from _chunks(until)
        self._fail()
        yield from _chunks(count - until)

    def _fail(self) -> None:
        time.sleep(self.fault.stall)
        if self.fault.reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            raise ConnectionLostError


def _chunks(count: int) -> Iterator[int]:
    for start in range(0, count, CHUNK):
        yield min(CHUNK, count - start)
