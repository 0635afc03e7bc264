"""Uploads in parts of the S3 double, which checks part sizes, ETags and the order of parts as S3 does."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from xml.etree import ElementTree

from tests.servers.s3_bucket import Stored

SMALLEST_PART = 5 * 1024 * 1024
"""Bytes that each part but the last must have."""


class RefusedError(Exception):
    """S3's answer to a request that it refuses."""

    def __init__(self, status: HTTPStatus, code: str) -> None:
        super().__init__(code)
        self.status, self.code = status, code


@dataclass
class Upload:
    """An upload that is neither completed nor aborted."""

    key: str
    parts: dict[int, Stored] = field(default_factory=dict)


@dataclass
class Uploads:
    """Unfinished uploads by id: S3 bills their parts until they are aborted."""

    unfinished: dict[str, Upload] = field(default_factory=dict)
    _ids: itertools.count = field(default_factory=itertools.count)

    def start(self, key: str) -> str:
        """Start an upload, and return its id."""
        upload_id = f"upload-{next(self._ids)}"
        self.unfinished[upload_id] = Upload(key)
        return upload_id

    def put(self, upload_id: str, number: int, part: Stored) -> None:
        """Store a part; a further one of the same number replaces it."""
        self._of(upload_id).parts[number] = part

    def complete(self, upload_id: str, request: bytes) -> Stored:
        """Return the object of the parts that the request lists."""
        parts = self._listed(self._of(upload_id), request)
        if any(part.size < SMALLEST_PART for part in parts[:-1]):
            raise RefusedError(HTTPStatus.BAD_REQUEST, "EntityTooSmall")
        del self.unfinished[upload_id]
        return Stored.of(b"".join(part.read() for part in parts))

    def abort(self, upload_id: str) -> None:
        """Forget an upload with its parts."""
        self._of(upload_id)
        del self.unfinished[upload_id]

    def _of(self, upload_id: str) -> Upload:
        if upload_id not in self.unfinished:
            raise RefusedError(HTTPStatus.NOT_FOUND, "NoSuchUpload")
        return self.unfinished[upload_id]

    def _listed(self, upload: Upload, request: bytes) -> Sequence[Stored]:
        listed = [
            (int(part.findtext("{*}PartNumber") or 0), part.findtext("{*}ETag") or "")
            for part in ElementTree.fromstring(request).iterfind("{*}Part")
        ]
        if not listed:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "MalformedXML")
        if listed != sorted(listed):
            raise RefusedError(HTTPStatus.BAD_REQUEST, "InvalidPartOrder")
        for number, e_tag in listed:
            if number not in upload.parts or upload.parts[number].e_tag.strip('"') != e_tag.strip('"'):
                raise RefusedError(HTTPStatus.BAD_REQUEST, "InvalidPart")
        return [upload.parts[number] for number, _ in listed]
