"""Locations: the single check of each location that others may have written (clarifications: Layout).

A location comes from a caller, a catalog table, a database, or a property. `location_fault` is the only rule
for what is accepted; a `Location` has passed it, in Lance's notation. Below it, `storage.file_paths` does the
same for the names of files.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.redaction import has_credentials

TABLE_SUFFIX = ".lance"
DATABASE_SUFFIX = ".db"
SCHEMES = ("s3", "gs", "az", "abfss")
"""Schemes of URLs that both Lance and the library of object stores know."""
_S3_ALIASES = ("s3a", "s3n")
_FILE = "file"
_FILE_URI = "file://"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_LONGEST = 2000
_SHOWN = 200
"""Characters of a location in a message."""


class Location(str):
    """A location that was checked, in Lance's notation: a plain path, or a URL of a supported scheme."""

    __slots__ = ()

    @classmethod
    def of(cls, text: str) -> Self:
        """Check a location, unless it was checked before.

        Raises:
            InvalidInputError: (13) see `location_fault`.
        """
        return text if isinstance(text, cls) else cls(normalize(check_location(text)))


def normalize(location: str) -> str:
    """Return a location as Lance expects it: local ones as plain paths, ``s3a``/``s3n`` as ``s3``.

    HMS returns ``file:/x/y`` where ``/x/y`` was given; Lance doesn't support Hadoop's S3 schemes.
    """
    scheme, rest = _split(location)
    if scheme in _S3_ALIASES:
        return f"s3:{rest}"
    if scheme == _FILE:
        return "/" + rest.removeprefix("//localhost/").lstrip("/")
    return f"{scheme}:{rest}" if scheme else rest


def described_location(location: str) -> str:
    """Return a location that an implementation of Lance Namespace returned as Lance expects it.

    pylance's own implementations return a local one as a URI, in which they quote what no URI may contain.
    """
    is_uri = location[: len(_FILE_URI)].lower() == _FILE_URI
    return normalize(unquote(location) if is_uri else location)


def is_local(location: str) -> bool:
    """Whether a location is a path of the local file system."""
    return _split(location)[0] in ("", _FILE)


def as_uri(location: str) -> str:
    """Return a location as a complete URI, so that no server resolves a path against its default store."""
    return f"file://{normalize(location)}" if is_local(location) else location


def join(base: str, *parts: str) -> str:
    """Join parts to a base location."""
    return "/".join((base.rstrip("/"), *parts))


def absolute_root(root: str | None) -> str:
    """Return the absolute storage root; the current directory if none is given.

    Raises:
        InvalidInputError: (13) see `location_fault`; only a relative one is accepted.
    """
    local = root is None or is_local(root)
    path = Path(normalize(root or ".")).expanduser()
    text = os.path.abspath(path) if local else str(root)  # noqa: PTH100 - links are not followed
    if root and has_credentials(root):
        raise spec_errors.InvalidInputError(
            "property 'root': it contains credentials; set them as storage.* properties"
        )
    if fault := location_fault(text):
        raise spec_errors.InvalidInputError(f"property 'root': {fault}")
    return text if local else f"{_split(text)[0]}:{_split(text)[1].rstrip('/')}"


def required_root(root: str, what: str) -> str:
    """Return the root, below which a location is to be created.

    Args:
        root: the root; empty if there is none.
        what: what has no location, for the message.

    Raises:
        InvalidInputError: (13) there is none.
    """
    if not root:
        raise spec_errors.InvalidInputError(
            f"{what} has no location, and there is no root below which it would be created: set 'root' (in "
            "an Airflow connection, field Root), such as s3://bucket/lake, or give a location"
        )
    return root


def check_location(location: str, argument: str = "location", *, of_table: bool = True) -> str:
    """Validate a caller's location, and return it without the slashes that servers drop.

    Raises:
        InvalidInputError: (13) see `location_fault`.
    """
    if fault := location_fault(location, of_table=of_table):
        raise spec_errors.InvalidInputError(f"{argument}: expected an absolute path or URL, but {fault}")
    if is_local(location):
        return posixpath.normpath("/" + normalize(location).lstrip("/"))
    scheme, rest = _split(location)
    return f"{scheme}:{rest.rstrip('/')}"


@lru_cache(maxsize=4096)  # polls check the same locations again and again
def location_fault(location: str, *, of_table: bool = True) -> str | None:
    """Return why a location is invalid, without any secret or unprintable character; None if it is valid.

    It must be an absolute path or a URL that Lance reads as it is written. It can't climb, even once decoded.

    Args:
        location: a path or a URL.
        of_table: whether it is the root of tables; else of files that are only read, perhaps a pattern.
    """
    if not location.strip():
        return "it is empty"
    if has_credentials(location):
        return (
            "it contains credentials, which every reader of the catalog would see; set them as "
            "storage.* properties"
        )
    if len(location) > _LONGEST:
        return f"it has {len(location)} characters; expected {_LONGEST}"
    shown = shown_location(location)
    if any(not text.isprintable() or ".." in text.split("/") for text in readings(location)):
        return f"{shown} contains '..' or unprintable characters"
    if is_local(location):
        return _path_fault(location, shown)
    return _url_fault(location, shown) if of_table else None


def readings(text: str) -> Iterator[str]:
    """Yield a text, and what percent-decoding makes of it, once and again."""
    yield text
    while (decoded := unquote(text)) != text:
        yield decoded
        text = decoded


def shown_location(location: str) -> str:
    """Return a location for a message: quoted, on one line, and cut."""
    return repr(location) if len(location) <= _SHOWN else f"{location[:_SHOWN]!r}…"


def _path_fault(location: str, shown: str) -> str | None:
    scheme, rest = _split(location)
    if not rest.startswith("/"):
        return f"{shown} is relative, which each machine would resolve differently"
    host = rest.removeprefix("//").partition("/")[0] if scheme and rest.startswith("//") else ""
    if host not in ("", "localhost"):
        return f"{shown} names the host {host!r}; a local path begins with file:///"
    return None


def _url_fault(location: str, shown: str) -> str | None:
    scheme, rest = _split(location)
    if scheme not in (*SCHEMES, *_S3_ALIASES):
        return (
            f"the scheme of {shown} can't be used; supported: {', '.join(SCHEMES)} and local paths; "
            "set property 'root', or give a location, with one of them"
        )
    bucket, _, path = rest.removeprefix("//").partition("/")
    if not bucket:
        return f"{shown} has no bucket"
    try:
        urlsplit(location)
    except ValueError:  # invalid brackets, or a character that Unicode normalizes to a slash
        return f"{shown} has a bucket whose name isn't valid in a URL"
    if "#" in location or "?" in location:
        return f"{shown} contains '#' or '?': Lance would drop it with what follows"
    segments = path.rstrip("/").split("/") if path.rstrip("/") else []
    if not {"", "."}.isdisjoint(segments) or location != location.strip():
        return f"{shown} contains '//', '/./' or spaces at its end, which Lance reads as another location"
    return None


def _split(location: str) -> tuple[str, str]:
    """Split into the scheme in lower case, and what follows its colon; a path has the scheme ''."""
    found = _SCHEME.match(location)
    if found is None:
        return "", location
    scheme, rest = found[1].lower(), location[found.end() :]
    return (scheme, rest) if scheme == _FILE or rest.startswith("//") else ("", location)
