"""The files of a table, and those that its versions need."""

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import lance

from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.keys import FOLDERS
from airflow_provider_lancens.spark.maintenance.orphans import remove_orphans
from airflow_provider_lancens.spark.table.resolved_table import resolved_table

DAY = timedelta(days=1)


def folder_of(spec: NamespaceSpec, table: str) -> Path:
    with resolved_table(spec, table) as target:
        return Path(target.dataset.location)


def files_of(folder: Path) -> set[Path]:
    """All files except for the markers of declaration and newest commit, and the records of keys."""
    found = {file for file in folder.rglob("*") if file.is_file() and file.name != ".lance-reserved"}
    keys = {file for kept in FOLDERS for file in (folder / kept).rglob("*")}
    return found - set(folder.glob("_lancens/committed-*")) - keys


def age(files: set[Path], days: int) -> None:
    then = time.time() - timedelta(days=days).total_seconds()
    for file in files:
        os.utime(file, (then, then))


def age_table(spec: NamespaceSpec, table: str, days: int) -> None:
    """Set the age of all files below a table's location, on local disk or on moto's S3."""
    with resolved_table(spec, table) as target:
        location = target.dataset.location
    if location.startswith("s3://"):
        _age_objects(location, days)
    else:
        age(files_of(Path(location)), days)


def _age_objects(location: str, days: int) -> None:
    from moto.core import DEFAULT_ACCOUNT_ID  # moto runs in this process, only for tests that need it
    from moto.s3.models import s3_backends

    bucket, _, prefix = location.removeprefix("s3://").partition("/")
    then = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=days)
    for name, held in s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[bucket].keys.items():
        if name.startswith(f"{prefix}/"):
            held.last_modified = then


def clean_up(spec: NamespaceSpec, table: str) -> None:
    """Clean up as if all files and all writes were a month old."""
    age_table(spec, table, days=30)
    remove_orphans(spec, table, older_than=DAY)


def files_needed(folder: Path) -> set[Path]:
    """The files that the versions of a dataset refer to."""
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
