"""Tags of a table's versions, which others may set and delete while versions are being cleaned up.

A version that was tagged here is kept by every clean-up of this package, see `version_removals`.
"""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import ALLOWED_TAG, is_tag_name
from airflow_provider_lancens.namespace.locations import join
from airflow_provider_lancens.namespace.storage import purge
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.object_store import BRANCHES, TAGS, VERSIONS, is_detached
from airflow_provider_lancens.namespace.storage.storage_errors import (
    is_invalid_name,
    is_refused_bulk_delete,
    shown_text,
)
from airflow_provider_lancens.namespace.storage.table_files import TableFiles
from airflow_provider_lancens.namespace.storage.version_removals import check_not_removed, removals_at
from airflow_provider_lancens.redaction import redact

if TYPE_CHECKING:
    from lance import LanceDataset

_log = logging.getLogger(__name__)

T = TypeVar("T")
Reference = int | tuple[str, int]
"""A version of the main line, or a branch with one of its versions."""

_TRIES = 10
OWN_TAGS = "lancens-"
"""Begins the names of tags that this package sets and removes for its own use."""
_TEMPORARY = f"{OWN_TAGS}temporary-"
"""Begins the names of tags that keep a version while it is tagged or restored."""
_EXISTS, _MISSING = "Ref conflict", "Ref not found"
_IN_USE = "Dataset already exists"
"""What Lance says if the first manifest of a branch can't be created."""
_NO_VERSION = ("Version not found", "Table version not found")
"""In errors for a missing version, of Lance and of a namespace that decides the versions."""
_REFERENCES = "/_refs/"
_NO_FILE = ("Not found", "No such file")
"""In errors for a missing file; Lance uses the types of these errors also for much else."""
_BAD_CONTENT = "LanceError(Arrow)"
"""Part of Lance's error about a file whose content is neither a tag nor a branch."""
_CUT_OFF = "EOF while parsing"
"""In the error if Lance reads a tag's file only up to its length before the tag was moved."""


def check_tag_name(name: object, argument: str = "tag") -> None:
    """Check that a tag may have a name.

    Args:
        name: the name.
        argument: what the caller calls it, for the message.

    Raises:
        InvalidInputError: (13) it may not, see `is_tag_name`.
    """
    if not is_tag_name(name):
        raise spec_errors.InvalidInputError(
            f"{argument}={name!r}: is not a valid tag name; expected {ALLOWED_TAG}"
        )


def list_tags(dataset: LanceDataset) -> Mapping[str, Any]:
    """Return the tags of a dataset by name, as Lance describes them.

    Lance lists them and then reads each, and fails if one is deleted in between: then they are listed again.

    Args:
        dataset: the table's dataset, at any version.

    Raises:
        InvalidTableStateError: (19) another client wrote a tag that Lance can't read.
    """
    return read_references(dataset, dataset.tags.list)


def is_on_main(tag: Any) -> bool:
    """Return whether a tag, as Lance describes it, names a version of the main line, and not of a branch.

    Each branch numbers its versions by itself, so that a version of the main line may have the same number.
    """
    return tag["branch"] in (None, "main")


def list_branches(dataset: LanceDataset) -> Mapping[str, Any]:
    """Return the branches of a dataset by name, as Lance describes them; see `list_tags`.

    Args:
        dataset: the table's dataset, at any version.

    Raises:
        InvalidTableStateError: (19) another client wrote a branch that Lance can't read.
    """
    return read_references(dataset, dataset.branches.list)


def read_references(dataset: LanceDataset, read: Callable[[], T]) -> T:
    """Let Lance read tags or branches, again if another client changes one meanwhile.

    Args:
        dataset: the dataset.
        read: the call of Lance that lists them, and reads the file of each.

    Raises:
        InvalidTableStateError: (19) another client wrote a tag or a branch that Lance can't read.
    """
    try:
        return _repeated(read)
    except (OSError, RuntimeError, ValueError) as error:
        text = str(error)
        is_file = _REFERENCES in text and any(phrase in text for phrase in _NO_FILE)
        if not (is_file or _BAD_CONTENT in text or is_invalid_name(error)):
            raise
        raise spec_errors.InvalidTableStateError(
            f"{redact(dataset.uri)}: its tags and branches can't be read, since another client wrote a file "
            f"below {_REFERENCES[1:]} that is none: {shown_text(error)}; remove that file"
        ) from None


