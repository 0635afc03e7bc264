"""Property keys, defaults and parsing. Properties are strings, as `lance_namespace.connect` passes them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlsplit

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.locations import absolute_root
from airflow_provider_lancens.namespace.property_keys import (
    REQUIRE_ROOT,
    ROOT,
    STORAGE_PREFIX,
    storage_options,
)
from airflow_provider_lancens.namespace.storage.allowed_locations import ALLOWED_LOCATIONS, AllowedLocations
from airflow_provider_lancens.namespace.table_properties import BY_IMPLEMENTATION, BY_STORAGE, MANAGED_BY
from airflow_provider_lancens.redaction import has_credentials

VEND_CREDENTIALS = "vend_credentials"
COMMON_KEYS = frozenset({ROOT, REQUIRE_ROOT, ALLOWED_LOCATIONS, VEND_CREDENTIALS, MANAGED_BY})

_ENDPOINT = re.compile(r"(?:aws_|azure_|google_)?(?:storage_)?endpoint(?:_url)?|\w*metadata_endpoint")
_FLAGS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


class Properties:
    """Typed access to string properties.

    An invalid value raises an InvalidInputError (13) that names the property and never shows the value: a
    secret is easily entered into the wrong field of a connection.
    """

    def __init__(self, values: Mapping[str, str], known: Collection[str]) -> None:
        """Take the properties of a namespace.

        Args:
            values: properties by key.
            known: the keys that this kind of namespace supports, without ``storage.*``.

        Raises:
            InvalidInputError: (13) a value isn't a string, or a key looks like a misspelled known one.
        """
        self._values = values
        for key, value in values.items():
            _check_key(key, known)
            if not isinstance(value, str):
                raise spec_errors.InvalidInputError(
                    f"property {key!r}: expected a string, got {type(value).__name__}; properties are strings"
                )

    def text(self, key: str, default: str | None = None) -> str | None:
        """Return the value without surrounding whitespace; an empty one counts as absent."""
        return self._values.get(key, "").strip() or default

    def integer(self, key: str, default: int, minimum: int = 1) -> int:
        """Return an integer of at least `minimum`."""
        text = self.text(key)
        if text is None:
            return default
        if not text.isdecimal() or int(text) < minimum:
            raise spec_errors.InvalidInputError(
                f"property {key!r} is invalid: expected a whole number of at least {minimum}"
            )
        return int(text)

    def seconds(self, key: str, default: float) -> float:
        """Return a positive number of seconds."""
        text = self.text(key)
        if text is None:
            return default
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 < value < float("inf"):
            raise spec_errors.InvalidInputError(
                f"property {key!r} is invalid: expected a positive number of seconds"
            )
        return value

    def flag(self, key: str, default: bool) -> bool:
        """Return a boolean: true, false, yes, no, 1 or 0, case-insensitively."""
        text = self.text(key)
        if text is None:
            return default
        if text.lower() not in _FLAGS:
            raise spec_errors.InvalidInputError(f"property {key!r} is invalid: expected true or false")
        return _FLAGS[text.lower()]

    def choice(self, key: str, allowed: Collection[str], default: str) -> str:
        """Return one of the allowed values, case-insensitively."""
        text = (self.text(key) or default).lower()
        if text not in allowed:
            raise spec_errors.InvalidInputError(
                f"property {key!r} is invalid: expected one of {', '.join(sorted(allowed))}"
            )
        return text

    def refuse(self, keys: Collection[str], reason: str) -> None:
        """Refuse properties that have no effect in combination with others, rather than ignore them."""
        for key in sorted(keys):
            if self.text(key) is not None:
                raise spec_errors.InvalidInputError(f"property {key!r} {reason}")

    def storage_options(self) -> dict[str, str]:
        """Return the ``storage.*`` properties without the prefix, as Lance's storage options.

        Raises:
            InvalidInputError: (13) an endpoint is not a URL, or contains a user or password.
        """
        options = storage_options(self._values)
        for key, value in options.items():
            if _ENDPOINT.fullmatch(key) and value.strip():
                check_endpoint(STORAGE_PREFIX + key, value.strip(), "the storage's access key properties")
        return options


@dataclass(frozen=True, slots=True)
class StorageConfig:
    """Configuration of storage and new tables, common to all metastores."""

    root: str
    """Absolute path or URL below which namespaces and tables without a given location are placed; empty if
    nothing may be."""
    vend_credentials: bool = True
    """Whether responses include `storage_options` if a request doesn't say."""
    managed_by: str = BY_STORAGE
    """Default version authority of new tables: ``storage`` or ``impl``."""
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Lance's storage options; they may contain secrets, so the repr omits them."""
    allowed: AllowedLocations = field(default_factory=AllowedLocations)
    """Where tables may be."""

    @classmethod
    def parse(cls, properties: Properties) -> Self:
        """Read the common properties; a relative root is made absolute here, once."""
        given = properties.text(ROOT)
        is_refused = given is None and properties.flag(REQUIRE_ROOT, default=False)
        root = "" if is_refused else absolute_root(given)
        return cls(
            root=root,
            vend_credentials=properties.flag(VEND_CREDENTIALS, default=True),
            managed_by=properties.choice(MANAGED_BY, (BY_STORAGE, BY_IMPLEMENTATION), BY_STORAGE),
            storage_options=properties.storage_options(),
            allowed=AllowedLocations.parse(properties.text(ALLOWED_LOCATIONS), root),
        )

    def vended(self, requested: bool | None) -> dict[str, str] | None:
        """Return the storage options for a response, given the request's ``vend_credentials``."""
        wanted = self.vend_credentials if requested is None else requested
        return dict(self.storage_options) if wanted and self.storage_options else None


