"""Tags of a table's versions, which others may set and delete at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance import LanceDataset


def set_tag(dataset: LanceDataset, tag: str, version: int) -> None:
    """Tag a version; an existing tag of that name is moved.

    Args:
        dataset: the table's data set, at any version.
        tag: name of the tag.
        version: an existing version.

    Raises:
        ValueError: there is no such version.
    """
    if tag in dataset.tags.list():
        try:
            dataset.tags.update(tag, version)
        except ValueError:
            if tag in dataset.tags.list():
                raise
        else:
            return
    try:
        dataset.tags.create(tag, version)
    except ValueError:
        if tag not in dataset.tags.list():
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
    if tag not in dataset.tags.list():
        return False
    try:
        dataset.tags.delete(tag)
    except ValueError:
        if tag in dataset.tags.list():
            raise
        return False
    return True
