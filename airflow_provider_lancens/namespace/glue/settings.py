"""The properties of a Glue namespace that say which catalog it is and how it is reached."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlsplit

from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.namespace.config import COMMON_KEYS, Properties

CATALOG_ID = "catalog_id"
ENDPOINT = "endpoint"
REGION = "region"
ACCESS_KEY_ID = "access_key_id"
SECRET_ACCESS_KEY = "secret_access_key"  # noqa: S105 - the name of a property
SESSION_TOKEN = "session_token"  # noqa: S105 - the name of a property
CONNECT_TIMEOUT = "client.connect-timeout"
READ_TIMEOUT = "client.read-timeout"
MAX_ATTEMPTS = "client.max-attempts"
KNOWN_KEYS = COMMON_KEYS | {
    *(CATALOG_ID, ENDPOINT, REGION),
    *(ACCESS_KEY_ID, SECRET_ACCESS_KEY, SESSION_TOKEN),
    *(CONNECT_TIMEOUT, READ_TIMEOUT, MAX_ATTEMPTS),
}

# An endpoint that can't be reached is given up in under 10 s: attempts x timeout, and the SDK's pauses.
DEFAULT_CONNECT_TIMEOUT = 2.0
DEFAULT_READ_TIMEOUT = 30.0
DEFAULT_MAX_ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class Credentials:
    """Static credentials, or a session's; without them the SDK's default chain is used."""

    access_key_id: str = field(repr=False)
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, properties: Properties) -> Self | None:
        """Read them; None where none of them is given.

        Raises:
            InvalidInputError: (13) one half of the pair is missing, or one can't be sent.
        """
        key, secret, token = (
            _sendable(name, properties.text(name))
            for name in (ACCESS_KEY_ID, SECRET_ACCESS_KEY, SESSION_TOKEN)
        )
        if key and secret:
            return cls(key, secret, token)
        if key or secret or token:
            raise InvalidInputError(
                f"properties {ACCESS_KEY_ID!r} and {SECRET_ACCESS_KEY!r} go together, and {SESSION_TOKEN!r} "
                "needs both; give both, or none of the three for the default credential chain"
            )
        return None


@dataclass(frozen=True, slots=True)
class GlueSettings:
    """Which Data Catalog it is, and how it is reached."""

    catalog_id: str | None = None
    """The Data Catalog; None for the account's own."""
    endpoint: str | None = None
    """The service's address; None for AWS's own of the region."""
    region: str | None = None
    """The AWS region; None for what the SDK's default chain says."""
    credentials: Credentials | None = None
    connect_timeout: float = DEFAULT_CONNECT_TIMEOUT
    """Seconds for connecting, at each attempt."""
    read_timeout: float = DEFAULT_READ_TIMEOUT
    """Seconds for one answer, at each attempt."""
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    """How often the SDK sends a request at most; it waits in between, longer where it is throttled."""

    @classmethod
    def parse(cls, properties: Properties) -> Self:
        """Read the catalog's and the client's properties.

        Raises:
            InvalidInputError: (13) a value can't be what it is; the message names the property.
        """
        return cls(
            catalog_id=properties.text(CATALOG_ID),
            endpoint=_endpoint(properties.text(ENDPOINT)),
            region=properties.text(REGION),
            credentials=Credentials.parse(properties),
            connect_timeout=properties.seconds(CONNECT_TIMEOUT, DEFAULT_CONNECT_TIMEOUT),
            read_timeout=properties.seconds(READ_TIMEOUT, DEFAULT_READ_TIMEOUT),
            max_attempts=properties.integer(MAX_ATTEMPTS, DEFAULT_MAX_ATTEMPTS),
        )

    @property
    def fingerprint(self) -> str:
        """Endpoint, region and catalog, without any secret.

        An account's own catalog isn't named by any property. Where static keys choose the account, a
        digest of the key's public half stands for it, so that two accounts aren't taken for one.
        """
        return f"{self.endpoint or 'aws'}/{self.region or 'default-region'}/{self._catalog}"

    @property
    def _catalog(self) -> str:
        if self.catalog_id:
            return self.catalog_id
        if self.credentials:
            return f"own-{hashlib.sha256(self.credentials.access_key_id.encode()).hexdigest()[:12]}"
        return "own"

    def __str__(self) -> str:
        return f"Glue at {self.endpoint or 'AWS'}, region {self.region or 'by default chain'}"


def glue_properties(values: Mapping[str, str]) -> Properties:
    """The properties of a Glue namespace, with misspelled keys refused."""
    return Properties(values, KNOWN_KEYS)


def _sendable(name: str, value: str | None) -> str | None:
    # The SDK would fail on it later, and show it in its words.
    if value is not None and not (value.isascii() and value.isprintable() and " " not in value):
        raise InvalidInputError(f"property {name!r}: it holds blanks or characters that no key has")
    return value


def _endpoint(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise _bad_endpoint("its port is no number from 1 to 65535") from error
    if parts.username or parts.password:
        raise _bad_endpoint(f"it carries a user or password; use {ACCESS_KEY_ID!r} and its like")
    if not valid or parts.query or parts.fragment:
        raise _bad_endpoint("scheme or host is missing, or something follows them")
    return text.rstrip("/")


def _bad_endpoint(reason: str) -> InvalidInputError:
    # The value itself may hold a password that somebody put there: only the reason is shown.
    return InvalidInputError(f"property {ENDPOINT!r}: expected http(s)://host[:port], but {reason}")
