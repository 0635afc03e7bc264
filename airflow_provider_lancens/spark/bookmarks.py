"""Bookmarks: the version up to which a consumer has read a table's changes, kept as a tag with metadata.

A file beside the data repeats when a bookmark expires, since other clients that move a tag drop its metadata.
Another one fixes up to which version the tries of an execution read from it, see `fix_range`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.storage.json_records import UNREADABLE, record_fields, whole_number
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.object_store import RECORDED, is_detached
from airflow_provider_lancens.namespace.storage.table_files import StoredFile, TableFiles
from airflow_provider_lancens.namespace.storage.version_tags import (
    check_tag_name,
    delete_tag,
    is_on_main,
    list_tags,
    replace_metadata,
    set_tag,
)
from airflow_provider_lancens.spark.options import (
    LONGEST_EXPIRY,
    MILLISECOND,
    check_expires_after,
    is_whole_number,
    plain_timedelta,
)
from airflow_provider_lancens.spark.table.opened_version import open_version

if TYPE_CHECKING:
    from lance import LanceDataset

    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

_log = logging.getLogger(__name__)


_KIND, _BOOKMARK = "lancens.kind", "bookmark"
_EXPIRES_AFTER = "lancens.expires_after_millis"
"""Keys of a tag's metadata."""


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Up to which version a consumer has read a table."""

    name: str
    version: int
    """The version that it names and keeps; of an expired one, the version that it had, 0 if that was lost."""
    behind: int
    """How many versions of the table follow this one."""
    moved_at: datetime | None
    """When it was last moved, in UTC, by the clock of who moved it; None if the tag doesn't say."""
    expires_at: datetime | None
    """When it expires unless it is moved, in UTC; None if it never does, or names the newest version."""
    expired_at: datetime | None = None
    """When a clean-up found it expired, in UTC, and ceased to keep its version; None if it is live."""

    @property
    def is_expired(self) -> bool:
        """Whether its version isn't kept any more, so that changes after it may be lost."""
        return self.expired_at is not None

    def is_overdue(self, now: datetime) -> bool:
        """Whether a clean-up at this time finds it expired."""
        return not self.is_expired and self.expires_at is not None and self.expires_at <= now


def is_bookmark(metadata: Mapping[str, str]) -> bool:
    """Return whether a tag with this metadata is a bookmark."""
    return metadata.get(_KIND) == _BOOKMARK


def expires_after(metadata: Mapping[str, str]) -> timedelta | None:
    """Return the time without a move after which the tag expires; None is never."""
    text = metadata.get(_EXPIRES_AFTER, "")
    # What another client wrote there and can't be read keeps the version: that loses nothing.
    return min(int(text) * MILLISECOND, LONGEST_EXPIRY) if text.isdecimal() and len(text) < 16 else None


