"""A double of S3 that is as quick for a million objects as for ten, can be slowed down, and logs requests.

moto scans a bucket at each listing, so a table of 100,000 versions would seem slow however few its requests
are. This one keeps the keys sorted. It has what Lance and obstore ask of S3: objects with ranges and
conditions, uploads in parts, listings in pages with delimiters, copies, deletion of up to a thousand objects
by one request. It checks no signatures, and refuses what it doesn't have with NotImplemented. A test may give
it latency, bandwidth, faults of single requests, credentials that expire, and the behavior of lesser stores.
"""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import ThreadingHTTPServer
from typing import Self

from airflow_provider_lancens.namespace.storage import conditional_writes, object_store
from tests.servers.s3_bucket import Bucket
from tests.servers.s3_credentials import TemporaryCredentials
from tests.servers.s3_handler import Handler
from tests.servers.s3_link import Bandwidth, Fault
from tests.servers.s3_requests import Request
from tests.servers.s3_uploads import Uploads

_ON_ITS_WAY = 0.05
"""Seconds that a request may take from the client to the server."""


class S3Double:
    """The server, with one bucket. Its state is that of the process that starts it."""

    def __init__(self, bucket: str = "lake") -> None:
        self.bucket_name = bucket
        self.bucket = Bucket()
        self.uploads = Uploads()
        self.requests: list[Request] = []
        self.latency = 0.0
        """Seconds before each answer."""
        self.incoming, self.outgoing = Bandwidth(), Bandwidth()
        """The bodies that clients upload, and those that they download."""
        self.gate: Callable[[Request], object] = lambda request: None
        """Called with each request before it takes effect: a test may let it wait, or lose it by an error."""
        self.fault: Callable[[Request], Fault | None] = lambda request: None
        """Called with each request when its headers have arrived."""
        self.is_directory_bucket = bucket.endswith("--x-s3")
        """Whether it lists in no order, after no given key, and only prefixes that end with a slash."""
        self.lists_in_order = not self.is_directory_bucket
        self.checks_conditions = True
        """False for a store that ignores If-None-Match."""
        self.may_delete = True
        """False without s3:DeleteObject: a bulk deletion then succeeds, with an error for each object."""
        self.credentials: TemporaryCredentials | None = None
        """The only ones that are accepted; None accepts any."""
        self.lock = threading.Lock()
        self._in_progress = 0
        self._server = _Server(("127.0.0.1", 0), type("Handler", (Handler,), {"s3": self}))

    def set_gate(self, gate: Callable[[Request], object]) -> None:
        """Let something be called with each request, see `gate`."""
        self.gate = gate

    @property
    def endpoint(self) -> dict[str, str]:
        """Lance's storage options for it, without credentials."""
        return {
            "aws_endpoint": f"http://127.0.0.1:{self._server.server_port}",
            "aws_region": "us-east-1",
            "allow_http": "true",
        }

    @property
    def storage(self) -> dict[str, str]:
        """Lance's storage options for it."""
        # A session of a directory bucket would be asked for at AWS's own address, whatever the endpoint is.
        unsigned = {"aws_skip_signature": "true"} if self.is_directory_bucket else {}
        signed = {"aws_access_key_id": "nobody", "aws_secret_access_key": "checks it"}
        return {**self.endpoint, **signed, **unsigned}

    @contextlib.contextmanager
    def counted(self) -> Iterator[Counter[str]]:
        """Count the requests of the block by kind; the count is complete once the block has ended."""
        seen: Counter[str] = Counter()
        before = len(self.requests)
        yield seen
        seen.update(request.kind for request in self.requests[before:])

    @contextlib.contextmanager
    def being_served(self) -> Iterator[None]:
        """Count a request as in progress during the block."""
        with self.lock:
            self._in_progress += 1
        try:
            yield
        finally:
            with self.lock:
                self._in_progress -= 1

    def wait_until_quiet(self) -> None:
        """Wait for the requests that a client has sent, and given up at the failure of another one."""
        time.sleep(_ON_ITS_WAY)
        while self._in_progress:
            time.sleep(_ON_ITS_WAY)

    def forget(self) -> None:
        """Let this process know nothing of the store at this address: another double had its port before."""
        endpoint = self.endpoint["aws_endpoint"]
        for known in (conditional_writes._supporting, object_store._without_bulk_deletes):
            known.difference_update([one for one in known if endpoint in one])

    def __enter__(self) -> Self:
        self.forget()
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """Print nothing: the client is gone, or its request is to be lost."""
