"""What takes more than a metastore: the data set's transactions and tags. Lance loads when it is asked."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

from airflow_provider_lancens.hooks.arguments import parse_table
from airflow_provider_lancens.hooks.errors import LanceRetryableError, airflow_errors

if TYPE_CHECKING:
    from lance import LanceDataset

    from airflow_provider_lancens.hooks.base import LanceHook

_LONGEST_TAG = 200
_NOT_IN_A_TAG = re.compile(r"[^A-Za-z0-9._-]+")


def tag_name(*parts: str) -> str:
    """A name that Lance takes for a tag, the same for the same parts.

    Args:
        parts: such as a DAG's, a run's and a task's id; what no tag may hold becomes ``-``.
    """
    name = re.sub(r"\.+", ".", ".".join(_NOT_IN_A_TAG.sub("-", part) for part in parts)).strip(".")
    if len(name) <= _LONGEST_TAG:
        return name
    return f"{hashlib.sha256(name.encode()).hexdigest()[:16]}-{name[-100:]}"


def check_tag(tag: str) -> str:
    """A tag's name.

    Raises:
        AirflowFailException: Lance takes no such name.
    """
    dotted = ".." in tag or tag != tag.strip(".")
    if not tag or tag == "None" or dotted or _NOT_IN_A_TAG.search(tag) or len(tag) > _LONGEST_TAG:
        raise AirflowFailException(
            f"tag={tag!r}: no name for a tag; allowed: up to {_LONGEST_TAG} letters, digits, '-', '_' and "
            "single dots inside"
        )
    return tag


def pin(hook: LanceHook, table: str, version: int, tag: str) -> None:
    """Tag a version, so that no clean-up takes it away; a tag of that name moves there.

    Args:
        hook: to the table's namespace.
        table: its identifier.
        version: one that is there.
        tag: its name.

    Raises:
        AirflowFailException: the version isn't there, or the name can't be a tag's.
        LanceRetryableError: the storage or the metastore didn't answer.
    """
    check_tag(tag)
    with _opened(hook, table, f"tagging version {version} of table {table!r} as {tag!r}") as dataset:
        if tag in dataset.tags.list():
            dataset.tags.update(tag, version)
        else:
            dataset.tags.create(tag, version)


def release(hook: LanceHook, table: str, tag: str) -> bool:
    """Take a tag away.

    Returns:
        False where there was none.

    Raises:
        AirflowFailException: the name can't be a tag's, or the table isn't there.
        LanceRetryableError: the storage or the metastore didn't answer.
    """
    check_tag(tag)
    with _opened(hook, table, f"releasing tag {tag!r} of table {table!r}") as dataset:
        if tag not in dataset.tags.list():
            return False
        dataset.tags.delete(tag)
        return True


def data_changed(hook: LanceHook, table: str, since: int) -> bool:
    """Whether a version after this one changed data; compaction, indexing and configuration don't.

    Args:
        hook: to the table's namespace.
        table: its identifier.
        since: the last version that is known; 0 for none.

    Returns:
        True also where a clean-up took away what would tell: a change must not be missed.

    Raises:
        LanceRetryableError: the data set is gone by now, or nobody answered.
        AirflowFailException: the answer won't change: access denied, …
    """
    from airflow_provider_lancens.spark import history

    attempt = f"reading the versions of table {table!r} after {since}"
    with _opened(hook, table, attempt, missing=LanceRetryableError) as dataset:
        kept = {reference["version"] for reference in dataset.version_refs()}
        if not kept.issuperset(range(since + 1, dataset.version + 1)):
            return True
        return history.data_changed(dataset, since)


@contextmanager
def _opened(
    hook: LanceHook, table: str, attempt: str, missing: type[AirflowException] = AirflowFailException
) -> Iterator[LanceDataset]:
    import lance

    attempt = f"{attempt} through connection {hook.lance_conn_id!r}"
    parts = list(parse_table(table).parts)
    with airflow_errors(attempt):
        try:
            yield lance.dataset(namespace_client=hook.get_conn(), table_id=parts)
        except ValueError as error:  # what Lance says of a version, a tag or a data set that isn't there
            raise missing(f"{attempt}: {error}") from error
        except OSError as error:
            raise LanceRetryableError(
                f"{attempt}: the storage did not answer as expected: {error}"
            ) from error
