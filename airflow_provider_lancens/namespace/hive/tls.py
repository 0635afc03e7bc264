"""TLS to a metastore server (``hive.metastore.use.SSL``), with the system's or given trusted authorities."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Self

from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.namespace.config import Properties

TLS = "client.tls"
CA_FILE = "client.tls.ca-file"
CERT_FILE = "client.tls.cert-file"
KEY_FILE = "client.tls.key-file"
VERIFY_HOSTNAME = "client.tls.verify-hostname"
DETAILS = frozenset({CA_FILE, CERT_FILE, KEY_FILE, VERIFY_HOSTNAME})
KEYS = DETAILS | {TLS}


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """Trusted authorities and client certificate."""

    ca_file: str | None = None
    """PEM file of the authorities to trust; None for the system's."""
    cert_file: str | None = None
    """PEM file of the client certificate, if the server requires one."""
    key_file: str | None = None
    """PEM file of its key, unencrypted; None if `cert_file` contains it."""
    verify_hostname: bool = True
    """Whether the server's certificate must match the URI's host. It is verified in any case."""

    @classmethod
    def parse(cls, properties: Properties) -> Self | None:
        """Read ``client.tls`` and its related properties; None if TLS is off.

        Raises:
            InvalidInputError: (13) one of these is given without TLS, or a key without a certificate.
        """
        if not properties.flag(TLS, default=False):
            properties.refuse(DETAILS, f"has no effect without {TLS}=true")
            return None
        if not properties.text(CERT_FILE):
            properties.refuse({KEY_FILE}, f"has no effect without {CERT_FILE}")
        return cls(
            ca_file=properties.text(CA_FILE),
            cert_file=properties.text(CERT_FILE),
            key_file=properties.text(KEY_FILE),
            verify_hostname=properties.flag(VERIFY_HOSTNAME, default=True),
        )

    def context(self) -> ssl.SSLContext:
        """Create the SSL context; the files are read now, on the machine that connects.

        Raises:
            InvalidInputError: (13) a file can't be read; the message names the property.
        """
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except OSError as error:
            raise _unreadable(CA_FILE, self.ca_file, error) from error
        context.check_hostname = self.verify_hostname
        if self.cert_file:
            try:
                # Without a password given, OpenSSL would ask for one on the terminal.
                context.load_cert_chain(self.cert_file, self.key_file, password="")
            except OSError as error:
                raise _unreadable(CERT_FILE, self.cert_file, error) from error
        return context


def _unreadable(key: str, path: str | None, error: OSError) -> InvalidInputError:
    return InvalidInputError(f"property {key!r}: cannot read {path} as PEM: {error}")
