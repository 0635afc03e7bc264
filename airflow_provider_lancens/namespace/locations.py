"""Locations: normalization, validation, and layout under ``root`` (clarifications: Layout)."""

from __future__ import annotations

import posixpath
from pathlib import Path, PurePosixPath

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.redaction import has_credentials

TABLE_SUFFIX = ".lance"
DATABASE_SUFFIX = ".db"
_S3_ALIASES = ("s3a://", "s3n://")
_FILE_SCHEME = "file:"


def normalize(location: str) -> str:
    """Return a location as Lance expects it: local ones as plain paths, ``s3a``/``s3n`` as ``s3``.

    HMS returns ``file:/x/y`` where ``/x/y`` was given; Lance doesn't support Hadoop's S3 schemes.
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
    """Return a location as a complete URI, so that no server resolves a path against its default store."""
    return f"file://{normalize(location)}" if is_local(location) else location


def join(base: str, *parts: str) -> str:
    """Join parts to a base location."""
    return "/".join((base.rstrip("/"), *parts))


def absolute_root(root: str | None) -> str:
    """Return the absolute storage root; the current directory if none is given.

    Raises:
        InvalidInputError: (13) it contains credentials, which every message about a table would show.
    """
    if root and has_credentials(root):
        raise spec_errors.InvalidInputError(
            "property 'root': it contains credentials; set them as storage.* properties"
        )
    if root is None or is_local(root):
        return str(Path(normalize(root or ".")).expanduser().absolute())
    return root.rstrip("/")


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


def check_location(location: str, argument: str = "location") -> str:
    """Validate a caller's location, and return it without the slashes that servers drop.

    Raises:
        InvalidInputError: (13) it is empty, relative, not printable, or contains ``..`` or credentials.
    """
    fault = location_fault(location)
    if not fault and (not location.isprintable() or ".." in PurePosixPath(location).parts):
        fault = f"{location!r} contains '..' or unprintable characters"
    if fault:
        raise spec_errors.InvalidInputError(f"{argument}: expected an absolute path or URL, but {fault}")
    if is_local(location):
        return posixpath.normpath("/" + normalize(location).lstrip("/"))
    return location.rstrip("/")


def location_fault(location: str) -> str | None:
    """Return why a location is invalid, without any secret; None if it is valid."""
    if not location.strip():
        return "it is empty"
    if has_credentials(location):
        return (
            "it contains credentials, which every reader of the catalog would see; set them as "
            "storage.* properties"
        )
    path = location.removeprefix(_FILE_SCHEME)
    if is_local(location) and not path.startswith("/"):
        return f"{location!r} is relative, which each machine would resolve differently"
    return None
