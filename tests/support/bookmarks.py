"""Bookmarks of a table that is given by its namespace and its identifier."""

from datetime import timedelta
from typing import Any

from airflow_provider_lancens.spark import Bookmark, bookmarks
from airflow_provider_lancens.spark.table.resolved_table import resolved_table


def find_bookmark(namespace: Any, table: Any, name: str) -> Bookmark | None:
    """Return a bookmark by its name; None if there is none."""
    with resolved_table(namespace, table) as target:
        return bookmarks.find_unread(target, name).bookmark


def list_bookmarks(namespace: Any, table: Any) -> list[Bookmark]:
    """Return the bookmarks of a table."""
    with resolved_table(namespace, table) as target:
        return bookmarks.list_bookmarks(target)


def move_bookmark(
    namespace: Any, table: Any, name: str, version: int, *, expires_after: timedelta | None = None
) -> None:
    """Move a bookmark to any version."""
    with resolved_table(namespace, table) as target:
        bookmarks.move_bookmark(target, name, version, expires_after=expires_after)


def delete_bookmark(namespace: Any, table: Any, name: str) -> bool:
    """Delete a bookmark; return whether there was one."""
    with resolved_table(namespace, table) as target:
        return bookmarks.delete_bookmark(target, name)
