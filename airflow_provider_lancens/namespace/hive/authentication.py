"""Authentication at a metastore: none, Kerberos or SASL PLAIN; also which errors of Kerberos may pass."""

from __future__ import annotations

import contextlib
import importlib
import sys
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
from airflow_provider_lancens.namespace.deadline import Deadline, within
from airflow_provider_lancens.namespace.hive.limits import MAX_NEGOTIATION, MAX_REPLY
from airflow_provider_lancens.namespace.hive.tls import TLS
from airflow_provider_lancens.redaction import redact

AUTH = "client.auth"
SERVICE_NAME = "client.kerberos.service-name"
USER = "client.user"
PASSWORD = "client.password"  # noqa: S105 - the property's name
PROTECTION = "client.kerberos.protection"
WITHOUT_TLS = "client.plain.without-tls"
KEYS = frozenset({AUTH, SERVICE_NAME, PROTECTION, USER, PASSWORD, WITHOUT_TLS})

NONE, KERBEROS, PLAIN = "none", "kerberos", "plain"
DEFAULT_SERVICE_NAME = "hive"
_PROTECTION_REFUSED = "requested quality of protection"
_MECHANISMS = {KERBEROS: "GSSAPI", PLAIN: "PLAIN"}
_PROTECTIONS = ("auth", "auth-int", "auth-conf")
"""Qualities of protection, each of which includes the previous qualities."""
CONFIDENTIAL = "auth-conf"


@dataclass(frozen=True, slots=True)
class Authentication:
    """Authentication settings of a connection."""

    kind: str = NONE
    service_name: str = DEFAULT_SERVICE_NAME
    """First part of the server's Kerberos principal; the second is the URI's host."""
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    protection: str = CONFIDENTIAL
    """The least quality of protection by Kerberos: ``auth``, ``auth-int`` or ``auth-conf``."""

    @classmethod
    def parse(cls, properties: Properties, *, has_tls: bool) -> Self:
        """Read ``client.auth`` and its related properties.

        Args:
            properties: the namespace's.
            has_tls: whether TLS encrypts the connection.

        Raises:
            InvalidInputError: (13) a property is missing, has no effect with this kind, or a password would
                be sent unencrypted without consent.
        """
        kind = properties.choice(AUTH, (NONE, KERBEROS, PLAIN), NONE)
        if kind != KERBEROS:
            properties.refuse({SERVICE_NAME, PROTECTION}, f"has no effect without {AUTH}={KERBEROS}")
        if kind != PLAIN:
            properties.refuse({USER, PASSWORD, WITHOUT_TLS}, f"has no effect without {AUTH}={PLAIN}")
        authentication = cls(
            kind=kind,
            service_name=properties.text(SERVICE_NAME, DEFAULT_SERVICE_NAME) or DEFAULT_SERVICE_NAME,
            user=properties.text(USER),
            password=properties.text(PASSWORD),
            protection=properties.choice(PROTECTION, _PROTECTIONS, "auth" if has_tls else CONFIDENTIAL),
        )
        if kind == PLAIN and not (authentication.user and authentication.password):
            raise InvalidInputError(f"{AUTH}={PLAIN} requires the properties {USER!r} and {PASSWORD!r}")
        if kind == PLAIN and not has_tls and not properties.flag(WITHOUT_TLS, default=False):
            raise InvalidInputError(
                f"{AUTH}={PLAIN} would send the password unencrypted; set property {TLS!r} to true, or "
                f"property {WITHOUT_TLS!r} to true if nobody else can read the network"
            )
        return authentication

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
        from puresasl import SASLError, SASLProtocolException

        options: dict[str, Any] = (
            {"username": self.user, "password": self.password}
            if self.kind == PLAIN
            else {"qops": _PROTECTIONS[_PROTECTIONS.index(self.protection) :]}
        )
        limit = LimitedTransport(transport, MAX_NEGOTIATION)
        try:
            sasl = SaslTransport(
                limit,
                host,
                self.service_name,
                _MECHANISMS[self.kind],
                max_frame_size=MAX_REPLY,
                **options,
            )
            sasl.open()
            limit.most = MAX_REPLY
        except (SASLError, SASLProtocolException, *kerberos_errors()) as error:
            raise self._refused(host, error) from error
        except TTransportException as error:
            if error.type != TTransportException.NOT_OPEN:
                raise
            raise self._refused(host, error) from error
        return sasl

    def _refused(self, host: str, error: Exception) -> LanceNamespaceError:
        secrets = [self.password] if self.password else []
        reason = redact(kerberos_reason(error), secrets)
        who = f"user {self.user!r}" if self.kind == PLAIN else f"service {self.service_name!r}"
        attempt = f"metastore {host}: {AUTH}={self.kind} failed for {who}"
        if _PROTECTION_REFUSED in reason:
            return UnauthenticatedError(
                f"{attempt}: the server doesn't offer {PROTECTION}={self.protection}; set "
                f"hadoop.rpc.protection=privacy on the metastore, or property {TLS!r} to true, or property "
                f"{PROTECTION!r} to auth if nobody else can read the network"
            )
        if is_transient_kerberos(error):
            return ServiceUnavailableError(
                f"{attempt}, which may be temporary: {reason}. Check that the KDC is running and that "
                "the ticket is renewed"
            )
        return UnauthenticatedError(f"{attempt}: {reason}")


