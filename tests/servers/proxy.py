"""A network between a client and a Thrift server that loses what it is told to lose.

It reads the name of each call off the wire (Thrift's binary protocol; the client sends a call and
waits for its answer, so a call begins with the first bytes after an answer).
"""

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from selectors import EVENT_READ, DefaultSelector
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

HOST = "127.0.0.1"
CHUNK = 1 << 16
MAX_NAME = 100

REQUEST, REPLY, HOLD = "request", "reply", "hold"


@dataclass
class Fault:
    """What happens to the next calls of one name."""

    kind: str
    times: int = 1
    released: threading.Event = field(default_factory=threading.Event)
    happened: threading.Event = field(default_factory=threading.Event)


class Proxy:
    """Listens on loopback, and forwards to one server.

    Args:
        uri: The server's, ``thrift://host:port``.
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
        """Break the connection on such a call; the server never hears of it."""
        return self._faults.setdefault(call, Fault(REQUEST, times))

    def lose_reply(self, call: str, times: int = 1) -> Fault:
        """Break the connection when the server has answered such a call."""
        return self._faults.setdefault(call, Fault(REPLY, times))

    def hold_reply(self, call: str, times: int = 1) -> Fault:
        """Keep back the answer of such a call until the fault's event `released` is set."""
        return self._faults.setdefault(call, Fault(HOLD, times))

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
            answered = True
            for source, data in _chunks(client, server):
                if source is client:
                    if answered:
                        fault = self._fault_of(data)
                    answered = False
                    if fault and fault.kind == REQUEST:
                        fault.happened.set()
                        return
                    server.sendall(data)
                else:
                    answered = True
                    if fault:
                        fault.happened.set()
                        if fault.kind == REPLY:
                            return
                        fault.released.wait()
                    client.sendall(data)

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


def name_of_call(data: bytes) -> str:
    """The name of the call that a message begins with; '' where it is no Thrift call."""
    version, length = struct.unpack(">II", data[:8]) if len(data) >= 8 else (0, 0)
    if version >> 16 != 0x8001 or length > MAX_NAME:
        return ""
    return data[8 : 8 + length].decode()


def _chunks(*ends: socket.socket) -> Iterator[tuple[socket.socket, bytes]]:
    """What arrives on either end, until one of them closes."""
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


@contextlib.contextmanager
def silent_server() -> Iterator[str]:
    """A server that accepts connections and says nothing on them; its URI."""
    with socket.create_server((HOST, 0)) as listener:
        yield f"thrift://{HOST}:{listener.getsockname()[1]}"


def closed_port() -> str:
    """A URI that nobody listens on."""
    with socket.create_server((HOST, 0)) as listener:
        return f"thrift://{HOST}:{listener.getsockname()[1]}"