def as_metadata(metadata: Mapping[str, str], expires_after: timedelta | None) -> dict[str, str]:
    """Return the metadata of a bookmark: a tag's, with what others keep in it."""
    others = {key: value for key, value in metadata.items() if key != _EXPIRES_AFTER}
    if expires_after is None:
        return {**others, _KIND: _BOOKMARK}
    after = str(plain_timedelta(expires_after) // MILLISECOND)
    return {**others, _KIND: _BOOKMARK, _EXPIRES_AFTER: after}


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


@dataclass(frozen=True, slots=True)
class UnreadVersions:
    """The versions of a table that a consumer has not read: after its bookmark, up to the newest version."""

    bookmark: Bookmark | None
    """Up to which version it has read; None if it has no bookmark yet."""
    version: int | None
    """The newest version of the table; None without data."""
    location: str
    """The root of the table's dataset."""

    @property
    def previous_version(self) -> int | None:
        """The version after which rows are changes; None if all are: without a bookmark, or if it expired."""
        return None if self.bookmark is None or self.bookmark.is_expired else self.bookmark.version

    @property
    def is_empty(self) -> bool:
        """Whether nothing was committed since."""
        return (self.version or 0) <= (self.previous_version or 0)


def list_bookmarks(target: ResolvedTable) -> list[Bookmark]:
    """Return the bookmarks of a table's consumers, by name, with the expired ones.

    They are the tags that `LanceTagOperator` or `Table.move_bookmark` set. Tags of other clients, of a
    sensor's `pin`, of release sets and of staged versions aren't among them.
    """
    latest = target.open_latest()
    if latest is None:
        return []
    return bookmarks_of(list_tags(latest), latest.version, target.dataset.manifests)


def find_unread(target: ResolvedTable, name: str) -> UnreadVersions:
    """Return the versions that the consumer of a bookmark has not read.

    Args:
        target: the table.
        name: the bookmark's name; it may be any tag of the table.

    Raises:
        InvalidInputError: (13) no tag may have this name, or it names a version of a branch.
        InvalidTableStateError: (19) the bookmark is at a version that the table doesn't have yet.
    """
    latest, files, location = target.open_latest(), target.dataset.manifests, str(target.dataset.location)
    tag = None if latest is None else list_tags(latest).get(name)
    if tag is None:
        # The name is refused before the consumer does its work, rather than when the bookmark is moved.
        check_tag_name(name, "bookmark")
    if latest is None:
        return UnreadVersions(None, None, location)
    if tag is None:
        return UnreadVersions(find_expiry(files, name, latest.version), latest.version, location)
    if not is_on_main(tag):
        raise spec_errors.InvalidInputError(
            f"table {target.id}: tag {name!r} names a version of branch {tag['branch']!r}, and only the "
            "main line of a table can be read by a bookmark; choose another name"
        )
    newest = latest.version
    if tag["version"] > newest and (again := target.open_latest()) is not None:
        newest = again.version  # the bookmark may have been moved to a version that was just committed
    if tag["version"] > newest:
        raise spec_errors.InvalidTableStateError(
            f"table {target.id}: bookmark {name!r} is at version {tag['version']}, and the newest version is "
            f"{newest}: the table was set back, such as by a copy of files, and the next versions would "
            f"never be read. Move the bookmark to the last version that its consumer has read: "
            f"Table.move_bookmark({name!r}, version, allow_older=True)"
        )
    return UnreadVersions(bookmark_of(name, tag, newest, files), newest, location)


def bookmarks_of(tags: Mapping[str, Any], newest: int, files: Manifests) -> list[Bookmark]:
    """Return the bookmarks of a table by name, with the expired ones.

    Args:
        tags: the table's tags, as Lance lists them.
        newest: its newest version.
        files: the files at its location.
    """
    expired = [bookmark for bookmark in all_expiries(files, newest) if bookmark.name not in tags]
    return sorted([*valid_bookmarks(tags, newest, files), *expired], key=lambda bookmark: bookmark.name)


def valid_bookmarks(tags: Mapping[str, Any], newest: int, files: Manifests) -> list[Bookmark]:
    """Return the bookmarks that are not expired; see `bookmarks_of`."""
    return [bookmark_of(name, tag, newest, files) for name, tag in tags.items() if _is_listed(tag)]


def bookmark_of(name: str, tag: Any, newest: int, files: Manifests) -> Bookmark:
    """Return a tag, as Lance lists it, as a bookmark."""
    version, moved_at, expires_at = int(tag["version"]), tag["updated_at"], None
    behind = max(newest - version, 0)
    if behind and moved_at is not None and (after := expires_after(tag["metadata"])) is not None:
        # A consumer with nothing to read doesn't move its bookmark: it is late only from the next version on.
        expires_at = max(moved_at, _committed_at(files, version + 1) or moved_at) + after
    return Bookmark(name, version, behind, moved_at, expires_at)


def _is_listed(tag: Any) -> bool:
    return is_on_main(tag) and is_bookmark(tag["metadata"])


def _committed_at(files: Manifests, version: int) -> datetime | None:
    """Return when a version was committed, by the storage's clock; None if it was cleaned up."""
    manifest = files.find(version)
    return None if manifest is None else manifest.modified


_TRIES = 10


def move_bookmark(
    target: ResolvedTable,
    name: str,
    version: int,
    *,
    expires_after: timedelta | None = None,
    allow_older: bool = True,
) -> Bookmark:
    """Move the bookmark of a consumer to a version, which it keeps from clean-ups; create it if it is new.

    An expired bookmark becomes valid again.

    See `Table.move_bookmark` for its arguments and errors.
    """
    try:
        check_expires_after(expires_after)
    except ValueError as error:
        raise spec_errors.InvalidInputError(str(error)) from error
    if is_whole_number(version, at_least=0) and is_detached(version):
        raise spec_errors.InvalidInputError(
            f"version={version}: is staged, so that no other version follows it; publish it first, and pass "
            "the version that it was published as"
        )
    opened = open_version(target, version)
    if not allow_older and (present := list_tags(opened).get(name)) and present["version"] > version:
        raise spec_errors.InvalidInputError(
            f"table {target.id}: bookmark {name!r} is at version {present['version']}, and "
            f"version={version} "
            "is older; its consumer would read the versions in between again. Pass allow_older=True "
            "for that"
        )
    _move(opened, target.dataset.manifests, name, version, expires_after)
    moved = find_unread(target, name).bookmark
    if moved is None:
        raise spec_errors.ConcurrentModificationError(
            f"table {target.id}: bookmark {name!r} was deleted right after it was moved"
        )
    return moved


def advance_bookmark(target: ResolvedTable, name: str, *, expected: int | None, version: int) -> None:
    """Move a bookmark after its consumer has read, unless others moved it meanwhile; it keeps its expiry.

    Args:
        target: the table.
        name: the bookmark's name; it is created if it is new.
        expected: the version that it had when the consumer began; None if it was new or expired.
        version: the version up to which the consumer has read.

    Raises:
        TableVersionNotFoundError: (11) there is no such version.
        ConcurrentModificationError: (14) it isn't at the expected version; it wasn't moved.
    """
    opened = open_version(target, version)
    tag = list_tags(opened).get(name)
    found = None if tag is None else int(tag["version"])
    if found != expected:
        raise spec_errors.ConcurrentModificationError(
            f"table {target.id}: bookmark {name!r} was moved from version {expected} to {found} while its "
            f"consumer read up to version {version}; it was not moved. Run one consumer of a bookmark at a "
            "time"
        )
    expiry = None if tag is None else expires_after(tag["metadata"])
    _move(opened, target.dataset.manifests, name, version, expiry)


def delete_bookmark(target: ResolvedTable, name: str) -> bool:
    """Delete a bookmark, or any other tag, and the record of its expiry.

    Args:
        target: the table.
        name: the bookmark's name.

    Returns:
        False if there was none.
    """
    latest = target.open_latest()
    if latest is None:
        return False
    # First the tag: a clean-up that still finds it may record that it expired.
    deleted = delete_tag(latest, name)
    return remove_expiry(target.dataset.manifests, name) or deleted


def _move(
    dataset: LanceDataset, files: Manifests, name: str, version: int, expires_after: timedelta | None
) -> None:
    # First the version: with its new time, the bookmark isn't expired by any expiry that it has.
    set_tag(dataset, files, name, version)
    for _ in range(_TRIES):
        tag = list_tags(dataset).get(name)
        if tag is None:  # a clean-up found it expired, and looked at it right before it was moved
            set_tag(dataset, files, name, version)
        elif (metadata := as_metadata(tag["metadata"], expires_after)) != tag["metadata"]:
            replace_metadata(dataset, name, metadata)
        elif not _update_expiry(files, name, version):
            return
    raise spec_errors.ConcurrentModificationError(
        f"bookmark {name!r}: other clients set or delete this tag at the same time; use a name of its own "
        "for each consumer, and run it again"
    )


def _update_expiry(files: Manifests, name: str, version: int) -> bool:
    """Write the version to which a bookmark was moved in the record of its expiry, if another one is there.

    A clean-up that found it expired writes the record first, and may delete the tag after the move: what
    expires then is the bookmark at its new version.
    """
    record = find_expiry(files, name, version)
    if record is None or record.expired_at is None or record.version == version:
        return False
    write_expiry(files, replace(record, version=version), record.expired_at)
    return True


def overdue_bookmarks(latest: LanceDataset, files: Manifests, now: datetime) -> list[Bookmark]:
    """Return the bookmarks that a clean-up at this time finds expired."""
    live = valid_bookmarks(list_tags(latest), latest.version, files)
    return [bookmark for bookmark in live if bookmark.is_overdue(now)]


def expire_bookmarks(
    latest: LanceDataset, files: Manifests, table: str, now: datetime, *, dry_run: bool = False
) -> list[Bookmark]:
    """Stop keeping the versions of bookmarks that weren't moved in time, and log a warning for each.

    Args:
        latest: the dataset, opened at its newest version.
        files: the files at its location.
        table: the table's identifier, for messages.
        now: the time of the clean-up.
        dry_run: only return them.

    Returns:
        The expired bookmarks.
    """
    overdue = overdue_bookmarks(latest, files, now)
    expired = (
        overdue if dry_run else [bookmark for bookmark in overdue if _expire(latest, files, bookmark, now)]
    )
    for bookmark in expired:
        _log.warning(
            "table %s: bookmark %r %s: it was last moved at %s, to version %d, which is %d behind, and its "
            "expires_after ended at %s; its consumer must read the whole table",
            table,
            bookmark.name,
            "would expire" if dry_run else "expired",
            bookmark.moved_at,
            bookmark.version,
            bookmark.behind,
            bookmark.expires_at,
        )
    return expired


def _expire(latest: LanceDataset, files: Manifests, bookmark: Bookmark, now: datetime) -> bool:
    write_expiry(files, bookmark, now)
    tag = list_tags(latest).get(bookmark.name)
    if tag is None or (tag["version"], tag["updated_at"]) != (bookmark.version, bookmark.moved_at):
        return False  # moved or deleted meanwhile
    return delete_tag(latest, bookmark.name)


_RANGES = f"{RECORDED}/bookmark-ranges"
_RANGE_SUFFIX = ".json"
_RANGE_DIGITS = 32


def fix_range(files: TableFiles, bookmark: str, execution_id: str, after: int, version: int) -> int:
    """Return up to which version an execution reads from a bookmark; its first try decides for later ones.

    A later try finds the commit of an earlier try, which had the rows of its range. With a range of its
    own, it would move the bookmark past versions whose rows nobody has written. So the range is recorded
    beside the data before anything is read, and the record is removed once the bookmark has moved. Of an
    execution that fails for good, it stays until a clean-up of orphans. An empty range needs no record: what
    is written for it has another key than what is written for any other range.

    What decides is in the record's name, so that it isn't lost with its content in a power failure.

    Args:
        files: the files at the table's location.
        bookmark: its name.
        execution_id: what the tries of the execution share.
        after: the version that the bookmark has; 0 if it is new.
        version: the newest version, up to which a first try reads.
    """
    # After an earlier try moved the bookmark, a later try begins where the earlier one ended.
    fixed = [end for _, start, end in _range_records(files, bookmark, execution_id) if start == after]
    if fixed:
        return min(fixed)
    content = {"bookmark": bookmark, "execution_id": execution_id, "after": after, "version": version}
    path = f"{_RANGES}/{_range_digest(bookmark, execution_id)}.{after}.{version}{_RANGE_SUFFIX}"
    files.put(path, json.dumps(content).encode())
    return version


def common_end(files: TableFiles, bookmark: str, execution_id: str, after: int, version: int) -> int:
    """Return the version up to which every try of an execution has read that may have written.

    Of two tries that run at once, each may look for a range before the other has recorded its own. Then one
    try finds the commit of the other, perhaps without the rows of its own last versions. A try records its
    range before it writes, so that a try that finds its commit also finds the record.

    Args:
        files: the files at the table's location.
        bookmark: its name.
        execution_id: what the tries of the execution share.
        after: the version that the bookmark has; 0 if it is new.
        version: up to which version this try has read.
    """
    ends = [end for _, start, end in _range_records(files, bookmark, execution_id) if start == after]
    return min([version, *ends])


def forget_range(files: TableFiles, bookmark: str, execution_id: str) -> None:
    """Remove the records of an execution's ranges, after its bookmark has moved."""
    for path, *_ in list(_range_records(files, bookmark, execution_id)):
        files.remove(path)


def _range_records(files: TableFiles, bookmark: str, execution_id: str) -> Iterator[tuple[str, int, int]]:
    """Yield the path of each record of an execution, with the two versions of its range."""
    digest = _range_digest(bookmark, execution_id)
    for file in files.below(_RANGES):
        name, *numbers = file.path.rpartition("/")[2].removesuffix(_RANGE_SUFFIX).split(".")
        versions = [number for digits in numbers if (number := whole_number(digits)) is not None]
        if name == digest and len(versions) == len(numbers) == 2:
            yield file.path, versions[0], versions[1]


def _range_digest(bookmark: str, execution_id: str) -> str:
    return sha256(json.dumps([bookmark, execution_id]).encode()).hexdigest()[:_RANGE_DIGITS]
