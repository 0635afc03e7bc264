"""Records of expired bookmarks, each a small file beside the data.

A record is written before the tag of its bookmark is deleted, and says which version the bookmark had. Where
there is a tag, it decides, and the record means nothing: so a bookmark that is moved again is live. A record
is removed only when its bookmark is deleted. Otherwise a clean-up that was suspended right before it deletes
the tag could leave neither of them, and a consumer without both reads as one that never read anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from airflow_provider_lancens.namespace.storage.json_records import UNREADABLE, record_fields, whole_number
from airflow_provider_lancens.namespace.storage.object_store import RECORDED
from airflow_provider_lancens.namespace.storage.table_files import StoredFile, TableFiles
from airflow_provider_lancens.spark.bookmarks.bookmark import Bookmark

EXPIRED_BOOKMARKS = f"{RECORDED}/expired-bookmarks"
_SUFFIX = ".json"


def write_expiry(files: TableFiles, bookmark: Bookmark, expired_at: datetime) -> None:
    """Record that a bookmark expired."""
    times = {
        "moved_at": bookmark.moved_at,
        "expires_at": bookmark.expires_at,
        "expired_at": expired_at,
    }
    given = {name: time.isoformat() for name, time in times.items() if time is not None}
    content = {"bookmark": bookmark.name, "version": bookmark.version, **given}
    files.put(_path(bookmark.name), json.dumps(content).encode())


def find_expiry(files: TableFiles, name: str, newest: int) -> Bookmark | None:
    """Return a bookmark as it expired; None if it has no record.

    Args:
        files: the files at the table's location.
        name: the bookmark's name.
        newest: the table's newest version.
    """
    file = files.stat(_path(name))
    return None if file is None else _parse(files, file, newest)


def all_expiries(files: TableFiles, newest: int) -> list[Bookmark]:
    """Return all bookmarks with a record, as they expired; see `find_expiry`."""
    found = [file for file in files.below(EXPIRED_BOOKMARKS) if file.path.endswith(_SUFFIX)]
    return [_parse(files, file, newest) for file in found]


def remove_expiry(files: TableFiles, name: str) -> bool:
    """Remove the record of a bookmark; return whether there was one."""
    if files.stat(_path(name)) is None:
        return False
    files.remove(_path(name))
    return True


def _path(name: str) -> str:
    return f"{EXPIRED_BOOKMARKS}/{name}{_SUFFIX}"


def _parse(files: TableFiles, file: StoredFile, newest: int) -> Bookmark:
    # The file's name is what is decisive: the content may be lost.
    fields = record_fields(files.read(file.path))
    version = whole_number(fields.get("version")) or 0
    return Bookmark(
        name=file.path.rpartition("/")[2].removesuffix(_SUFFIX),
        version=version,
        behind=max(newest - version, 0),
        moved_at=_time(fields, "moved_at"),
        expires_at=_time(fields, "expires_at"),
        expired_at=_time(fields, "expired_at") or file.modified,
    )


def _time(fields: Mapping[str, Any], name: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(fields[name])
    except UNREADABLE:
        return None
    return time if time.tzinfo is not None else None
