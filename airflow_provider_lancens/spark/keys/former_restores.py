"""Restores of tables whose commits stated no lineage: a file of the index has those up to a version."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from airflow_provider_lancens.namespace.storage.json_records import UNREADABLE
from airflow_provider_lancens.spark.keys.commit_lineage import (
    FORMER_LINEAGE,
    Lineage,
    Restores,
    read_lineage,
    transaction_id,
)
from airflow_provider_lancens.spark.keys.key_index import INDEX, KeyIndex
from airflow_provider_lancens.spark.keys.key_records import has_records
from airflow_provider_lancens.spark.table.history import restored_version, transactions

if TYPE_CHECKING:
    from lance import LanceDataset

_NAME = re.compile(r"restores-(\d{1,20})\.json")


def migrate_lineage(latest: LanceDataset, index: KeyIndex) -> None:
    """Store the lineage of the latest version, up to which the records are trusted as they are.

    Args:
        latest: the dataset, opened at its latest version.
        index: the index of its keys.
    """
    up_to, recorded = _recorded(index, latest.version)
    files = [file.path for file in index.listed if _NAME.fullmatch(file.path.rpartition("/")[2])]
    ids: list[str] = []
    restores = set(recorded)
    for version, transaction in transactions(latest, up_to):
        if transaction is None:
            continue
        if len(ids) == latest.version - version:
            ids.append(transaction_id(transaction.uuid))
        if (restored := restored_version(transaction)) is not None:
            restores.add((version, restored))
        relied_upon = (transaction.transaction_properties or {}).get(FORMER_LINEAGE, "")
        if relied_upon.isdecimal() and int(relied_upon) <= up_to:
            break
    if not ids:
        ids = list(read_lineage(latest, has_records, at_most=1)[0].ids)
    lineage = Lineage(latest.version, 1, tuple(reversed(ids)), tuple(sorted(restores)))
    index.segments.store(lineage, settled=True)
    if files:
        index.files.remove_outdated(*files)


def _recorded(index: KeyIndex, newest: int) -> tuple[int, Restores]:
    """Return the version up to which Restores are recorded, and these."""
    names = (_NAME.fullmatch(file.path.rpartition("/")[2]) for file in index.listed)
    best = max((int(name[1]) for name in names if name and int(name[1]) <= newest), default=0)
    content = index.files.read(f"{INDEX}/restores-{best}.json") if best else None
    if content is None:
        return 0, ()
    try:
        return best, tuple((int(made), int(restored)) for made, restored in json.loads(content))
    except UNREADABLE:
        return 0, ()
