"""Which files lie beside a table, and which of them its versions need."""

import os
import time
from datetime import timedelta
from pathlib import Path

import lance

from airflow_provider_lancens.spark import NamespaceSpec, remove_orphans
from airflow_provider_lancens.spark.target import described

DAY = timedelta(days=1)


def folder_of(spec: NamespaceSpec, table: str) -> Path:
    with described(spec, table) as target:
        return Path(target.dataset.location)


def files_of(folder: Path) -> set[Path]:
    """All but the mark by which Lance's own namespace knows a declared table."""
    return {file for file in folder.rglob("*") if file.is_file() and file.name != ".lance-reserved"}


def age(files: set[Path], days: int) -> None:
    then = time.time() - timedelta(days=days).total_seconds()
    for file in files:
        os.utime(file, (then, then))


def clean_up(spec: NamespaceSpec, table: str) -> None:
    """As if all that is there, and all that wrote it, were a month old."""
    age(files_of(folder_of(spec, table)), days=30)
    remove_orphans(spec, table, older_than=DAY)


def files_needed(folder: Path) -> set[Path]:
    """What the versions of a data set are made of."""
    newest = lance.dataset(str(folder))
    needed = {"_versions/latest_version_hint.json"}
    for version in (reference["version"] for reference in newest.version_refs()):
        dataset = newest.checkout_version(version)
        transaction = dataset.read_transaction(version)
        needed.add(f"_transactions/{transaction.read_version}-{transaction.uuid}.txn")
        needed.add(f"_versions/{2**64 - 1 - version}.manifest")
        for fragment in (fragment.metadata for fragment in dataset.get_fragments()):
            needed |= {f"data/{file.path}" for file in fragment.files}
            if fragment.deletion_file is not None:
                needed.add(fragment.deletion_file.path(fragment.id))
    return {folder / path for path in needed}
