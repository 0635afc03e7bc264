"""Property keys, defaults and parsing. Properties are strings, as `lance_namespace.connect` gives them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Self

from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.namespace.locations import absolute_root

ROOT = "root"
VEND_CREDENTIALS = "vend_credentials"
STORAGE_PREFIX = "storage."
COMMON_KEYS = frozenset({ROOT, VEND_CREDENTIALS})

_FLAGS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


class Properties:
    """Typed reads of string properties; each failure is code 13 and names the property."""

    def __init__(self, values: Mapping[str, str], known: Collection[str]) -> None:
        """Take the properties of a namespace.

        Args:
            values: property by key.
            known: the keys that this kind of namespace understands, without ``storage.*``.

        Raises:
            InvalidInputError: (13) a value isn't a string, or a key looks like a misspelled known one.
        """
        self._values = values
        for key, value in values.items():
            _check_key(key, known)
            if not isinstance(value, str):
                raise InvalidInputError(
                    f"property {key!r}: expected a string, got {type(value).__name__}; properties are strings"
                )

    def text(self, key: str, default: str | None = None) -> str | None:
        """The value with surrounding blanks removed; an empty one counts as absent."""
        return self._values.get(key, "").strip() or default

    def integer(self, key: str, default: int, minimum: int = 1) -> int:
        """A whole number of at least `minimum`."""
        text = self.text(key)
        if text is None:
            return default
        if not text.isdecimal() or int(text) < minimum:
            raise InvalidInputError(
                f"property {key!r}: expected a whole number of at least {minimum}, got {text!r}"
            )
        return int(text)

    def seconds(self, key: str, default: float) -> float:
        """A positive number of seconds."""
        text = self.text(key)
        if text is None:
            return default
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 < value < float("inf"):
            raise InvalidInputError(f"property {key!r}: expected a positive number of seconds, got {text!r}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """A truth value: true, false, yes, no, 1 or 0, in any case."""
        text = self.text(key)
        if text is None:
            return default
        if text.lower() not in _FLAGS:
            raise InvalidInputError(f"property {key!r}: expected true or false, got {text!r}")
        return _FLAGS[text.lower()]

    def choice(self, key: str, allowed: Collection[str], default: str) -> str:
        """One of a few words, in any case."""
        text = (self.text(key) or default).lower()
        if text not in allowed:
            raise InvalidInputError(f"property {key!r}: expected one of {sorted(allowed)}, got {text!r}")
        return text

    def refuse(self, keys: Collection[str], reason: str) -> None:
        """Refuse properties that mean nothing beside the others, rather than ignore them."""
        for key in sorted(keys):
            if self.text(key) is not None:
                raise InvalidInputError(f"property {key!r} {reason}")

    def storage_options(self) -> dict[str, str]:
        """What stands under ``storage.``, without the prefix, as Lance takes it."""
        return {
            key.removeprefix(STORAGE_PREFIX): value
            for key, value in self._values.items()
            if key.startswith(STORAGE_PREFIX)
        }


@dataclass(frozen=True, slots=True)
class StorageConfig:
    """What every namespace knows about storage, whichever the metastore."""

    root: str
    """Absolute path or URL below which entries without a location lie."""
    vend_credentials: bool = True
    """Whether `storage_options` are handed out where a request leaves it open."""
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Lance's storage options; they may hold secrets, so no repr shows them."""

    @classmethod
    def parse(cls, properties: Properties) -> Self:
        """Read the common properties; a relative root is made absolute here, once."""
        return cls(
            root=absolute_root(properties.text(ROOT)),
            vend_credentials=properties.flag(VEND_CREDENTIALS, default=True),
            storage_options=properties.storage_options(),
        )

    def vended(self, asked: bool | None) -> dict[str, str] | None:
        """The storage options that a response carries, by the request's ``vend_credentials``."""
        wanted = self.vend_credentials if asked is None else asked
        return dict(self.storage_options) if wanted and self.storage_options else None


def _check_key(key: str, known: Collection[str]) -> None:
    if key in known or key.startswith(STORAGE_PREFIX):
        return
    # A whole "key=value" may have slipped into the key: the value may be a secret.
    key = key.partition("=")[0]
    meant = _meant(key, known)
    if meant:
        raise InvalidInputError(
            f"property {key!r} is unknown; did you mean {meant!r}? "
            f"Known: {', '.join(sorted(known))}, {STORAGE_PREFIX}*"
        )


def _meant(key: str, known: Collection[str]) -> str | None:
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
