"""Overlap of two locations, however they are spelled.

A location is compared in every form in which a server or a file system may interpret it, so that in doubt
two locations count as one: ``file:/x``, ``file:///x`` and ``/x``; ``s3a://`` and ``s3://``; percent-encoded
or not; with ``//``, ``.`` and ``..``; and local paths through symbolic links, other mounts, and names in
another case.
"""

from __future__ import annotations

import posixpath
from pathlib import Path
from urllib.parse import unquote

from airflow_provider_lancens.redaction import without_user

_ALIASES = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "wasb", "gcs": "gs"}
_FILE = "file"
_HDFS_PORT = ":8020"
_Identity = tuple[int, int]
"""Device and inode number of a folder."""


class ResolvedLocation:
    """Place that a location refers to, in all its interpretations."""

    def __init__(self, location: str) -> None:
        """Parse a location; links in a local one are resolved.

        Args:
            location: as stored in the catalog; a relative one refers to no place.
        """
        self._store, path = _split_location(location)
        spellings = {text for text in (path, unquote(path)) if text.startswith("/")}
        readings = {posixpath.normpath("/" + text.lstrip("/")) for text in spellings}
        if self._store == _FILE:
            readings |= {_without_links("/" + text.lstrip("/")) for text in spellings}
        self._paths = [tuple(part for part in reading.split("/") if part) for reading in readings]
        self._chains = [_chain(reading) for reading in readings] if self._store == _FILE else []
        self._own = {chain[0] for chain in self._chains} - {None}
        self._chain = {identity for chain in self._chains for identity in chain} - {None}

    def lies_in(self, other: ResolvedLocation) -> bool:
        """Whether this is the other place or below it, in any interpretation of the two."""
        if self._store != other._store:
            return False
        by_name = any(mine[: len(its)] == its for mine in self._paths for its in other._paths)
        return by_name or not other._own.isdisjoint(self._chain)

    def path_below(self, other: ResolvedLocation) -> str | None:
        """Return the path by which this place is reached from the other one.

        Returns:
            The path, empty if the two are one place; None if this one isn't there in any interpretation.
        """
        if self._store != other._store:
            return None
        below = [mine[len(its) :] for mine in self._paths for its in other._paths if mine[: len(its)] == its]
        for path, chain in zip(self._paths, self._chains, strict=False):
            below += [
                path[len(path) - up :]
                for up, identity in enumerate(chain)
                if identity in other._own and up <= len(path)
            ]
        return "/".join(below[0]) if below else None

    def lies_only_in(self, other: ResolvedLocation) -> bool:
        """Whether this is the other place or below it, in each interpretation of this one."""
        return (
            self._store == other._store
            and bool(self._paths)
            and all(any(mine[: len(its)] == its for its in other._paths) for mine in self._paths)
        )

    def overlaps(self, other: ResolvedLocation) -> bool:
        """Whether the two are equal, or one contains the other."""
        return self.lies_in(other) or other.lies_in(self)


def is_same_place(location: str, other: str) -> bool:
    """Return whether two locations are the same place, such as through a symbolic link."""
    if location == other:
        return True
    place, other_place = ResolvedLocation(location), ResolvedLocation(other)
    return place.lies_in(other_place) and other_place.lies_in(place)


def store_of(location: str) -> str:
    """Return what holds a location: a scheme with a bucket, or ``file`` for a local path."""
    return _split_location(location)[0]


def is_remote(store: str) -> bool:
    """Return whether a store is not the file system of this machine."""
    return store != _FILE


def _split_location(location: str) -> tuple[str, str]:
    """Split into the store, such as a scheme with a bucket, and the path in it."""
    location = without_user(location)  # locations are compared regardless of the user in them
    scheme, separator, rest = location.strip().partition(":")
    scheme = scheme.lower()
    if not separator or "/" in scheme:
        return _FILE, location.strip()
    if scheme == _FILE:
        return _FILE, rest.removeprefix("//localhost")
    host, _, path = rest.removeprefix("//").partition("/")
    scheme = _ALIASES.get(scheme, scheme)
    return f"{scheme}://{host.lower().removesuffix(_HDFS_PORT)}", f"/{path}"


def _without_links(path: str) -> str:
    try:
        return str(Path(path).resolve())
    except (OSError, ValueError, RuntimeError):  # too long, contains NUL, or a loop of links
        return path


def _chain(path: str) -> list[_Identity | None]:
    """Return the identities of the folders from a path upwards; None for a folder that doesn't exist."""
    return [_identity(folder) for folder in (Path(path), *Path(path).parents)]


def _identity(path: Path) -> _Identity | None:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino
