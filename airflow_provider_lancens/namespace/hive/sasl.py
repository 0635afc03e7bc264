"""Metastore authentication: none, Kerberos or SASL PLAIN."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from lance_namespace.errors import (
    InvalidInputError,
    LanceNamespaceError,
    ServiceUnavailableError,
    UnauthenticatedError,
    UnsupportedOperationError,
)
from thrift.transport.TTransport import TBufferedTransport, TSaslClientTransport, TTransportException

from airflow_provider_lancens.namespace.config import Properties
from airflow_provider_lancens.namespace.hive import kerberos
from airflow_provider_lancens.namespace.hive.deadline import Deadline, within
from airflow_provider_lancens.redaction import redact

AUTH = "client.auth"
SERVICE_NAME = "client.kerberos.service-name"
USER = "client.user"
PASSWORD = "client.password"  # noqa: S105 - the property's name
KEYS = frozenset({AUTH, SERVICE_NAME, USER, PASSWORD})

NONE, KERBEROS, PLAIN = "none", "kerberos", "plain"
DEFAULT_SERVICE_NAME = "hive"
_MECHANISMS = {KERBEROS: "GSSAPI", PLAIN: "PLAIN"}
_MAX_FRAME = 2**31 - 1
"""Bytes of one reply; Thrift's own limit of 16 MB is less than a batch of wide tables."""


@dataclass(frozen=True, slots=True)
class Authentication:
    """Authentication settings of a connection."""

    kind: str = NONE
    service_name: str = DEFAULT_SERVICE_NAME
    """First part of the server's Kerberos principal; the second is the URI's host."""
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, properties: Properties) -> Self:
        """Read ``client.auth`` and its related properties.

        Raises:
            InvalidInputError: (13) a property is missing, or has no effect with this kind.
        """
        kind = properties.choice(AUTH, (NONE, KERBEROS, PLAIN), NONE)
        if kind != KERBEROS:
            properties.refuse({SERVICE_NAME}, f"has no effect without {AUTH}={KERBEROS}")
        if kind != PLAIN:
            properties.refuse({USER, PASSWORD}, f"has no effect without {AUTH}={PLAIN}")
        found = cls(
            kind=kind,
            service_name=properties.text(SERVICE_NAME, DEFAULT_SERVICE_NAME) or DEFAULT_SERVICE_NAME,
            user=properties.text(USER),
            password=properties.text(PASSWORD),
        )
        if kind == PLAIN and not (found.user and found.password):
            raise InvalidInputError(f"{AUTH}={PLAIN} requires the properties {USER!r} and {PASSWORD!r}")
        return found

    def authenticate(self, transport: TBufferedTransport, host: str, deadline: Deadline) -> Any:
        """Negotiate on an open transport, and return the transport to use.

        Args:
            transport: an open transport to the server.
            host: the server's name, as in its principal.
            deadline: deadline of the negotiation, including a ticket from the KDC.

        Raises:
            UnauthenticatedError: (16) the server refused the credentials, or there are none.
            ServiceUnavailableError: (17) there is no valid ticket at the moment: the KDC can't be reached,
                or the ticket expired.
            UnsupportedOperationError: (0) a required library isn't installed; the message names the extra.
            TimeoutError: the server or the KDC did not answer in time.
            TTransportException: the connection broke, for example if the server doesn't use SASL.
        """
        if self.kind == NONE:
            return transport
        _require_library(self.kind)
        if self.kind == PLAIN:
            return self._negotiate(transport, host)
        # The Kerberos library takes no timeout, and waits half a minute for an unresponsive KDC.
        subject = f"authenticating by {AUTH}={KERBEROS} (waiting for the metastore and the KDC)"
        return within(deadline, subject, lambda: self._negotiate(transport, host))

    def _negotiate(self, transport: TBufferedTransport, host: str) -> Any:
        from puresasl import SASLError

        secret = {"username": self.user, "password": self.password} if self.kind == PLAIN else {}
        try:
            sasl = SaslTransport(
                transport,
                host,
                self.service_name,
                _MECHANISMS[self.kind],
                max_frame_size=_MAX_FRAME,
                **secret,
            )
            sasl.open()
        except (SASLError, *kerberos.library_errors()) as error:
            raise self._refused(host, error) from error
        except TTransportException as error:
            if error.type != TTransportException.NOT_OPEN:
                raise
            raise self._refused(host, error) from error
        return sasl

    def _refused(self, host: str, error: Exception) -> LanceNamespaceError:
        secrets = [self.password] if self.password else []
        reason = redact(kerberos.reason(error), secrets)
        who = f"user {self.user!r}" if self.kind == PLAIN else f"service {self.service_name!r}"
        attempt = f"metastore {host}: {AUTH}={self.kind} failed for {who}"
        if kerberos.is_transient(error):
            return ServiceUnavailableError(
                f"{attempt}, which may be temporary: {reason}. Check that the KDC is running and that "
                "the ticket is renewed"
            )
        return UnauthenticatedError(f"{attempt}: {reason}")


class SaslTransport(TSaslClientTransport):  # type: ignore[misc]
    """Thrift's SASL transport that raises transport errors for failures after the negotiation."""

    def flush(self) -> None:
        """Send what was written, protected as negotiated."""
        with _protection_errors():
            super().flush()

    def _read_frame(self) -> None:
        with _protection_errors():
            super()._read_frame()


@contextlib.contextmanager
def _protection_errors() -> Iterator[None]:
    from puresasl import SASLError

    # A security context that expired, or a frame that was altered: only a new connection helps.
    try:
        yield
    except (SASLError, *kerberos.library_errors()) as error:
        raise ConnectionError(
            f"the SASL protection of the connection failed: {kerberos.reason(error)}"
        ) from error


def _require_library(kind: str) -> None:
    try:
        import puresasl  # noqa: F401 - whether it is there

        if kind == KERBEROS:
            kerberos.load_library()
    except ImportError as error:
        extra = KERBEROS if kind == KERBEROS else "sasl"
        raise UnsupportedOperationError(
            f"{AUTH}={kind} requires the package {error.name!r}: pip install "
            f"'airflow-provider-lancens[{extra}]'"
        ) from error
