"""Move and delete the bookmark of a consumer, beside clean-ups that find it expired."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.object_store import is_detached
from airflow_provider_lancens.namespace.storage.version_tags import (
    delete_tag,
    list_tags,
    replace_metadata,
    set_tag,
)
from airflow_provider_lancens.spark.bookmarks.bookmark import as_metadata
from airflow_provider_lancens.spark.bookmarks.expiry_records import remove_expiry
from airflow_provider_lancens.spark.options import check_expires_after, is_whole_number
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, resolved_table

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace import LanceNamespace

_TRIES = 10


def move_bookmark(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    name: str,
    version: int,
    *,
    expires_after: timedelta | None = None,
) -> None:
    """Move the bookmark of a consumer to a version, which it keeps from clean-ups; create it if it is new.

    An expired bookmark becomes valid again.

    Args:
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.
        name: the bookmark's name, a tag of the table.
        version: an existing version, up to which the consumer has read the table.
        expires_after: how long the version is kept, if the bookmark isn't moved again, after this move or,
            if later, after the commit of the next version. None never expires.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        TableVersionNotFoundError: (11) there is no such version.
        InvalidInputError: (13) an argument is invalid, or the version is staged.
        ConcurrentModificationError: (14) a clean-up may be removing the version, or others kept changing the
            tag meanwhile; the bookmark wasn't moved.
        ServiceUnavailableError: (17) the storage or the metastore failed.
    """
    try:
        check_expires_after(expires_after)
    except ValueError as error:
        raise spec_errors.InvalidInputError(str(error)) from error
    if is_whole_number(version, at_least=0) and is_detached(version):
        raise spec_errors.InvalidInputError(
            f"version={version}: is staged, so that no other version follows it; publish it first, and pass "
            "the version that it was published as"
        )
    with resolved_table(namespace, table) as target:
        target.check_version(version)
        _move(target.open(version), target.dataset.manifests, name, version, expires_after)


def delete_bookmark(namespace: NamespaceSpec | LanceNamespace, table: TableId | str, name: str) -> bool:
    """Delete a bookmark, or any other tag, and what is known of its expiry.

    Args:
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.
        name: the bookmark's name.

    Returns:
        False if there was none.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        ServiceUnavailableError: (17) the storage or the metastore failed.
    """
    with resolved_table(namespace, table) as target:
        latest = target.open_latest()
        if latest is None:
            return False
        # First the tag: a clean-up that still finds it may record that it expired.
        deleted = delete_tag(latest, name)
        return remove_expiry(target.dataset.manifests, name) or deleted


def _move(
    dataset: LanceDataset, files: Manifests, name: str, version: int, expires_after: timedelta | None
) -> None:
    # First the version: with its new time, the bookmark isn't expired by any expiry that it has.
    set_tag(dataset, files, name, version)
    for _ in range(_TRIES):
        tag = list_tags(dataset).get(name)
        if tag is None:  # a clean-up found it expired, and looked at it right before it was moved
            set_tag(dataset, files, name, version)
        elif (metadata := as_metadata(tag["metadata"], expires_after)) == tag["metadata"]:
            return
        else:
            replace_metadata(dataset, name, metadata)
    raise spec_errors.ConcurrentModificationError(
        f"bookmark {name!r}: other clients set or delete this tag at the same time; use a name of its own "
        "for each consumer, and run it again"
    )
