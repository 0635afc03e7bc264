"""Tags of a table's versions, which others may set and delete at the same time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_lancens.namespace.storage.storage_errors import is_refused_bulk_delete
from airflow_provider_lancens.namespace.storage.table_files import TableFiles

if TYPE_CHECKING:
    from lance import LanceDataset

T = TypeVar("T")
Reference = int | tuple[str, int]
"""A version of the main line, or a branch with one of its versions."""

_TRIES = 10
_EXISTS, _MISSING = "Ref conflict", "Ref not found"
_TAG_FILES = "/_refs/tags/"
_NO_FILE = ("Not found", "No such file")
"""In the messages of Lance's errors, whose types it also uses for much else."""


def list_tags(dataset: LanceDataset) -> Mapping[str, Any]:
    """Return the tags of a dataset by name, as Lance describes them.

    Lance lists them and then reads each, and fails if one is deleted in between: then they are listed again.

    Args:
        dataset: the table's dataset, at any version.
    """
    return _repeated(dataset.tags.list)


def create_tag(dataset: LanceDataset, tag: str, version: Reference) -> bool:
    """Create a tag; of several clients, one creates it.

    Args:
        dataset: the table's dataset, at any version.
        tag: name of the tag.
        version: an existing version, or a branch with one of its versions.

    Returns:
        False if there is a tag of that name already.

    Raises:
        ValueError: there is no such version.
    """
    return _unless(_EXISTS, lambda: dataset.tags.create(tag, version))


def move_tag(dataset: LanceDataset, tag: str, version: Reference) -> bool:
    """Move a tag to another version; see `create_tag`.

    Returns:
        False if there is no such tag.

    Raises:
        ValueError: there is no such version.
    """
    return _unless(_MISSING, lambda: dataset.tags.update(tag, version))


def set_tag(dataset: LanceDataset, tag: str, version: Reference) -> None:
    """Tag a version; an existing tag of that name is moved; see `create_tag`.

    Raises:
        ValueError: there is no such version.
    """
    for _ in range(_TRIES - 1):
        if move_tag(dataset, tag, version) or create_tag(dataset, tag, version):
            return
    dataset.tags.update(tag, version)


def delete_tag(dataset: LanceDataset, tag: str) -> bool:
    """Delete a tag.

    Args:
        dataset: the table's dataset, at any version.
        tag: name of the tag.

    Returns:
        False if there was no such tag.
    """
    return _unless(_MISSING, lambda: _delete_tag(dataset, tag))


def _delete_tag(dataset: LanceDataset, tag: str) -> None:
    try:
        dataset.tags.delete(tag)
    except (OSError, ValueError) as error:
        if not is_refused_bulk_delete(error):
            raise
        # Lance asks S3 for a bulk delete of the tag's file, which is all that it deletes.
        TableFiles(dataset.uri, dataset.latest_storage_options() or {}).remove(f"_refs/tags/{tag}.json")


def replace_metadata(dataset: LanceDataset, tag: str, metadata: Mapping[str, str]) -> None:
    """Replace the metadata of a tag, unless it is deleted meanwhile.

    Args:
        dataset: the table's dataset, at any version.
        tag: name of the tag.
        metadata: all of its metadata.
    """
    _unless(_MISSING, lambda: dataset.tags.replace_metadata(tag, dict(metadata)))


def _unless(refusal: str, change: Callable[[], object]) -> bool:
    """Change a tag; return False if Lance refuses that with this message."""
    try:
        _repeated(change)
    except ValueError as error:
        if refusal not in str(error):
            raise
        return False
    return True


def _repeated(call: Callable[[], T]) -> T:
    """Call Lance, again if another client deletes a tag while Lance reads or writes its file."""
    for _ in range(_TRIES - 1):
        try:
            return call()
        except (OSError, ValueError) as error:
            message = str(error)
            if _TAG_FILES not in message or not any(one in message for one in _NO_FILE):
                raise
    return call()