def create_tag(dataset: LanceDataset, files: Manifests, tag: str, version: Reference) -> bool:
    """Create a tag; of several clients, one creates it.

    Args:
        dataset: the table's dataset, at any version.
        files: the files at its location.
        tag: name of the tag.
        version: an existing version, or a branch with one of its versions.

    Returns:
        False if there is a tag of that name already.

    Raises:
        TableVersionNotFoundError: (11) there is no such version; the tag wasn't created.
        InvalidInputError: (13) no tag may have the name, or the version is staged, which Lance would tag.
        ConcurrentModificationError: (14) a clean-up may be removing it; the tag wasn't created.
    """
    _check_new_name(dataset, tag)
    _check_not_staged(files, version)
    path = file_of_tag(tag)

    def attempt() -> bool | None:
        if _unless(_EXISTS, lambda: dataset.tags.create(tag, version)):
            return True
        # Lance reports each refusal as an existing tag, also a conflict after which nothing was stored.
        return None if files.stat(path) is None else False

    try:
        if not files.repeat_after_conflicts(path, attempt):
            return False
    except (OSError, ValueError) as error:
        if not any(text in str(error) for text in _NO_VERSION):
            raise
        raise spec_errors.TableVersionNotFoundError(
            f"{files.location}: there is no version {version} to tag: it was cleaned up, or never existed"
        ) from error
    if isinstance(version, int):  # a clean-up of this package removes no version of a branch
        try:
            check_not_removed(dataset, files, version)
        except spec_errors.LanceNamespaceError:
            delete_tag(dataset, tag)
            raise
    return True


def _check_new_name(dataset: LanceDataset, tag: str) -> None:
    if not is_tag_name(tag) and tag not in list_tags(dataset):  # another client's tag may have a longer name
        check_tag_name(tag)


def _check_not_staged(files: Manifests, version: Reference) -> None:
    if isinstance(version, int) and is_detached(version):
        raise spec_errors.InvalidInputError(
            f"{files.location}: version {version} is staged, so no tag keeps it; publish it first, and tag "
            "the version that it was published as"
        )


def create_branch(dataset: LanceDataset, files: Manifests, name: str, parent: Reference) -> bool:
    """Create a branch of a version; of several clients, one creates it.

    Args:
        dataset: the table's dataset, at any version.
        files: the files at its location.
        name: name of the branch.
        parent: an existing version, or another branch with one of its versions.

    Returns:
        False if there is a branch of that name already.

    Raises:
        TableVersionNotFoundError: (11) there is no such version; the branch wasn't created.
        ConcurrentModificationError: (14) a clean-up may be removing it, or another client is creating the
            branch; it wasn't created.
    """
    if name in list_branches(dataset):
        return False

    def attempt() -> bool | None:
        try:
            dataset.create_branch(name, parent if isinstance(parent, tuple) else (None, parent))
        except OSError as error:
            if name in list_branches(dataset):
                return False  # another client has just created it
            if not _is_conflict(files, name, error):
                raise
            return None
        return True

    with temporary_tag(dataset, files, parent):
        return files.repeat_after_conflicts(f"{BRANCHES}/{name}", attempt)


def _is_conflict(files: Manifests, branch: str, error: OSError) -> bool:
    """Whether the storage refused to create a file of a branch that doesn't exist, which is then undone.

    Lance writes the branch's first version, then the file with its name.

    Raises:
        ConcurrentModificationError: (14) the first version is there, and isn't this client's.
    """
    folder, text = f"{BRANCHES}/{branch}", str(error)
    if _EXISTS in text:
        purge.remove(join(files.location, *folder.split("/")), files.storage_options)
        return True
    if files.below(f"{folder}/{VERSIONS}"):
        raise spec_errors.ConcurrentModificationError(
            f"{redact(files.location)}: branch {branch!r} has versions and no name: another client is "
            "creating it, or has died meanwhile; run it again, choose another name, or remove folder "
            f"{folder}"
        ) from None
    return _IN_USE in text


