"""Requests to the S3 double, as S3 bills them."""

from collections.abc import Mapping
from dataclasses import dataclass

LIST, GET, HEAD, PUT, COPY, DELETE, BULK_DELETE = (
    "list",
    "get",
    "head",
    "put",
    "copy",
    "delete",
    "bulk delete",
)
START_UPLOAD, PART, COMPLETE_UPLOAD, ABORT_UPLOAD = (
    "start upload",
    "part",
    "complete upload",
    "abort upload",
)
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Request:
    """A request as S3 bills it."""

    kind: str
    key: str
    """The object's key, the prefix of a listing, or the first key of a bulk deletion."""
    part: int = 0
    """The number of an upload's part."""
    creates: bool = False
    """Whether it is refused if the object exists."""


def kind_of(method: str, query: Mapping[str, str], key: str, is_copy: bool) -> str:
    """Return the kind of a request."""
    match method:
        case "GET":
            return GET if key else LIST
        case "PUT":
            return PART if "partNumber" in query else COPY if is_copy else PUT if not query else UNKNOWN
        case "DELETE":
            return ABORT_UPLOAD if "uploadId" in query else DELETE
        case "POST":
            kinds = {"delete": BULK_DELETE, "uploads": START_UPLOAD, "uploadId": COMPLETE_UPLOAD}
            return next((kind for name, kind in kinds.items() if name in query), UNKNOWN)
    return HEAD
