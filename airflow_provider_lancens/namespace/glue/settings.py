"""Catalog and client settings of a Glue namespace, parsed from its properties."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.namespace.config import COMMON_KEYS, Properties, check_endpoint

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
    CATALOG_ID,
    ENDPOINT,
    REGION,
    ACCESS_KEY_ID,
    SECRET_ACCESS_KEY,
    SESSION_TOKEN,
    CONNECT_TIMEOUT,
    READ_TIMEOUT,
    MAX_ATTEMPTS,
}

# An unreachable endpoint fails in under 10 s: attempts x timeout, plus the SDK's pauses.
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
        """Read the credentials; None if none are given.

        Raises:
            InvalidInputError: (13) one half of the pair is missing, or a value has invalid characters.
        """
        key, secret, token = (
            _check_key(name, properties.text(name))
            for name in (ACCESS_KEY_ID, SECRET_ACCESS_KEY, SESSION_TOKEN)
        )
        if key and secret:
            return cls(key, secret, token)
        if key or secret or token:
            raise InvalidInputError(
                f"properties {ACCESS_KEY_ID!r} and {SECRET_ACCESS_KEY!r} must be set together, and "
                f"{SESSION_TOKEN!r} requires both; set them, or none of the three to use the "
                "default credential chain"
            )
        return None


@dataclass(frozen=True, slots=True)
class GlueSettings:
    """Data Catalog and client settings."""

    catalog_id: str | None = None
    """Id of the Data Catalog; None for the account's default."""
    endpoint: str | None = None
    """Address of the service; None for AWS's default of the region."""
    region: str | None = None
    """AWS region; None for the SDK's default chain."""
    credentials: Credentials | None = None
    connect_timeout: float = DEFAULT_CONNECT_TIMEOUT
    """Seconds for connecting, at each attempt."""
    read_timeout: float = DEFAULT_READ_TIMEOUT
    """Seconds for one response, at each attempt."""
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    """Maximum number of times the SDK sends a request; it waits in between, longer if throttled."""

    @classmethod
    def parse(cls, properties: Properties) -> Self:
        """Read the catalog's and the client's properties.

        Raises:
            InvalidInputError: (13) a value is invalid; the message names the property.
        """
        endpoint = properties.text(ENDPOINT)
        return cls(
            catalog_id=properties.text(CATALOG_ID),
            endpoint=None
            if endpoint is None
            else check_endpoint(ENDPOINT, endpoint, f"{ACCESS_KEY_ID!r} and {SECRET_ACCESS_KEY!r}"),
            region=properties.text(REGION),
            credentials=Credentials.parse(properties),
            connect_timeout=properties.seconds(CONNECT_TIMEOUT, DEFAULT_CONNECT_TIMEOUT),
            read_timeout=properties.seconds(READ_TIMEOUT, DEFAULT_READ_TIMEOUT),
            max_attempts=properties.integer(MAX_ATTEMPTS, DEFAULT_MAX_ATTEMPTS),
        )

    @property
    def fingerprint(self) -> str:
        """Endpoint, region and catalog, without any secret.

        No property names an account's default catalog. If static keys select the account, a digest of the
        key's public half identifies it, so that two accounts aren't mistaken for one.
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
        return f"Glue at {self.endpoint or 'AWS'}, region {self.region or 'from the default chain'}"


def glue_properties(values: Mapping[str, str]) -> Properties:
    """Return the properties of a Glue namespace, refusing misspelled keys."""
    return Properties(values, KNOWN_KEYS)


def _check_key(name: str, value: str | None) -> str | None:
    # The SDK would fail on it later, and show it in its message.
    if value is not None and not (value.isascii() and value.isprintable() and " " not in value):
        raise InvalidInputError(
            f"property {name!r}: it contains spaces or characters that are not allowed in a key"
        )
    return value
