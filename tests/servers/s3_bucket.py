"""The objects of a bucket in memory, sorted by key: a listing costs what it returns."""

import hashlib
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

_JUST_ABOVE_SLASH = chr(ord("/") + 1)


@dataclass(frozen=True)
class Stored:
    """An object. The content of one that was adopted stays in its file."""

    content: bytes | Path
    size: int
    e_tag: str
    modified: datetime

    @classmethod
    def of(cls, content: bytes) -> Self:
        digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
        return cls(content, len(content), f'"{digest}"', datetime.now(UTC))

    def read(self) -> bytes:
        return self.content if isinstance(self.content, bytes) else self.content.read_bytes()


@dataclass
class Bucket:
    """Objects by key, and their keys in order."""

    objects: dict[str, Stored] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)

    def put(self, key: str, stored: Stored) -> None:
        if key not in self.objects:
            insort(self.keys, key)
        self.objects[key] = stored

    def adopt(self, prefix: str, folder: Path, modified: datetime | None = None) -> None:
        """Take over all files below a folder, whose content is read when it is asked for."""
        for file in folder.rglob("*"):
            if file.is_file():
                seen = file.stat()
                then = modified or datetime.fromtimestamp(seen.st_mtime, UTC)
                tag = f'"{seen.st_ino:x}-{seen.st_size:x}"'
                self.objects[f"{prefix}/{file.relative_to(folder)}"] = Stored(file, seen.st_size, tag, then)
        self.keys = sorted(self.objects)

    def remove(self, *keys: str) -> None:
        gone = [key for key in keys if self.objects.pop(key, None)]
        for key in gone:
            del self.keys[bisect_left(self.keys, key)]

    def page(self, prefix: str, delimiter: str, after: str, limit: int) -> tuple[list[str], bool]:
        """Return keys, and common prefixes, after one of either; and whether there are more."""
        found: list[str] = []
        at = max(bisect_left(self.keys, prefix), self._behind(after, delimiter))
        while at < len(self.keys) and self.keys[at].startswith(prefix):
            if len(found) == limit:
                return found, True
            folder, slash, _ = self.keys[at].removeprefix(prefix).partition(delimiter or "\0")
            found.append(prefix + folder + slash)
            at = self._behind(found[-1], delimiter)
        return found, False

    def page_in_no_order(self, prefix: str, delimiter: str, after: str, limit: int) -> tuple[list[str], bool]:
        """Return what `page` does, in the order of a directory bucket: any, but always the same."""
        found = sorted(self.page(prefix, delimiter, "", len(self.keys))[0], key=_digest)
        start = bisect_right(found, _digest(after), key=_digest) if after else 0
        return found[start : start + limit], len(found) > start + limit

    def _behind(self, item: str, delimiter: str) -> int:
        if delimiter and item.endswith(delimiter):
            return bisect_left(self.keys, item[:-1] + _JUST_ABOVE_SLASH)
        return bisect_right(self.keys, item)


def _digest(item: str) -> str:
    return hashlib.md5(item.encode(), usedforsecurity=False).hexdigest()
