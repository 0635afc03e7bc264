"""A double of S3 that is as quick for a million objects as for ten, can be slowed down, and logs requests.

moto scans a bucket at each listing, so a table of 100,000 versions would seem slow however few its requests
are. This one keeps the keys sorted. It has what Lance and obstore ask of S3: objects with ranges and
conditions, listings in pages with delimiters, copies, deletion of up to a thousand objects by one request. It
checks no signatures, and refuses what it doesn't have, such as uploads in parts, with NotImplemented.
"""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import format_datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from tests.servers.s3_bucket import Bucket, Stored

PAGE = 1000
LIST, GET, HEAD, PUT, COPY, DELETE, BULK_DELETE = (
    "list",
    "get",
    "head",
    "put",
    "copy",
    "delete",
    "bulk delete",
)


@dataclass(frozen=True)
class Request:
    """A request as S3 bills it."""

    kind: str
    key: str
    """The object's key, the prefix of a listing, or the first key of a bulk deletion."""


class S3Double:
    """The server, with one bucket. Its state is that of the process that starts it."""

    def __init__(self, bucket: str = "lake") -> None:
        self.bucket_name = bucket
        self.bucket = Bucket()
        self.requests: list[Request] = []
        self.latency = 0.0
        """Seconds before each answer."""
        self.gate: Callable[[Request], object] = lambda request: None
        """Called with each request before it takes effect: a test may let it wait, or lose it by an error."""
        self.lock = threading.Lock()
        double = self

        class Handler(_Handler):
            s3 = double

        self._server = _Server(("127.0.0.1", 0), Handler)

    @property
    def storage(self) -> dict[str, str]:
        """Lance's storage options for it."""
        return {
            "aws_endpoint": f"http://127.0.0.1:{self._server.server_port}",
            "aws_access_key_id": "nobody",
            "aws_secret_access_key": "checks it",
            "aws_region": "us-east-1",
            "allow_http": "true",
        }

    @contextlib.contextmanager
    def counted(self) -> Iterator[Counter[str]]:
        """Count the requests of the block by kind; the count is complete once the block has ended."""
        seen: Counter[str] = Counter()
        before = len(self.requests)
        yield seen
        seen.update(request.kind for request in self.requests[before:])

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Print nothing: the client is gone, or its request is to be lost."""


class _Handler(BaseHTTPRequestHandler):
    s3: S3Double
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_GET(self) -> None:
        query, key, _ = self._begin()
        if not key:
            self._list(query)
            return
        self._log(GET, key)
        with self._object(key) as stored:
            if stored is not None:
                self._send_object(stored)

    def do_HEAD(self) -> None:
        _, key, _ = self._begin()
        self._log(HEAD, key)
        with self._object(key) as stored:
            if stored is not None:
                self._answer(HTTPStatus.OK, b"", self._headers_of(stored), length=stored.size)

    def do_PUT(self) -> None:
        query, key, body = self._begin()
        source = self.headers.get("x-amz-copy-source")
        self._log(COPY if source else PUT, key)
        if query:
            self._refuse(HTTPStatus.NOT_IMPLEMENTED, "NotImplemented")
            return
        with self.s3.lock:
            known = self.s3.bucket.objects
            if self._is_refused(known.get(key)):
                self._refuse(HTTPStatus.PRECONDITION_FAILED, "PreconditionFailed")
                return
            if source:
                body = known[unquote(source).lstrip("/").partition("/")[2]].read()
            stored = Stored.of(body)
            self.s3.bucket.put(key, stored)
        copied = f"<CopyObjectResult><ETag>{escape(stored.e_tag)}</ETag></CopyObjectResult>".encode()
        self._answer(HTTPStatus.OK, copied if source else b"", {"ETag": stored.e_tag})

    def do_DELETE(self) -> None:
        _, key, _ = self._begin()
        self._log(DELETE, key)
        with self.s3.lock:
            self.s3.bucket.remove(key)
        self._answer(HTTPStatus.NO_CONTENT, b"", {})

    def do_POST(self) -> None:
        query, key, body = self._begin()
        if "delete" not in query:
            self._log("unknown", key)
            self._refuse(HTTPStatus.NOT_IMPLEMENTED, "NotImplemented")
            return
        named = [one.text or "" for one in ElementTree.fromstring(body).iter() if one.tag.endswith("Key")]
        self._log(BULK_DELETE, named[0])
        if len(named) > PAGE:
            self._refuse(HTTPStatus.BAD_REQUEST, "MalformedXML")
            return
        with self.s3.lock:
            self.s3.bucket.remove(*named)
        gone = "".join(f"<Deleted><Key>{escape(one)}</Key></Deleted>" for one in named)
        self._answer(HTTPStatus.OK, f"<DeleteResult>{gone}</DeleteResult>".encode(), {})

    def _begin(self) -> tuple[dict[str, str], str, bytes]:
        """Read the request: its query, key and body."""
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        split = urlsplit(self.path)
        key = unquote(split.path).removeprefix(f"/{self.s3.bucket_name}").lstrip("/")
        time.sleep(self.s3.latency)
        return dict(parse_qsl(split.query, keep_blank_values=True)), key, body

    def _log(self, kind: str, key: str) -> None:
        request = Request(kind, key)
        self.s3.requests.append(request)
        self.s3.gate(request)

    def _list(self, query: Mapping[str, str]) -> None:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        self._log(LIST, prefix)
        after = query.get("continuation-token", query.get("start-after", ""))
        limit = min(PAGE, int(query.get("max-keys", PAGE)))
        with self.s3.lock:
            found, more = self.s3.bucket.page(prefix, delimiter, after, limit)
            entries = [self._entry(item) for item in found]
        token = f"<NextContinuationToken>{escape(found[-1])}</NextContinuationToken>" if more else ""
        text = f"<IsTruncated>{str(more).lower()}</IsTruncated><KeyCount>{len(found)}</KeyCount>{token}"
        answer = f"<ListBucketResult>{text}{''.join(entries)}</ListBucketResult>"
        self._answer(HTTPStatus.OK, answer.encode(), {"Content-Type": "application/xml"})

    def _entry(self, item: str) -> str:
        stored = self.s3.bucket.objects.get(item)
        if stored is None:
            return f"<CommonPrefixes><Prefix>{escape(item)}</Prefix></CommonPrefixes>"
        then = stored.modified.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        return (
            f"<Contents><Key>{escape(item)}</Key><LastModified>{then}</LastModified>"
            f"<ETag>{escape(stored.e_tag)}</ETag><Size>{stored.size}</Size></Contents>"
        )

    @contextlib.contextmanager
    def _object(self, key: str) -> Iterator[Stored | None]:
        stored = self.s3.bucket.objects.get(key)
        if stored is None:
            self._refuse(HTTPStatus.NOT_FOUND, "NoSuchKey")
        yield stored

    def _send_object(self, stored: Stored) -> None:
        content, headers = stored.read(), self._headers_of(stored)
        asked = self.headers.get("range", "").removeprefix("bytes=")
        if not asked:
            self._answer(HTTPStatus.OK, content, headers)
            return
        first, _, last = asked.partition("-")
        start = int(first) if first else max(0, stored.size - int(last))
        end = min(int(last), stored.size - 1) if first and last else stored.size - 1
        headers["Content-Range"] = f"bytes {start}-{end}/{stored.size}"
        self._answer(HTTPStatus.PARTIAL_CONTENT, content[start : end + 1], headers)

    def _headers_of(self, stored: Stored) -> dict[str, str]:
        return {"ETag": stored.e_tag, "Last-Modified": format_datetime(stored.modified, usegmt=True)}

    def _is_refused(self, known: Stored | None) -> bool:
        expected = self.headers.get("if-match")
        return (self.headers.get("if-none-match") == "*" and known is not None) or (
            expected is not None and (known is None or known.e_tag != expected)
        )

    def _refuse(self, status: HTTPStatus, code: str) -> None:
        body = f"<Error><Code>{code}</Code><Message>{quote(self.path)}</Message></Error>".encode()
        self._answer(status, b"" if self.command == "HEAD" else body, {"Content-Type": "application/xml"})

    def _answer(
        self, status: HTTPStatus, body: bytes, headers: Mapping[str, str], length: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""
