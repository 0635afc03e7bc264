"""The versions of a table, newest first, page by page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.namespace.storage.version_tags import is_on_main, list_tags
from airflow_provider_lancens.spark.bookmarks import bookmarks_of
from airflow_provider_lancens.spark.keys import key_of
from airflow_provider_lancens.spark.table.history import is_maintenance, read_transaction
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable, resolved_table

if TYPE_CHECKING:
    from lance import LanceDataset, Transaction

_THREADS = 16


def list_versions(hook: LanceHook, table: str, before: int | None, limit: int) -> dict[str, Any]:
    """Return a page of a table's versions, newest first.

    Costs a few requests for each version of the page, whatever the age of the table; and a listing if some of
    them were cleaned up.

    Args:
        hook: hook to its namespace.
        table: table identifier.
        before: return versions smaller than this one; None for the newest.
        limit: how many.

    Returns:
        ``versions``, the number to continue ``before``, or None, and on the first page the ``expired``
        bookmarks, whose versions aren't kept any more.
    """
    with resolved_table(hook.get_reader(), table) as target:
        newest = target.open_latest()
        if newest is None:
            return {"versions": [], "next": None, "expired": []}
        pages = _VersionPages(target, newest)
        end = newest.version + 1 if before is None else min(before, newest.version + 1)
        entries = pages.page(end, limit)
        expired = pages.expired_bookmarks() if before is None else []
    more = len(entries) == limit and entries[-1]["version"] > 1
    return {"versions": entries, "next": entries[-1]["version"] if more else None, "expired": expired}


class _VersionPages:
    def __init__(self, target: ResolvedTable, newest: LanceDataset) -> None:
        self._target = target
        self._newest = newest
        tags = list_tags(self._newest)
        self._tags = _by_version(tags)
        self._bookmarks = bookmarks_of(tags, newest.version, target.dataset.manifests)

    @cached_property
    def _stored(self) -> LanceDataset:
        """Where older versions are opened: they have their final names, so no metastore is asked for each."""
        if self._target.dataset.version_authority is None:
            return self._newest
        return replace(self._target.dataset, version_authority=None).open(None)

    def expired_bookmarks(self) -> list[dict[str, Any]]:
        """Return the bookmarks that have expired."""
        return [
            {"name": bookmark.name, "version": bookmark.version, "expired": bookmark.expired_at.isoformat()}
            for bookmark in self._bookmarks
            if bookmark.expired_at is not None
        ]

    def page(self, end: int, limit: int) -> list[dict[str, Any]]:
        """Return the entries of the versions below `end` that are kept, at most `limit`."""
        wanted = range(end - 1, max(end - 1 - limit, 0), -1)
        entries = list(self._read(wanted))
        if len(entries) == len(wanted):
            return entries
        kept = sorted((v for v in self._target.dataset.manifests.all() if v < end), reverse=True)
        have = {entry["version"]: entry for entry in entries}
        have.update(
            (entry["version"], entry) for entry in self._read([v for v in kept[:limit] if v not in have])
        )
        return [have[version] for version in sorted(have, reverse=True)[:limit]]

    def _read(self, versions: Sequence[int]) -> Iterator[dict[str, Any]]:
        older = versions
        if versions and versions[0] == self._newest.version:
            # Alone: a dataset can't be read by two threads at once, only others be opened from it.
            yield self._entry(self._newest)
            older = versions[1:]
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="lance-page-history") as pool:
            yield from filter(None, pool.map(self._older_entry, older))

    def _older_entry(self, version: int) -> dict[str, Any] | None:
        try:
            dataset = self._stored.checkout_version(version)
        except (OSError, ValueError):
            return None  # cleaned up
        return self._entry(dataset)

    def _entry(self, dataset: LanceDataset) -> dict[str, Any]:
        version = dataset.version
        return {
            "version": version,
            **_described(dataset.get_version()),
            **_origin(read_transaction(dataset, version), version),
            "tags": self._tags.get(version, []),
            "bookmarks": self._expiries(version),
        }

    def _expiries(self, version: int) -> dict[str, str | None]:
        """Return the bookmarks of a version, each with the time at which it expires, or None."""
        return {
            bookmark.name: None if bookmark.expires_at is None else bookmark.expires_at.isoformat()
            for bookmark in self._bookmarks
            if bookmark.version == version and not bookmark.is_expired
        }


def _by_version(tags: Mapping[str, Any]) -> dict[int, list[str]]:
    names: dict[int, list[str]] = {}
    for name, tag in sorted(tags.items()):
        if is_on_main(tag):
            names.setdefault(int(tag["version"]), []).append(name)
    return names


def _described(version: Mapping[str, Any]) -> dict[str, Any]:
    counted = version["metadata"]
    return {
        "created": version["timestamp"].astimezone(UTC).isoformat(),
        "rows": int(counted["total_rows"]),
        "bytes": int(counted["total_files_size"]),
        "fragments": int(counted["total_fragments"]),
    }


def _origin(transaction: Transaction | None, version: int) -> dict[str, Any]:
    if transaction is None:
        return {"operation": "", "maintenance": False, "key": ""}
    operation = type(transaction.operation).__name__
    return {
        # Lance's operation for the first version of a table, whatever the mode of the write was.
        "operation": "Create" if version == 1 and operation == "Overwrite" else operation,
        "maintenance": is_maintenance(transaction),
        "key": key_of(transaction) or "",
    }
