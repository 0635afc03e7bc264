"""A table with bookmarks."""

import json
import os
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from lance_namespace import LanceNamespace

from airflow_provider_lancens.namespace.storage.object_store import manifest_names
from airflow_provider_lancens.spark import Bookmark, ExpireResult
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
from tests.support.bookmarks import find_bookmark, list_bookmarks, move_bookmark

DAY = timedelta(days=1)


NAME = "revenue"


@dataclass(frozen=True)
class Orders:
    """A table on local files, with a consumer of it."""

    namespace: LanceNamespace
    folder: Path

    @property
    def dataset(self) -> lance.LanceDataset:
        return lance.dataset(str(self.folder))

    @property
    def versions(self) -> list[int]:
        return sorted(reference["version"] for reference in self.dataset.version_refs())

    @property
    def bookmark(self) -> Bookmark | None:
        return find_bookmark(self.namespace, "orders", NAME)

    @property
    def listed(self) -> list[str]:
        return [bookmark.name for bookmark in list_bookmarks(self.namespace, "orders")]

    def commit(self, first: int = 0) -> None:
        rows = pa.table({"n": list(range(first, first + 10))})
        lance.write_dataset(rows, str(self.folder), mode="overwrite")

    def move(self, version: int, expires_after: timedelta | None = None, name: str = NAME) -> None:
        move_bookmark(self.namespace, "orders", name, version, expires_after=expires_after)

    def set_back(self, by: timedelta, name: str = NAME) -> None:
        """Let the commits of all versions, and a minute later the last move of the bookmark, be older."""
        file = self.folder / "_refs" / "tags" / f"{name}.json"
        moved = (datetime.now(UTC) - by).isoformat().replace("+00:00", "Z")
        file.write_text(json.dumps({**json.loads(file.read_text()), "updatedAt": moved}))
        for version in self.versions:
            self.set_back_commit(version, by + timedelta(minutes=1))

    def set_back_commit(self, version: int, by: timedelta) -> None:
        then = time.time() - by.total_seconds()
        for name in manifest_names(version):
            if (file := self.folder / "_versions" / name).exists():
                os.utime(file, (then, then))

    def clean_up(self, **arguments: Any) -> ExpireResult:
        return clean_up_versions(self.namespace, "orders", **{"older_than": timedelta(0), **arguments})
