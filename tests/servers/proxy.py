"""A proxy between a client and a Thrift server that injects faults.

It parses the name of each call (in Thrift's binary protocol; the client sends a call and waits for its
reply, so a call begins with the first bytes after a reply).
"""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from selectors import EVENT_READ, DefaultSelector
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

HOST = "127.0.0.1"
CHUNK = 1 << 16
MAX_NAME = 100

REQUEST, REPLY, HOLD, CHANGE, SLOWLY = "request", "reply", "hold", "change", "slowly"
DRIP_SECONDS = 0.05
ALWAYS = 1_000_000

Change = Callable[[bytes, bytes], bytes]
"""Given a request and the reply to it, the reply that the client gets."""


@dataclass
class Fault:
    """A fault of the next calls of one name."""

    kind: str
    times: int = 1
    change: Change = lambda request, reply: reply
    then_close: bool = False
    released: threading.Event = field(default_factory=threading.Event)
    happened: threading.Event = field(default_factory=threading.Event)


class Proxy:
    """A proxy on loopback for one server.

    Args:
        uri: of the server, ``thrift://host:port``.
    """

    def __init__(self, uri: str) -> None:
        address = urlsplit(uri)
        assert address.hostname
        assert address.port
        self._target = (address.hostname, address.port)
        self._listener = socket.create_server((HOST, 0))
        self._faults: dict[str, Fault] = {}
        self.calls: list[str] = []
        """The names of all calls that came, in their order."""
        self.connections = 0
        """How many were opened."""
        self.gone = False
        """Whether the server is as good as gone: every request is lost."""

    @property
    def uri(self) -> str:
        return f"thrift://{HOST}:{self._listener.getsockname()[1]}"

    def lose_request(self, call: str, times: int = 1) -> Fault:
        """Close the connection on such a call, before the server receives it."""
        return self._faults.setdefault(call, Fault(REQUEST, times))

    def lose_reply(self, call: str, times: int = 1) -> Fault:
        """Close the connection after the server has replied to such a call."""
        return self._faults.setdefault(call, Fault(REPLY, times))

    def hold_reply(self, call: str, times: int = 1) -> Fault:
        """Delay the reply to such a call until the fault's event `released` is set."""
        return self._faults.setdefault(call, Fault(HOLD, times))

    def change_reply(
        self, call: str, change: Change, times: int = ALWAYS, *, then_close: bool = False
    ) -> Fault:
        """Replace the reply to such a call with other bytes."""
        return self._faults.setdefault(call, Fault(CHANGE, times, change, then_close))

    def send_reply_slowly(self, call: str, times: int = ALWAYS) -> Fault:
        """Send the reply to such a call byte by byte, slowly."""
        return self._faults.setdefault(call, Fault(SLOWLY, times))

    def forget_faults(self) -> None:
        """Remove all faults."""
        self._faults.clear()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for fault in self._faults.values():
            fault.released.set()
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept, which a close alone doesn't
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError), socket.create_connection(self._target) as server:
            fault: Fault | None = None
            request, answered = b"", True
            for source, data in _chunks(client, server):
                if source is client:
                    if answered:
                        fault = self._fault_of(data)
                    request, answered = data if answered else request + data, False
                    if fault and fault.kind == REQUEST:
                        fault.happened.set()
                        return
                    server.sendall(data)
                else:
                    first, answered = not answered, True
                    if fault is None:
                        client.sendall(data)
                    elif not _reply(client, fault, request, data, first=first):
                        return

    def _fault_of(self, data: bytes) -> Fault | None:
        call = name_of_call(data)
        self.calls.append(call)
        if self.gone:
            return Fault(REQUEST)
        fault = self._faults.get(call)
        if fault is None or fault.times == 0:
            return None
        fault.times -= 1
        return fault


def _reply(client: socket.socket, fault: Fault, request: bytes, data: bytes, *, first: bool) -> bool:
    """Send the part of a reply that a fault lets through; return whether the connection continues."""
    fault.happened.set()
    if fault.kind == HOLD:
        fault.released.wait()
    if fault.kind == SLOWLY:
        send_slowly(client, data)
    elif fault.kind == CHANGE:
        client.sendall(fault.change(request, data) if first else b"")
    elif fault.kind != REPLY:
        client.sendall(data)
    return fault.kind != REPLY and not fault.then_close


def name_of_call(data: bytes) -> str:
    """The name of the call that a message begins with; '' if it isn't a Thrift call."""
    version, length = struct.unpack(">II", data[:8]) if len(data) >= 8 else (0, 0)
    if version >> 16 != 0x8001 or length > MAX_NAME:
        return ""
    return data[8 : 8 + length].decode()


def _chunks(*ends: socket.socket) -> Iterator[tuple[socket.socket, bytes]]:
    """The data from either end, until one of them closes."""
    with DefaultSelector() as selector:
        for end in ends:
            selector.register(end, EVENT_READ)
        while True:
            for key, _ in selector.select():
                end: socket.socket = key.fileobj  # type: ignore[assignment]
                data = end.recv(CHUNK)
                if not data:
                    return
                yield end, data


def send_slowly(client: socket.socket, data: bytes) -> None:
    """Send it byte by byte, slowly."""
    for number in range(len(data)):
        client.sendall(data[number : number + 1])
        time.sleep(DRIP_SECONDS)


@contextlib.contextmanager
def slow_server(begin: bytes) -> Iterator[str]:
    """A server that sends these bytes and then endless zeros to every client, byte by byte; yield its URI."""

    def serve(client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            client.sendall(begin)
            while True:
                send_slowly(client, bytes(100))

    def accept() -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server((HOST, 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"thrift://{HOST}:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def silent_server() -> Iterator[str]:
    """A server that accepts connections and never replies; yield its URI."""
    with socket.create_server((HOST, 0)) as listener:
        yield f"thrift://{HOST}:{listener.getsockname()[1]}"


def closed_port() -> str:
    """A URI without a server."""
    with socket.create_server((HOST, 0)) as listener:
        return f"thrift://{HOST}:{listener.getsockname()[1]}"
