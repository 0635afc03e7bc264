"""Who we are to a metastore server: nobody, a Kerberos principal, or a user with a password (SASL)."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any, Self

from lance_namespace.errors import InvalidInputError, UnauthenticatedError, UnsupportedOperationError
from thrift.transport.TTransport import TBufferedTransport, TSaslClientTransport, TTransportException

from airflow_provider_lancens.namespace.config import Properties

AUTH = "client.auth"
SERVICE_NAME = "client.kerberos.service-name"
USER = "client.user"
PASSWORD = "client.password"  # noqa: S105 - the property's name
KEYS = frozenset({AUTH, SERVICE_NAME, USER, PASSWORD})

NONE, KERBEROS, PLAIN = "none", "kerberos", "plain"
DEFAULT_SERVICE_NAME = "hive"
_MECHANISMS = {KERBEROS: "GSSAPI", PLAIN: "PLAIN"}
_MAX_FRAME = 2**31 - 1
"""Bytes of one answer; thrift's own limit of 16 MB is less than a batch of wide tables."""


@dataclass(frozen=True, slots=True)
class Authentication:
    """How a connection authenticates."""

    kind: str = NONE
    service_name: str = DEFAULT_SERVICE_NAME
    """First part of the server's Kerberos principal; the second is the URI's host."""
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, properties: Properties) -> Self:
        """Read ``client.auth`` and what goes with it.

        Raises:
            InvalidInputError: (13) something is missing, or means nothing with this kind.
        """
        kind = properties.choice(AUTH, (NONE, KERBEROS, PLAIN), NONE)
        if kind != KERBEROS:
            properties.refuse({SERVICE_NAME}, f"means something only with {AUTH}={KERBEROS}")
        if kind != PLAIN:
            properties.refuse({USER, PASSWORD}, f"means something only with {AUTH}={PLAIN}")
        found = cls(
            kind=kind,
            service_name=properties.text(SERVICE_NAME, DEFAULT_SERVICE_NAME) or DEFAULT_SERVICE_NAME,
            user=properties.text(USER),
            password=properties.text(PASSWORD),
        )
        if kind == PLAIN and not (found.user and found.password):
            raise InvalidInputError(f"{AUTH}={PLAIN} needs the properties {USER!r} and {PASSWORD!r}")
        return found

    def authenticate(self, transport: TBufferedTransport, host: str) -> Any:
        """Negotiate on an open transport, and return the one to speak through.

        Args:
            transport: an open one to the server.
            host: the server's name, as its principal has it.

        Raises:
            UnauthenticatedError: (16) the server, or the Kerberos library, said no.
            UnsupportedOperationError: (0) what it needs isn't installed; the message names the extra.
            TTransportException: the connection broke, as where the server doesn't speak SASL.
        """
        if self.kind == NONE:
            return transport
        _require_library(self.kind)
        from puresasl import SASLError

        secret = {"username": self.user, "password": self.password} if self.kind == PLAIN else {}
        # The Kerberos library's own errors have no base that thrift or pure-sasl know of.
        refusals = (SASLError, *_kerberos_errors())
        try:
            sasl = TSaslClientTransport(
                transport,
                host,
                self.service_name,
                _MECHANISMS[self.kind],
                max_frame_size=_MAX_FRAME,
                **secret,
            )
            sasl.open()
        except refusals as error:
            raise self._refused(host, error) from error
        except TTransportException as error:
            if error.type != TTransportException.NOT_OPEN:
                raise
            raise self._refused(host, error) from error
        return sasl

    def _refused(self, host: str, error: Exception) -> UnauthenticatedError:
        who = f"user {self.user!r}" if self.kind == PLAIN else f"service {self.service_name!r}"
        return UnauthenticatedError(f"metastore {host}: {AUTH}={self.kind} failed for {who}: {error}")


def _require_library(kind: str) -> None:
    try:
        import puresasl  # noqa: F401 - whether it is there

        if kind == KERBEROS:
            import kerberos  # noqa: F401
    except ImportError as error:
        extra = KERBEROS if kind == KERBEROS else "sasl"
        raise UnsupportedOperationError(
            f"{AUTH}={kind} needs the package {error.name!r}: pip install 'airflow-provider-lancens[{extra}]'"
        ) from error


def _kerberos_errors() -> tuple[type[Exception], ...]:
    library = sys.modules.get("kerberos")
    return (library.KrbError,) if library else ()
