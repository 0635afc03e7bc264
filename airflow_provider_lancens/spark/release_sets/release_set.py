"""Move a release set to other versions of its tables, by one commit, and look up what it contains."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import InvalidIdentifierError, TableId
from airflow_provider_lancens.spark.keys import KeyedCommit, KeyLookup, look_up
from airflow_provider_lancens.spark.options import WriteRequest, is_whole_number
from airflow_provider_lancens.spark.read.table_reader import open_version
from airflow_provider_lancens.spark.release_sets.member_rows import MemberRows, read_members
from airflow_provider_lancens.spark.release_sets.release_tags import ReleaseTags
from airflow_provider_lancens.spark.results import WriteResult
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table
from airflow_provider_lancens.spark.write.pipeline import write_rows

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace

_log = logging.getLogger(__name__)

DEFAULT_KEEP = 2


def move_release_set(
    namespace: NamespaceSpec | LanceNamespace,
    release_set: TableId | str,
    tables: Mapping[str, int],
    *,
    expected_version: int | None = None,
    allow_older: bool = False,
    keep: int = DEFAULT_KEEP,
    idempotency_key: str | None = None,
    execution_id: str | None = None,
) -> WriteResult:
    """Make versions of several tables those of a release set, in one commit.

    A release set is a declared table with a row for each of its tables, and each of its versions is one
    release: a reader sees all of the versions or none. They are tagged, and so is the version of the set, so
    that clean-ups keep them.

    Args:
        namespace: the namespace of all these tables, or a `NamespaceSpec` to connect from.
        release_set: the identifier of the set's table, such as ``db$daily``.
        tables: the version of each table, by identifier. Tables that are missing no longer belong to the set.
        expected_version: the version that the release set must have; 0 if it must be new. None allows any.
        allow_older: whether a table may go back to an older version than that of the last release.
        keep: how many releases keep their versions from clean-ups, at least one.
        idempotency_key: the same for all tries of one release; None makes each call a new one.
        execution_id: the same for all tries of one execution; `skipped` tells others of the same key from it.

    Returns:
        The commit: its `version` is that of the release set.

    Raises:
        TableNotFoundError: (4) a table isn't declared.
        TableVersionNotFoundError: (11) a table has no such version.
        InvalidInputError: (13) there are no tables, a version is staged or older than that of the last
            release, or other versions were released under the key.
        ConcurrentModificationError: (14) the release set isn't at `expected_version`, or it was moved
            meanwhile.
        InvalidTableStateError: (19) the table isn't a release set.
    """
    members = _parsed(tables, keep)
    fingerprint = json.dumps(members, sort_keys=True)
    request = WriteRequest(
        "overwrite", idempotency_key=idempotency_key, fingerprint=fingerprint, execution_id=execution_id
    )
    with resolved_table(namespace, release_set) as target:
        lookup = look_up(target, request)
        if lookup.earlier is not None:
            return _earlier_release(lookup, lookup.earlier)
        before = _checked(lookup, members, expected_version, allow_older=allow_older)
        tags = ReleaseTags(namespace, target)
        if lookup.latest is not None:
            tags.repair(lookup.latest, before)
        # Before the release, so that no clean-up comes in between.
        tags.tag_members(lookup.version + 1, members)
        result = write_rows(MemberRows(members), lookup)
        released = target.open(result.version)
        tags.tag_release(released)
        tags.remove_older(released, keep)
    _log.info("release set %s: version %d has %s", result.table, result.version, members)
    return result


def find_release_set(
    namespace: NamespaceSpec | LanceNamespace, release_set: TableId | str, version: int | None = None
) -> tuple[int, dict[str, int]]:
    """Return a version of a release set, and the versions of its tables.

    Args:
        namespace: its namespace, or a `NamespaceSpec` to connect from.
        release_set: the identifier of its table.
        version: the version of the release set; None is the newest.

    Raises:
        TableNotFoundError: (4) it isn't declared.
        TableVersionNotFoundError: (11) it has no such version, or none at all yet.
        InvalidTableStateError: (19) the table isn't a release set.
    """
    with resolved_table(namespace, release_set) as target:
        dataset = open_version(target, version)
        return dataset.version, read_members(dataset, target.id)


def _earlier_release(lookup: KeyLookup, earlier: KeyedCommit) -> WriteResult:
    result = lookup.found_result(earlier)
    what = f"release set {result.table}: version {result.version} was released before"
    if result.skipped:
        _log.warning(
            "%s under idempotency key %r, so nothing was released; it is at version %d now",
            what,
            lookup.write.key,
            lookup.version,
        )
    else:
        _log.info("%s, by an earlier try", what)
    return result


def _parsed(tables: Mapping[str, int], keep: int) -> dict[str, int]:
    if not is_whole_number(keep, at_least=1):
        raise spec_errors.InvalidInputError(f"keep: expected a whole number of at least 1, got {keep!r}")
    if not tables:
        raise spec_errors.InvalidInputError("tables: expected at least one table with its version, got none")
    members: dict[str, int] = {}
    for name, version in tables.items():
        table = _parsed_table(name)
        if not is_whole_number(version, at_least=1):
            raise spec_errors.InvalidInputError(
                f"tables[{name!r}]: expected a version, a whole number of at least 1, got {version!r}"
            )
        if table in members:
            raise spec_errors.InvalidInputError(
                f"tables: {table} is listed twice; expected one version of it"
            )
        members[table] = version
    return members


def _parsed_table(name: str) -> str:
    try:
        return str(TableId.parse(name))
    except InvalidIdentifierError as error:
        raise spec_errors.InvalidInputError(
            f"tables: expected identifiers such as 'db$table'; {error}"
        ) from error


def _checked(
    lookup: KeyLookup, members: Mapping[str, int], expected: int | None, *, allow_older: bool
) -> dict[str, int]:
    """Return the members of the last release."""
    target = lookup.target
    if expected is not None and lookup.version != expected:
        raise spec_errors.ConcurrentModificationError(
            f"release set {target.id}: is at version {lookup.version}, but expected_version={expected}; "
            "nothing was released"
        )
    if lookup.latest is None:
        return {}
    before = read_members(lookup.latest, target.id)
    older = sorted(table for table, version in members.items() if version < before.get(table, 0))
    if older and not allow_older:
        raise _is_older(target, lookup.version, older[0], before[older[0]], members[older[0]])
    return before


def _is_older(
    target: ResolvedTable, release: int, table: str, before: int, now: int
) -> spec_errors.InvalidInputError:
    return spec_errors.InvalidInputError(
        f"tables: version {now} of table {table} is older than {before}, which release {release} of "
        f"{target.id} has; nothing was released. Pass allow_older=True to go back"
    )
