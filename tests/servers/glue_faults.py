"""Faults between a client and Glue, to be injected by tests."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

JSON = "application/x-amz-json-1.1"


@dataclass(frozen=True)
class Refusal:
    """The service responds with an error, and does nothing."""

    code: str
    message: str = "as the test wished"
    status: int = 400

    @property
    def body(self) -> bytes:
        """The error response as AWS formats it."""
        return json.dumps({"__type": self.code, "Message": self.message}).encode()


@dataclass(frozen=True)
class Lost:
    """The connection ends without a response."""

    effective: bool
    """Whether the service has done what it was asked before."""


THROTTLED = Refusal("ThrottlingException", "Rate exceeded")
DENIED = Refusal("AccessDeniedException", "User: arn:aws:iam::1:user/u is not authorized to perform: glue:X")
EXPIRED = Refusal("ExpiredTokenException", "The security token included in the request is expired")
UNKNOWN_KEY = Refusal("UnrecognizedClientException", "The security token in the request is invalid")
BROKEN = Refusal("InternalServiceException", "An internal error occurred", status=500)
FULL = Refusal("ResourceNumberLimitExceededException", "Number of tables exceeds the account limit")
LOST_REPLY = Lost(effective=True)
LOST_REQUEST = Lost(effective=False)

Fault = Refusal | Lost | None
"""None lets a call through to the next fault."""


class Faults:
    """The faults to inject, by operation, each once and in order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._coming: dict[str, list[Fault]] = {}
        self._kept: dict[str, str] = {}

    @contextmanager
    def on(self, operation: str, *faults: Fault) -> Iterator[None]:
        """Inject these faults into the next calls of an operation; all must occur within the block."""
        with self._lock:
            self._coming[operation] = coming = list(faults)
        yield
        with self._lock:
            del self._coming[operation]
        assert not coming, f"{operation} was called too seldom to meet {coming}"

    @contextmanager
    def keeping(self, tables: Mapping[str, str]) -> Iterator[None]:
        """Have BatchDeleteTable fail for these tables, each with an error code."""
        self._kept = dict(tables)
        yield
        self._kept = {}

    def next_of(self, operation: str) -> Fault:
        """The fault of this call, if any."""
        with self._lock:
            coming = self._coming.get(operation)
            return coming.pop(0) if coming else None

    def errors_of(self, names: list[str]) -> list[dict[str, Any]]:
        """The items of a batch that fail."""
        return [
            {"TableName": name, "ErrorDetail": {"ErrorCode": self._kept[name], "ErrorMessage": "kept"}}
            for name in names
            if name in self._kept
        ]
