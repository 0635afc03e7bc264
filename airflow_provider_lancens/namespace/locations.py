"""Locations: how they are written, and where things lie under ``root`` (clarifications: Layout)."""

from __future__ import annotations

import posixpath
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from lance_namespace.errors import InvalidInputError

TABLE_SUFFIX = ".lance"
DATABASE_SUFFIX = ".db"
_S3_ALIASES = ("s3a://", "s3n://")
_FILE_SCHEME = "file:"


def normalize(location: str) -> str:
    """A location as Lance takes it: local ones as plain paths, ``s3a``/``s3n`` as ``s3``.

    HMS answers ``file:/x/y`` where ``/x/y`` was given; Hadoop's S3 schemes mean nothing to Lance.
    """
    for alias in _S3_ALIASES:
        if location.startswith(alias):
            return "s3://" + location.removeprefix(alias)
    if location.startswith(_FILE_SCHEME):
        return "/" + location.removeprefix(_FILE_SCHEME).lstrip("/")
    return location


def is_local(location: str) -> bool:
    """Whether a location is a path of the local file system."""
    return location.startswith(_FILE_SCHEME) or "://" not in location


def as_uri(location: str) -> str:
    """A location as a complete URI, so that no server reads a path against its own default store."""
    return f"file://{normalize(location)}" if is_local(location) else location


def join(base: str, *parts: str) -> str:
    """A location below another one."""
    return "/".join((base.rstrip("/"), *parts))


def absolute_root(root: str | None) -> str:
    """The storage root, made absolute once; the current directory where none is given.

    Raises:
        InvalidInputError: (13) it carries credentials, which every message about a table would show.
    """
    if root and "@" in urlsplit(root).netloc:
        raise InvalidInputError("property 'root': it carries credentials; name them by storage.* properties")
    if root is None or is_local(root):
        return str(Path(normalize(root or ".")).expanduser().absolute())
    return root.rstrip("/")


def check_location(location: str, argument: str = "location") -> str:
    """Return a caller's location if it can be one, without the slashes that servers drop.

    Raises:
        InvalidInputError: (13) it is empty, relative, not printable, or climbs out by ``..``.
    """
    if not location.strip() or not location.isprintable():
        raise InvalidInputError(f"{argument}: expected an absolute path or URL, got {location!r}")
    if is_local(location) and not normalize(location).startswith("/"):
        raise InvalidInputError(f"{argument}: expected an absolute path or URL, got {location!r}")
    if ".." in PurePosixPath(location).parts:
        raise InvalidInputError(f"{argument}: '..' is not allowed, got {location!r}")
    if is_local(location):
        return posixpath.normpath("/" + normalize(location).lstrip("/"))
    return location.rstrip("/")
