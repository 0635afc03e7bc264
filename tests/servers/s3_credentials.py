"""Temporary credentials of the S3 double, which expire as those of STS do."""

import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from tests.servers.s3_uploads import RefusedError

_KEY_ID = re.compile(r"Credential=([^/]+)/")


@dataclass
class TemporaryCredentials:
    """Issues credentials, and checks those of each request; signatures are not checked."""

    lifetime: float
    """Seconds for which credentials are valid."""
    expired: int = 0
    """Requests that were refused since their credentials had expired."""
    _issued: dict[str, tuple[str, float]] = field(default_factory=dict)
    """The session token and the end of validity by access key id."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def issued(self) -> int:
        """How many were issued."""
        return len(self._issued)

    def issue(self) -> dict[str, str]:
        """Return new ones as Lance's storage options, with the time at which they expire."""
        with self._lock:
            number, until = len(self._issued), time.time() + self.lifetime
            key_id, token = f"ASIA{number:016}", f"session token {number}"
            self._issued[key_id] = (token, until)
        return {
            "aws_access_key_id": key_id,
            "aws_secret_access_key": f"secret of {key_id}",
            "aws_session_token": token,
            "expires_at_millis": str(int(until * 1000)),
        }

    def refusal(self, headers: Mapping[str, str]) -> RefusedError | None:
        """Return S3's answer to a request whose credentials are missing, unknown or expired."""
        found = _KEY_ID.search(headers.get("authorization", ""))
        if found is None:
            return RefusedError(HTTPStatus.FORBIDDEN, "AccessDenied")
        token, until = self._issued.get(found[1], ("", 0.0))
        if not token:
            return RefusedError(HTTPStatus.FORBIDDEN, "InvalidAccessKeyId")
        if headers.get("x-amz-security-token") != token:
            return RefusedError(HTTPStatus.BAD_REQUEST, "InvalidToken")
        if time.time() > until:
            self.expired += 1
            return RefusedError(HTTPStatus.BAD_REQUEST, "ExpiredToken")
        return None