def check_endpoint(key: str, value: str, instead: str) -> str:
    """Return a service's address without trailing slashes.

    Args:
        key: the property.
        value: its value; it may contain a misplaced password, so only a reason is shown.
        instead: where a user and a password belong, for the message.

    Raises:
        InvalidInputError: (13) it doesn't match ``http(s)://host[:port][/path]``.
    """
    try:
        parts = urlsplit(value)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise _bad_endpoint(key, "its port is not a number from 1 to 65535") from None
    if has_credentials(value):
        raise _bad_endpoint(key, f"it contains a user or password; use {instead}")
    if not valid or parts.query or parts.fragment:
        raise _bad_endpoint(key, "scheme or host is missing, or there is a query or a fragment")
    return value.rstrip("/")


def _bad_endpoint(key: str, reason: str) -> spec_errors.InvalidInputError:
    return spec_errors.InvalidInputError(f"property {key!r}: expected http(s)://host[:port], but {reason}")


def _check_key(key: str, known: Collection[str]) -> None:
    if key in known or key.startswith(STORAGE_PREFIX):
        return
    # A whole "key=value" may have been entered as the key: the value may be a secret.
    key = key.partition("=")[0]
    meant = _suggestion(key, known)
    if meant:
        raise spec_errors.InvalidInputError(
            f"property {key!r} is unknown; did you mean {meant!r}? "
            f"Known: {', '.join(sorted(known))}, {STORAGE_PREFIX}*"
        )


def _suggestion(key: str, known: Collection[str]) -> str | None:
    if _closest(re.split(r"[._-]", key)[0], [STORAGE_PREFIX]):
        return STORAGE_PREFIX
    tails = {candidate.rpartition(".")[2]: candidate for candidate in known}
    match = _closest(key, [*known, *tails])
    return tails.get(match, match) if match else None


def _closest(key: str, candidates: Collection[str]) -> str | None:
    plain = {_plain(candidate): candidate for candidate in candidates}
    match = difflib.get_close_matches(_plain(key), plain, n=1, cutoff=0.8)
    return plain[match[0]] if match else None


def _plain(key: str) -> str:
    return key.lower().replace("-", "").replace("_", "").replace(".", "")