def move_tag(dataset: LanceDataset, files: Manifests, tag: str, version: Reference) -> bool:
    """Move a tag to another version; see `create_tag`.

    The version is kept by a temporary tag first: if that is refused, the tag still keeps the version that it
    names.

    Returns:
        False if there is no such tag.

    Raises:
        LanceNamespaceError: see `create_tag`; the tag wasn't moved.
    """
    with temporary_tag(dataset, files, version):
        return _unless(_MISSING, lambda: dataset.tags.update(tag, version))


def set_tag(dataset: LanceDataset, files: Manifests, tag: str, version: Reference) -> None:
    """Tag a version; an existing tag of that name is moved; see `create_tag`.

    Raises:
        LanceNamespaceError: see `create_tag`; (14) also if others keep creating and deleting the tag.
    """
    for _ in range(_TRIES):
        if create_tag(dataset, files, tag, version) or move_tag(dataset, files, tag, version):
            return
    raise spec_errors.ConcurrentModificationError(
        f"{files.location}: tag {tag!r} couldn't be set to version {version}: other clients created and "
        f"deleted it during {_TRIES} attempts; nothing was changed, run this again"
    )


@contextlib.contextmanager
def temporary_tag(dataset: LanceDataset, files: Manifests, version: Reference) -> Iterator[None]:
    """Keep a version for the duration of the block, and beyond if a clean-up that is running needs the tag.

    A clean-up reads the newest version, then the branches, then the tags. So a clean-up that began meanwhile
    may have read the first two before the block changed them, and would read the tags after this one is gone.

    Raises:
        LanceNamespaceError: see `create_tag`; the block isn't executed.
    """
    tag = f"{_TEMPORARY}{uuid.uuid4()}"
    create_tag(dataset, files, tag, version)
    try:
        yield
    finally:
        if not (isinstance(version, int) and _may_be_removed(files, version)):
            _delete_temporary(dataset, tag)


def _may_be_removed(files: Manifests, version: int) -> bool:
    try:
        return any(removal.may_remove(version) for removal in removals_at(files))
    except spec_errors.LanceNamespaceError as error:
        _log.warning("Whether a clean-up is running couldn't be read: %s", error)
        return True


def delete_abandoned_tags(dataset: LanceDataset, before: datetime) -> None:
    """Delete the temporary tags that interrupted processes left before a time."""
    for name, tag in list_tags(dataset).items():
        # Lance's tags always have a time; what another client wrote without one is kept.
        if name.startswith(_TEMPORARY) and tag["created_at"] is not None and tag["created_at"] < before:
            _delete_temporary(dataset, name)


def _delete_temporary(dataset: LanceDataset, tag: str) -> None:
    try:
        delete_tag(dataset, tag)
    except (spec_errors.LanceNamespaceError, OSError, RuntimeError, ValueError) as error:
        # The tag has served its purpose, so this must not fail.
        _log.warning("Tag %s couldn't be deleted; a clean-up will delete it: %s", tag, error)


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
        # Lance deletes a tag by a bulk delete of its one file.
        TableFiles(dataset.uri, dataset.latest_storage_options() or {}).remove(file_of_tag(tag))


def file_of_tag(tag: str) -> str:
    """Return the path of a tag's file, relative to the table's location."""
    return f"{TAGS}/{tag}.json"


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
    """Call Lance, again if another client moves or deletes a tag while Lance reads or writes its file."""
    for _ in range(_TRIES - 1):
        try:
            return call()
        except (OSError, RuntimeError, ValueError) as error:
            message = str(error)
            deleted = _REFERENCES in message and any(text in message for text in _NO_FILE)
            if not deleted and _CUT_OFF not in message:
                raise
    return call()
