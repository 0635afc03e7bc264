"""Find the bookmarks of a table: one by its name, or all of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.version_tags import list_tags
from airflow_provider_lancens.spark.bookmarks.bookmark import Bookmark, expires_after, is_bookmark
from airflow_provider_lancens.spark.bookmarks.expiry_records import all_expiries, find_expiry
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, resolved_table

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace


def list_bookmarks(namespace: NamespaceSpec | LanceNamespace, table: TableId | str) -> list[Bookmark]:
    """Return the bookmarks of a table's consumers, by name, with the expired ones.

    They are the tags that `LanceTagVersionOperator` or `move_bookmark` set. Other tags aren't among them:
    those of other clients, of a sensor's `pin`, of release sets and of staged versions.

    Args:
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        InvalidInputError: (13) `table` isn't a valid identifier.
        ServiceUnavailableError: (17) the storage or the metastore failed.
    """
    with resolved_table(namespace, table) as target:
        latest = target.open_latest()
        if latest is None:
            return []
        return bookmarks_of(list_tags(latest), latest.version, target.dataset.manifests)


def find_bookmark(
    namespace: NamespaceSpec | LanceNamespace, table: TableId | str, name: str
) -> Bookmark | None:
    """Return a bookmark by its name, which may be any tag of the table; None if there is none.

    Args:
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.
        name: the bookmark's name.

    Returns:
        The bookmark; look whether it is expired before its version is used.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        InvalidInputError: (13) `table` isn't a valid identifier, or the tag names a version of a branch.
        ServiceUnavailableError: (17) the storage or the metastore failed.
    """
    with resolved_table(namespace, table) as target:
        latest = target.open_latest()
        if latest is None:
            return None
        files, tag = target.dataset.manifests, list_tags(latest).get(name)
        if tag is None:
            return find_expiry(files, name, latest.version)
        if not is_on_main(tag):
            raise spec_errors.InvalidInputError(
                f"table {target.id}: tag {name!r} names a version of branch {tag['branch']!r}, and only the "
                "main line of a table can be read by a bookmark; choose another name"
            )
        return bookmark_of(name, tag, latest.version, files)


def bookmarks_of(tags: Mapping[str, Any], newest: int, files: Manifests) -> list[Bookmark]:
    """Return the bookmarks of a table by name, with the expired ones.

    Args:
        tags: the table's tags, as Lance lists them.
        newest: its newest version.
        files: the files at its location.
    """
    expired = [one for one in all_expiries(files, newest) if one.name not in tags]
    return sorted([*valid_bookmarks(tags, newest, files), *expired], key=lambda one: one.name)


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


def is_on_main(tag: Any) -> bool:
    """Return whether a tag names a version of the main line, and not of a branch."""
    return tag["branch"] in (None, "main")


def _is_listed(tag: Any) -> bool:
    return is_on_main(tag) and is_bookmark(tag["metadata"])


def _committed_at(files: Manifests, version: int) -> datetime | None:
    """Return when a version was committed, by the storage's clock; None if it was cleaned up."""
    manifest = files.find(version)
    return None if manifest is None else manifest.modified
