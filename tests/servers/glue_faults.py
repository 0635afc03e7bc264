"""What may go wrong between a client and Glue, to be put in a test's way on purpose."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

JSON = "application/x-amz-json-1.1"


@dataclass(frozen=True)
class Refusal:
    """The service answers with an error, and does nothing."""

    code: str
    message: str = "as the test wished"
    status: int = 400

    @property
    def body(self) -> bytes:
        """The answer as AWS words it."""
        return json.dumps({"__type": self.code, "Message": self.message}).encode()


@dataclass(frozen=True)
class Lost:
    """The connection ends without an answer."""

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
    """The faults to come, by operation, each used once and in order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._coming: dict[str, list[Fault]] = {}
        self._kept: dict[str, str] = {}

    @contextmanager
    def on(self, operation: str, *faults: Fault) -> Iterator[None]:
        """The next calls of an operation meet these faults; within the block all must be met."""
        with self._lock:
            self._coming[operation] = coming = list(faults)
        yield
        with self._lock:
            del self._coming[operation]
        assert not coming, f"{operation} was called too seldom to meet {coming}"

    @contextmanager
    def keeping(self, tables: Mapping[str, str]) -> Iterator[None]:
        """BatchDeleteTable keeps these tables, each with the code of its error."""
        self._kept = dict(tables)
        yield
        self._kept = {}

    def next_of(self, operation: str) -> Fault:
        """The fault that this call meets."""
        with self._lock:
            coming = self._coming.get(operation)
            return coming.pop(0) if coming else None

    def errors_of(self, names: list[str]) -> list[dict[str, Any]]:
        """The parts of a batch that fail."""
        return [
            {"TableName": name, "ErrorDetail": {"ErrorCode": self._kept[name], "ErrorMessage": "kept"}}
            for name in names
            if name in self._kept
        ]
