"""Tags of a table's versions, which others may set and delete at the same time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lance import LanceDataset

_TRIES = 10
_VANISHED = (OSError, ValueError)
"""What Lance raises, among much else, if another client deletes a tag while it is written."""


def list_tags(dataset: LanceDataset) -> Mapping[str, Any]:
    """Return the tags of a data set by name, as Lance describes them.

    Lance lists them and then reads each, and fails if one is deleted in between: then they are listed again.

    Args:
        dataset: the table's data set, at any version.
    """
    for _ in range(_TRIES - 1):
        try:
            return dataset.tags.list()
        except ValueError as error:
            if "Not found" not in str(error):
                raise
    return dataset.tags.list()


def set_tag(dataset: LanceDataset, tag: str, version: int) -> None:
    """Tag a version; an existing tag of that name is moved.

    Args:
        dataset: the table's data set, at any version.
        tag: name of the tag.
        version: an existing version.

    Raises:
        ValueError: there is no such version.
    """
    if tag in list_tags(dataset):
        try:
            dataset.tags.update(tag, version)
        except _VANISHED:
            if tag in list_tags(dataset):
                raise
        else:
            return
    try:
        dataset.tags.create(tag, version)
    except _VANISHED:
        if tag not in list_tags(dataset):
            raise
        dataset.tags.update(tag, version)


def delete_tag(dataset: LanceDataset, tag: str) -> bool:
    """Delete a tag.

    Args:
        dataset: the table's data set, at any version.
        tag: name of the tag.

    Returns:
        False if there was no such tag.
    """
    if tag not in list_tags(dataset):
        return False
    try:
        dataset.tags.delete(tag)
    except _VANISHED:
        if tag in list_tags(dataset):
            raise
        return False
    return True


def replace_metadata(dataset: LanceDataset, tag: str, metadata: Mapping[str, str]) -> None:
    """Replace the metadata of a tag, unless it is deleted meanwhile.

    Args:
        dataset: the table's data set, at any version.
        tag: name of the tag.
        metadata: all of its metadata.
    """
    try:
        dataset.tags.replace_metadata(tag, dict(metadata))
    except _VANISHED:
        if tag in list_tags(dataset):
            raise
