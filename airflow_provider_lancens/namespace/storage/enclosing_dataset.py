"""Locations inside the folders of another dataset, where no table is declared or registered.

The folders of a dataset belong to it alone: its clean-up removes the files in them that its versions don't
refer to, also the files of another dataset. A branch, in ``tree``, shares the tags of the main line: a table
there would move and delete the tags of another table, and lose its files with the branch.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.locations import Location, is_local, shown_location
from airflow_provider_lancens.namespace.storage.allowed_locations import AllowedLocations
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.object_store import BRANCHES
from airflow_provider_lancens.namespace.storage.purge import LANCE_ENTRIES
from airflow_provider_lancens.redaction import redact

log = logging.getLogger(__name__)


def check_not_enclosed(
    location: str, storage_options: Mapping[str, str], allowed: AllowedLocations, subject: str
) -> None:
    """Check that a location isn't in a folder of another dataset, if the storage may be read.

    It costs a request for each folder of the location that is named as one of Lance's, so in general none.

    Args:
        location: the location, which was checked to be allowed.
        storage_options: Lance's storage options for it.
        allowed: the locations that the credentials may be used for.
        subject: what is to have the location, for the message.

    Raises:
        InvalidInputError: (13) it is; the message names the dataset.
    """
    for root, folder in _possible_datasets(Location.of(location)):
        try:
            allowed.check(root, subject)
            is_dataset = Manifests(root, storage_options, is_optional=True).newest() is not None
        except spec_errors.LanceNamespaceError as error:
            log.info("%s: whether it lies in a dataset at %s is unknown: %s", subject, redact(root), error)
            continue
        if is_dataset:
            raise spec_errors.InvalidInputError(
                f"{subject}: its location {shown_location(redact(location))} is in the folder {folder!r} of "
                f"the dataset at {shown_location(redact(root))}, {_advice(folder)}"
            )


def _advice(folder: str) -> str:
    if folder == BRANCHES:
        return (
            "which has its branches: a branch has no tags of its own, and its files are deleted with it; "
            "register the dataset, and name the branch in requests, or write its rows to a table"
        )
    return "whose clean-up would remove its files; choose a location outside of that dataset"


def _possible_datasets(location: Location) -> Iterator[tuple[str, str]]:
    """Yield the root of each dataset in whose folders a location would be, and that folder's name."""
    spellings = {str(location)}
    if is_local(location):
        spellings.add(str(Path(location).resolve()))
    for spelling in sorted(spellings):
        scheme, separator, path = spelling.rpartition("://")
        parts = path.split("/")
        for at, part in enumerate(parts):
            root = "/".join(parts[:at])
            if part in LANCE_ENTRIES and root:
                yield f"{scheme}{separator}{root}", part
