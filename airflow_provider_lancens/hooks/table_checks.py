"""Tags, transactions and indices of a table's dataset. Lance is imported when first needed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_provider_lancens.hooks.airflow_errors import (
    AirflowFailException,
    LanceRetryableError,
    airflow_errors,
)
from airflow_provider_lancens.identifiers import ALLOWED_TAG, LONGEST_TAG, is_tag_name

if TYPE_CHECKING:
    from lance import LanceDataset

    from airflow_provider_lancens.hooks.lance_hook import LanceHook
    from airflow_provider_lancens.identifiers import TableId

_NOT_IN_A_TAG = re.compile(r"[^A-Za-z0-9._-]+")


def tag_name(*parts: str) -> str:
    """Return a valid tag name in Lance, the same for the same parts.

    Args:
        parts: such as the ids of a DAG, a run and a task; characters not allowed in tags become ``-``, and a
            part with letters of other alphabets, which Airflow's ids may have, ends with its digest.
    """
    name = re.sub(r"\.+", ".", ".".join(map(_as_in_a_tag, parts))).strip(".")
    name = re.sub(r"\.lock$", "-lock", name)
    if len(name) <= LONGEST_TAG:
        return name
    return f"{_digest(parts[0])}-{_digest(name)}-{name[-100:]}"


def _as_in_a_tag(part: str) -> str:
    text = _NOT_IN_A_TAG.sub("-", part)
    return text if part.isascii() else f"{text}-{_digest(part)}"


def tag_starts(dag_id: str) -> tuple[str, str]:
    """Return how the tags of a DAG begin that `tag_name` makes, short ones and long ones."""
    return f"{tag_name(dag_id)}.", f"{_digest(dag_id)}-"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check_tag(tag: str | int, argument: str = "tag") -> str:
    """Return the tag name if it is valid; digits may have been rendered as a number.

    Args:
        tag: the name.
        argument: what the caller calls it, for the message.

    Raises:
        AirflowFailException: Lance doesn't allow the name, or it isn't text.
    """
    name = str(tag) if isinstance(tag, int) and not isinstance(tag, bool) else tag
    if not isinstance(name, str) or name == "None" or not is_tag_name(name):
        raise AirflowFailException(f"{argument}={tag!r}: is not a valid tag name; expected {ALLOWED_TAG}")
    return name


def pin(hook: LanceHook, table: TableId, version: int, tag: str) -> None:
    """Tag a version, which protects it from clean-up; an existing tag of that name is moved.

    Args:
        hook: hook to the table's namespace.
        table: table identifier.
        version: an existing version.
        tag: name of the tag.

    Raises:
        LanceRetryableError: the table or the version no longer exists, the storage or the metastore is
            unavailable, or a clean-up may be removing the version.
        AirflowFailException: the tag's name is invalid, or a permanent error, such as denied access.
    """
    from airflow_provider_lancens.namespace.storage.manifests import Manifests
    from airflow_provider_lancens.namespace.storage.version_tags import set_tag

    check_tag(tag)
    with _open_dataset(
        hook, table, f"tagging version {version} of table {str(table)!r} as {tag!r}"
    ) as dataset:
        set_tag(dataset, Manifests(dataset.uri, hook.storage_options()), tag, version)


def data_changed(hook: LanceHook, table: TableId, since: int, version: int) -> bool:
    """Return whether a version after this one changed data; compaction, indexing and configuration don't.

    Commits after the polled version don't count: a reader of the polled version wouldn't get their rows.

    Args:
        hook: hook to the table's namespace.
        table: table identifier.
        since: the last known version; 0 for none.
        version: the last version to look at, which was polled.

    Returns:
        True also if a clean-up removed the transactions to check: a change must not be missed.

    Raises:
        LanceRetryableError: the table or the version no longer exists, or the metastore or the storage is
            unavailable.
        AirflowFailException: a permanent error, such as denied access.
    """
    from airflow_provider_lancens.spark.table import history

    attempt = f"reading the versions of table {str(table)!r} after {since}"
    with _open_dataset(hook, table, attempt) as dataset:
        kept = {reference["version"] for reference in dataset.version_refs()}
        if not kept.issuperset(range(since + 1, version + 1)):
            return True
        return history.data_changed(dataset, since, version)


def index_covers(hook: LanceHook, table: TableId, index: str, rows_of: int, version: int) -> bool:
    """Return whether an index, at a version, covers the rows of an earlier version that are still there.

    Args:
        hook: hook to the table's namespace.
        table: table identifier.
        index: name of the index; there may be none of that name yet.
        rows_of: the version whose rows it must cover. If a clean-up removed it, all rows must be covered.
        version: the version of the index.

    Raises:
        LanceRetryableError: the table or the version no longer exists, or the metastore or the storage is
            unavailable.
        AirflowFailException: a permanent error, such as denied access.
    """
    from airflow_provider_lancens.spark.table.index_coverage import covers

    attempt = f"reading index {index!r} of table {str(table)!r} at version {version}"
    with _open_dataset(hook, table, attempt) as dataset:
        return covers(dataset.checkout_version(version), index, rows_of)


@contextmanager
def _open_dataset(hook: LanceHook, table: TableId, attempt: str) -> Iterator[LanceDataset]:
    """Open the dataset of a table that was polled just now, so that a table that is gone is polled again."""
    import lance
    from lance_namespace import errors

    from airflow_provider_lancens.namespace.lance_errors import (
        LancePanicError,
        panics_as_errors,
        specified_error,
    )
    from airflow_provider_lancens.namespace.storage.referenced_files import check_bases
    from airflow_provider_lancens.namespace.storage.table_links import check_links
    from airflow_provider_lancens.redaction import redact, secret_values, shareable_cause

    attempt = f"{attempt} through connection {hook.lance_conn_id!r}"
    with airflow_errors(attempt):
        try:
            with panics_as_errors():
                reader = hook.get_reader()
                dataset = lance.dataset(namespace_client=reader, table_id=list(table.parts))
                check_links(dataset.uri)
                yield check_bases(dataset, dataset.uri, reader.allowed_locations)
        except (
            errors.NamespaceNotFoundError,
            errors.TableNotFoundError,
            errors.TableVersionNotFoundError,
        ) as error:
            raise LanceRetryableError(f"{attempt}: {redact(str(error))}") from shareable_cause(error)
        except (OSError, ValueError, LancePanicError) as error:
            secrets = secret_values(hook.storage_options())
            specified = specified_error(error, f"the location of table {str(table)!r}", secrets)
            if specified is not None:
                raise specified from None
            # Lance's error for a missing version, tag or dataset.
            raise LanceRetryableError(f"{attempt}: {redact(str(error), secrets)}") from shareable_cause(
                error, secrets
            )