class LimitedTransport:
    """A transport that reads at most so many bytes at once, whatever length the server announces."""

    def __init__(self, transport: TBufferedTransport, most: int) -> None:
        self._transport = transport
        self.most = most

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def readAll(self, size: int) -> bytes:  # noqa: N802 - thrift's name
        """Read exactly so many bytes.

        Raises:
            ConnectionError: they are too many.
        """
        if size > self.most:
            raise ConnectionError(f"the server announced {size} bytes; expected at most {self.most}")
        content = bytearray()
        while len(content) < size:
            content += self._transport.read(size - len(content))
        return bytes(content)


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
    from puresasl import SASLError, SASLProtocolException

    # A security context that expired, or a frame that was altered: only a new connection helps.
    try:
        yield
    except (SASLError, SASLProtocolException, *kerberos_errors()) as error:
        raise ConnectionError(
            f"the SASL protection of the connection failed: {kerberos_reason(error)}"
        ) from error


def _require_library(kind: str) -> None:
    try:
        import puresasl  # noqa: F401 - imported to check that it is installed

        if kind == KERBEROS:
            load_kerberos()
    except ImportError as error:
        extra = KERBEROS if kind == KERBEROS else "sasl"
        raise UnsupportedOperationError(
            f"{AUTH}={kind} requires the package {error.name!r}: pip install "
            f"'airflow-provider-lancens[{extra}]'"
        ) from error


_PROTOCOL = -1765328384
"""The library's number for error 0 of RFC 4120; the next 127 numbers are responses of a KDC."""
_TRANSIENT_KDC_ERRORS = {
    29,  # the KDC is overloaded or starting
    32,  # the ticket expired, and may be renewed at any moment
    33,  # the ticket is not yet valid
    37,  # the clocks differ
    60,  # the KDC failed
}
_NO_CREDENTIALS = {
    -1765328243,  # KRB5_CC_NOTFOUND: no ticket cache, or no ticket in it
    -1765328190,  # KRB5_FCC_PERM: it may not be read
    -1765328189,  # KRB5_FCC_NOFILE
    -1765328203,  # KRB5_KT_NOTFOUND: no such key in the keytab
}
# While kinit writes a new cache, a reader may see a partial cache: the number stands for a missing cache.
_HALF_WRITTEN = ("End of credential cache", "Bad format in credentials cache")


def load_kerberos() -> None:
    """Import the Kerberos library.

    Raises:
        ImportError: it isn't installed.
    """
    importlib.import_module("kerberos")


def kerberos_errors() -> tuple[type[Exception], ...]:
    """Return the library's own error classes, which have no base class that thrift or pure-sasl know."""
    library: Any = sys.modules.get("kerberos")
    return (library.KrbError,) if library else ()


def is_transient_kerberos(error: Exception) -> bool:
    """Whether a retry may succeed later, without a change of credentials or permissions.

    True if no KDC answered, or a ticket expired or is just being renewed. False if a KDC or the server
    refused, or there are no credentials at all.
    """
    text, number = _minor(error)
    if number is None:
        return False
    if 0 <= number - _PROTOCOL < 128:
        return number - _PROTOCOL in _TRANSIENT_KDC_ERRORS
    if number in _NO_CREDENTIALS:
        return any(phrase in text for phrase in _HALF_WRITTEN)
    return True


def kerberos_reason(error: Exception) -> str:
    """Return an error in one line: for the library's errors the minor status, which is the specific one."""
    text, number = _minor(error)
    return text if number is not None and text else str(error)


def _minor(error: Exception) -> tuple[str, int | None]:
    # ((major text, major), (minor text, minor))
    match error.args:
        case ((str(), int()), (str() as text, int() as number)) if isinstance(error, kerberos_errors()):
            return text, number
    return "", None
