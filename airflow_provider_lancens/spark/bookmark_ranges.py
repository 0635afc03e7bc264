"""Up to which version an execution reads from a bookmark: its first try decides, for its later tries too.

A later try finds what an earlier one has written, which had the rows of its range. With a range of its own,
it would move the bookmark past versions whose rows nobody has written. So the range is recorded beside the
data before anything is read, and the record is removed once the bookmark has moved. Of an execution that
fails for good, it stays until a clean-up of orphans. An empty range needs no record: what is written for it
has another key than what is written for any other range.

What decides is in the record's name, so that it isn't lost with its content in a power failure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256

from airflow_provider_lancens.namespace.storage.json_records import whole_number
from airflow_provider_lancens.namespace.storage.object_store import RECORDED
from airflow_provider_lancens.namespace.storage.table_files import TableFiles

_RANGES = f"{RECORDED}/bookmark-ranges"
_SUFFIX = ".json"
_DIGITS = 32


def fix_range(files: TableFiles, bookmark: str, execution_id: str, after: int, version: int) -> int:
    """Return up to which version an execution reads from a bookmark.

    Args:
        files: the files at the table's location.
        bookmark: its name.
        execution_id: what the tries of the execution share.
        after: the version that the bookmark has; 0 if it is new.
        version: the newest version, up to which a first try reads.
    """
    # Since an earlier try moved the bookmark, this one begins where that one has ended.
    fixed = [end for _, start, end in _records(files, bookmark, execution_id) if start == after]
    if fixed:
        return min(fixed)
    content = {"bookmark": bookmark, "execution_id": execution_id, "after": after, "version": version}
    path = f"{_RANGES}/{_digest(bookmark, execution_id)}.{after}.{version}{_SUFFIX}"
    files.put(path, json.dumps(content).encode())
    return version


def forget_range(files: TableFiles, bookmark: str, execution_id: str) -> None:
    """Remove the records of an execution's ranges, after its bookmark has moved."""
    for path, *_ in list(_records(files, bookmark, execution_id)):
        files.remove(path)


def _records(files: TableFiles, bookmark: str, execution_id: str) -> Iterator[tuple[str, int, int]]:
    """Yield the path of each record of an execution, with the two versions of its range."""
    digest = _digest(bookmark, execution_id)
    for file in files.below(_RANGES):
        name, *numbers = file.path.rpartition("/")[2].removesuffix(_SUFFIX).split(".")
        versions = [number for one in numbers if (number := whole_number(one)) is not None]
        if name == digest and len(versions) == len(numbers) == 2:
            yield file.path, versions[0], versions[1]


def _digest(bookmark: str, execution_id: str) -> str:
    return sha256(json.dumps([bookmark, execution_id]).encode()).hexdigest()[:_DIGITS]
