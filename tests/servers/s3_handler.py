"""The HTTP side of the S3 double: requests in, effects on its bucket and its uploads, answers out."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from email.utils import format_datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from tests.servers.s3_bucket import Stored
from tests.servers.s3_link import Bandwidth, Fault, Transfer
from tests.servers.s3_requests import (
    ABORT_UPLOAD,
    BULK_DELETE,
    COMPLETE_UPLOAD,
    COPY,
    DELETE,
    GET,
    HEAD,
    LIST,
    PART,
    PUT,
    START_UPLOAD,
    Request,
    kind_of,
)
from tests.servers.s3_uploads import RefusedError

if TYPE_CHECKING:
    from tests.servers.s3_double import S3Double

PAGE = 1000
CREDENTIALS = "/credentials"
"""The path at which anyone gets new temporary credentials, as JSON."""
_XML = {"Content-Type": "application/xml"}


class Handler(BaseHTTPRequestHandler):
    """Serves one connection; a subclass knows the double."""

    s3: S3Double
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_GET(self) -> None:
        self._serve()

    def do_HEAD(self) -> None:
        self._serve()

    def do_PUT(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        with self.s3.being_served():
            self._answer_request()

    def _answer_request(self) -> None:
        self._read_head()
        if self.path == CREDENTIALS and self.s3.credentials:
            self._answer(HTTPStatus.OK, json.dumps(self.s3.credentials.issue()).encode(), {})
            return
        # As S3 does, when the headers have arrived: a body may take longer than the credentials last.
        refused = self.s3.credentials and self.s3.credentials.refusal(self.headers)
        received = self._transfer(self.s3.incoming, PUT, PART)
        self._body = received.receive(self.rfile, int(self.headers.get("content-length", 0)))
        time.sleep(self.s3.latency)
        try:
            self._log()
            received.refuse()
            if refused:
                raise refused
            self._take_effect()
        except RefusedError as refused:
            self._refuse(refused)

    def _read_head(self) -> None:
        split = urlsplit(self.path)
        self._query = dict(parse_qsl(split.query, keep_blank_values=True))
        self._key = unquote(split.path).removeprefix(f"/{self.s3.bucket_name}").lstrip("/")
        kind = kind_of(self.command, self._query, self._key, "x-amz-copy-source" in self.headers)
        key = self._query.get("prefix", "") if kind == LIST else self._key
        creates = self.headers.get("if-none-match") == "*"
        self._request = Request(kind, key, int(self._query.get("partNumber", 0)), creates)
        self._fault = self.s3.fault(self._request) or Fault()

    def _transfer(self, bandwidth: Bandwidth, *faulty: str) -> Transfer:
        """Return the transfer of a body, with the request's fault if it is of one of these kinds."""
        cut = self._request.kind in faulty
        fault = self._fault if cut else Fault(refusal=self._fault.refusal)
        return Transfer(self.connection, bandwidth, fault)

    def _log(self) -> None:
        if self._request.kind == BULK_DELETE:
            self._request = replace(self._request, key=self._keys_to_delete()[0])
        self.s3.requests.append(self._request)
        self.s3.gate(self._request)

    def _take_effect(self) -> None:
        effects = {
            LIST: self._list,
            GET: self._get,
            HEAD: self._head,
            PUT: self._put,
            COPY: self._put,
            DELETE: self._delete,
            BULK_DELETE: self._bulk_delete,
            START_UPLOAD: self._start_upload,
            PART: self._put_part,
            COMPLETE_UPLOAD: self._complete_upload,
            ABORT_UPLOAD: self._abort_upload,
        }
        effects.get(self._request.kind, self._unknown)()

    def _get(self) -> None:
        stored = self._stored()
        content, headers = stored.read(), _headers_of(stored)
        asked = self.headers.get("range", "").removeprefix("bytes=")
        if not asked:
            self._answer(HTTPStatus.OK, content, headers)
            return
        first, _, last = asked.partition("-")
        start = int(first) if first else max(0, stored.size - int(last))
        end = min(int(last), stored.size - 1) if first and last else stored.size - 1
        headers["Content-Range"] = f"bytes {start}-{end}/{stored.size}"
        self._answer(HTTPStatus.PARTIAL_CONTENT, content[start : end + 1], headers)

    def _head(self) -> None:
        stored = self._stored()
        self._answer(HTTPStatus.OK, b"", _headers_of(stored), length=stored.size)

    def _put(self) -> None:
        uploaded = Stored.of(self._body)
        with self.s3.lock:
            self._check_condition(self.s3.bucket.objects.get(self._key))
            stored = self._copied() or uploaded
            self.s3.bucket.put(self._key, stored)
        self._answer_stored("CopyObjectResult", stored)

    def _copied(self) -> Stored | None:
        """Return the object that the request copies; None if the content is in its body."""
        source = unquote(self.headers.get("x-amz-copy-source", ""))
        if not source:
            return None
        return Stored.of(self.s3.bucket.objects[source.lstrip("/").partition("/")[2]].read())

    def _answer_stored(self, root: str, stored: Stored) -> None:
        if "x-amz-copy-source" in self.headers:
            self._answer_xml(root, f"<ETag>{escape(stored.e_tag)}</ETag>")
        else:
            self._answer(HTTPStatus.OK, b"", {"ETag": stored.e_tag})

    def _delete(self) -> None:
        if not self.s3.may_delete:
            raise RefusedError(HTTPStatus.FORBIDDEN, "AccessDenied")
        with self.s3.lock:
            self.s3.bucket.remove(self._key)
        self._answer(HTTPStatus.NO_CONTENT, b"", {})

    def _bulk_delete(self) -> None:
        keys = self._keys_to_delete()
        if len(keys) > PAGE:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "MalformedXML")
        if not self.s3.may_delete:
            denied = "<Code>AccessDenied</Code><Message>Access Denied</Message>"
            errors = "".join(f"<Error><Key>{escape(one)}</Key>{denied}</Error>" for one in keys)
            self._answer(HTTPStatus.OK, f"<DeleteResult>{errors}</DeleteResult>".encode(), {})
            return
        with self.s3.lock:
            self.s3.bucket.remove(*keys)
        gone = "".join(f"<Deleted><Key>{escape(one)}</Key></Deleted>" for one in keys)
        self._answer(HTTPStatus.OK, f"<DeleteResult>{gone}</DeleteResult>".encode(), {})

    def _keys_to_delete(self) -> list[str]:
        return [
            one.text or "" for one in ElementTree.fromstring(self._body).iter() if one.tag.endswith("Key")
        ]

    def _start_upload(self) -> None:
        with self.s3.lock:
            upload_id = self.s3.uploads.start(self._key)
        text = f"<Bucket>{self.s3.bucket_name}</Bucket><Key>{escape(self._key)}</Key>"
        answer = f"{text}<UploadId>{upload_id}</UploadId>"
        self._answer_xml("InitiateMultipartUploadResult", answer)

    def _put_part(self) -> None:
        uploaded = Stored.of(self._body)
        with self.s3.lock:
            part = self._copied() or uploaded
            self.s3.uploads.put(self._query.get("uploadId", ""), self._request.part, part)
        self._answer_stored("CopyPartResult", part)

    def _complete_upload(self) -> None:
        with self.s3.lock:
            self._check_condition(self.s3.bucket.objects.get(self._key))
            stored = self.s3.uploads.complete(self._query["uploadId"], self._body)
            self.s3.bucket.put(self._key, stored)
        text = f"<Key>{escape(self._key)}</Key><ETag>{escape(stored.e_tag)}</ETag>"
        self._answer_xml("CompleteMultipartUploadResult", text)

    def _abort_upload(self) -> None:
        with self.s3.lock:
            self.s3.uploads.abort(self._query["uploadId"])
        self._answer(HTTPStatus.NO_CONTENT, b"", {})

    def _unknown(self) -> None:
        raise RefusedError(HTTPStatus.NOT_IMPLEMENTED, "NotImplemented")

    def _list(self) -> None:
        prefix, delimiter = self._query.get("prefix", ""), self._query.get("delimiter", "")
        if self.s3.is_directory_bucket and ("start-after" in self._query or (prefix and prefix[-1] != "/")):
            raise RefusedError(HTTPStatus.BAD_REQUEST, "InvalidRequest")
        after = self._query.get("continuation-token", self._query.get("start-after", ""))
        limit = min(PAGE, int(self._query.get("max-keys", PAGE)))
        bucket = self.s3.bucket
        page = bucket.page if self.s3.lists_in_order else bucket.page_in_no_order
        with self.s3.lock:
            found, more = page(prefix, delimiter, after, limit)
            entries = [self._entry(item) for item in found]
        token = f"<NextContinuationToken>{escape(found[-1])}</NextContinuationToken>" if more else ""
        text = f"<IsTruncated>{str(more).lower()}</IsTruncated><KeyCount>{len(found)}</KeyCount>{token}"
        self._answer_xml("ListBucketResult", text + "".join(entries))

    def _entry(self, item: str) -> str:
        stored = self.s3.bucket.objects.get(item)
        if stored is None:
            return f"<CommonPrefixes><Prefix>{escape(item)}</Prefix></CommonPrefixes>"
        then = stored.modified.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        return (
            f"<Contents><Key>{escape(item)}</Key><LastModified>{then}</LastModified>"
            f"<ETag>{escape(stored.e_tag)}</ETag><Size>{stored.size}</Size></Contents>"
        )

    def _stored(self) -> Stored:
        stored = self.s3.bucket.objects.get(self._key)
        if stored is None:
            raise RefusedError(HTTPStatus.NOT_FOUND, "NoSuchKey")
        return stored

    def _check_condition(self, known: Stored | None) -> None:
        if not self.s3.checks_conditions:
            return
        expected = self.headers.get("if-match")
        if (self.headers.get("if-none-match") == "*" and known is not None) or (
            expected is not None and (known is None or known.e_tag != expected)
        ):
            raise RefusedError(HTTPStatus.PRECONDITION_FAILED, "PreconditionFailed")

    def _refuse(self, refused: RefusedError) -> None:
        body = f"<Error><Code>{refused.code}</Code><Message>{quote(self.path)}</Message></Error>".encode()
        self._answer(refused.status, b"" if self.command == "HEAD" else body, _XML)

    def _answer_xml(self, root: str, content: str) -> None:
        self._answer(HTTPStatus.OK, f"<{root}>{content}</{root}>".encode(), _XML)

    def _answer(
        self, status: HTTPStatus, body: bytes, headers: Mapping[str, str], length: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self._transfer(self.s3.outgoing, GET).send(self.wfile, body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def _headers_of(stored: Stored) -> dict[str, str]:
    return {"ETag": stored.e_tag, "Last-Modified": format_datetime(stored.modified, usegmt=True)}
