"""Expiry of bookmarks, by a clean-up before it removes versions.

A consumer must learn that changes may be lost, deletions among them. So its tag isn't moved, which would pass
them over, nor only deleted, which would look as if it had never read anything: a record of the expiry is
written, and then the tag is deleted.

Tags have no compare-and-set. The move of a consumer at the same time wins if it is seen right before the
deletion, and also if the consumer, which looks at its tag after each move, finds it deleted. Only if this
clean-up looks before the move, and deletes the tag after the consumer has looked, the move is lost: at its
next run the consumer finds its bookmark expired, and passes over no change.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import TYPE_CHECKING

from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.version_tags import delete_tag, list_tags
from airflow_provider_lancens.spark.bookmarks.bookmark import Bookmark
from airflow_provider_lancens.spark.bookmarks.expiry_records import write_expiry
from airflow_provider_lancens.spark.bookmarks.find_bookmarks import valid_bookmarks

if TYPE_CHECKING:
    from lance import LanceDataset

_log = logging.getLogger(__name__)


def overdue_bookmarks(latest: LanceDataset, files: Manifests, now: datetime) -> list[Bookmark]:
    """Return the bookmarks that a clean-up at this time finds expired."""
    live = valid_bookmarks(list_tags(latest), latest.version, files)
    return [one for one in live if one.is_overdue(now)]


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
        Those that expired.
    """
    overdue = overdue_bookmarks(latest, files, now)
    expired = overdue if dry_run else [one for one in overdue if _expire(latest, files, one, now)]
    for one in expired:
        _log.warning(
            "table %s: bookmark %r %s: it was last moved at %s, to version %d, which is %d behind, and its "
            "expires_after ended at %s; its consumer must read the whole table",
            table,
            one.name,
            "would expire" if dry_run else "expired",
            one.moved_at,
            one.version,
            one.behind,
            one.expires_at,
        )
    return expired


def _expire(latest: LanceDataset, files: Manifests, bookmark: Bookmark, now: datetime) -> bool:
    write_expiry(files, bookmark, now)
    tag = list_tags(latest).get(bookmark.name)
    if tag is None or (tag["version"], tag["updated_at"]) != (bookmark.version, bookmark.moved_at):
        return False  # moved or deleted meanwhile
    return delete_tag(latest, bookmark.name)
