"""Release sets: versions of several tables that belong together, stored as the rows of a separate table.

Each release is one commit of that table. Tags of the members keep the newest releases from clean-ups.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import InvalidIdentifierError, TableId
from airflow_provider_lancens.namespace.lance_errors import LANCE_ERRORS
from airflow_provider_lancens.namespace.storage.object_store import is_detached
from airflow_provider_lancens.namespace.storage.version_tags import delete_tag, list_tags, set_tag
from airflow_provider_lancens.spark.keys import KeyedCommit, KeyLookup
from airflow_provider_lancens.spark.observed import observed
from airflow_provider_lancens.spark.options import (
    Overwrite,
    WriteIdentity,
    WriteRequest,
    check_flag,
    is_list,
    is_whole_number,
)
from airflow_provider_lancens.spark.results import ReleaseResult, WriteResult
from airflow_provider_lancens.spark.table.opened_version import open_version
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table
from airflow_provider_lancens.spark.write.write_context import WriteContext
from airflow_provider_lancens.spark.write.write_rows import write_rows

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace import LanceNamespace
    from lance_namespace_urllib3_client.models import TableVersion

    from airflow_provider_lancens.spark.lance_catalog import LanceCatalog, TableRef
    from airflow_provider_lancens.spark.lance_table import Table
    from airflow_provider_lancens.spark.write.row_sources import Written
    from airflow_provider_lancens.spark.write.write_task import WriteTask

_log = logging.getLogger(__name__)


_MOST = 100_000
"""Tables of a release set."""
SCHEMA = pa.schema([("table", pa.string()), ("version", pa.int64()), ("location", pa.string())])
_FORMER_COLUMNS = ["table", "version"]
"""The columns of releases that were made before they had locations."""


@dataclass(frozen=True, slots=True)
class Member:
    """A table of a release."""

    version: int
    """Its version."""
    location: str | None = None
    """Where the table was that has the version; None if that isn't known."""


@dataclass(frozen=True, slots=True)
class MemberRows:
    """Members of a release set, which are few: they are written in this process."""

    members: Mapping[str, Member]
    """The members by the tables' identifiers."""
    time_zone_known: ClassVar[bool] = True
    match_case: ClassVar[bool] = True

    def schema(
        self,
        storage: Mapping[str, str],  # noqa: ARG002 nothing is read
        vectors: Mapping[str, int] | None = None,  # noqa: ARG002 it has none
        table: pa.Schema | None = None,  # noqa: ARG002 its columns are fixed
    ) -> pa.Schema:
        """See `Columns.schema`."""
        return SCHEMA

    def write(self, task: WriteTask) -> Written:
        """See `Rows.write`."""
        rows = [{"table": table, **asdict(member)} for table, member in sorted(self.members.items())]
        batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
        return [row for written in task.run(iter([batch])) for row in written.to_pylist()]


def read_members(dataset: LanceDataset, release_set: object) -> dict[str, Member]:
    """Return the members of an opened version of a release set.

    Raises:
        InvalidTableStateError: (19) the table isn't a release set.
    """
    if dataset.schema.names not in (SCHEMA.names, _FORMER_COLUMNS):
        raise spec_errors.InvalidTableStateError(
            f"table {release_set} isn't a release set: expected the columns {SCHEMA.names}, got "
            f"{dataset.schema.names}; declare a table of its own for a release set"
        )
    if (count := dataset.count_rows()) > _MOST:
        raise spec_errors.InvalidTableStateError(
            f"table {release_set} isn't a release set: expected at most {_MOST} rows, got {count}"
        )
    rows = dataset.to_table().to_pylist()
    if not all(map(_is_member, rows)):
        raise spec_errors.InvalidTableStateError(
            f"table {release_set} isn't a release set: another client wrote a row whose table or location "
            "isn't text, or whose version isn't a number"
        )
    return {row["table"]: Member(row["version"], row.get("location")) for row in rows}


def _is_member(row: Mapping[str, object]) -> bool:
    has_place = isinstance(row.get("location"), str | None)
    return type(row["table"]) is str and type(row["version"]) is int and has_place


def _versions(members: Mapping[str, Member]) -> dict[str, int]:
    return {table: member.version for table, member in members.items()}


_PREFIX = "release-set"


@dataclass(frozen=True, slots=True)
class ReleaseTags:
    """The tags of the releases of one release set."""

    namespace: NamespaceSpec | LanceNamespace
    target: ResolvedTable
    """The release set."""

    def tag_members(self, number: int, members: Mapping[str, Member]) -> dict[str, Member]:
        """Tag the versions of a release that is about to be made; all are checked before any is tagged.

        Args:
            number: the release's number, above the number of each earlier release.
            members: the members by table.

        Returns:
            The members with the locations of the tables that were tagged.

        Raises:
            TableNotFoundError: (4) a table isn't declared.
            TableVersionNotFoundError: (11) a table has no such version.
            InvalidInputError: (13) a version is staged.
            InvalidTableStateError: (19) another table was declared under the name of a member.
        """
        with ExitStack() as opened:
            targets = {
                table: opened.enter_context(resolved_table(self.namespace, table)) for table in members
            }
            known = {table: _checked_version(targets[table], member) for table, member in members.items()}
            for table, version in _versions(members).items():
                # By the digest, two releases that race for one number don't move each other's tags.
                tag = f"{self._beginning}.{number}.{_digest(_versions(members))}"
                opened_member = targets[table].open(version, known[table])
                set_tag(opened_member, targets[table].dataset.manifests, tag, version)
            return {
                table: Member(member.version, str(targets[table].dataset.location))
                for table, member in members.items()
            }

    def tag_release(self, released: LanceDataset) -> None:
        """Tag a version of the release set."""
        tag = f"{self._beginning}.{released.version}"
        set_tag(released, self.target.dataset.manifests, tag, released.version)

    def repair(self, latest: LanceDataset, members: Mapping[str, Member]) -> None:
        """Tag the last release, which has these members, unless it is tagged.

        It isn't if the process that made it was interrupted, or if the set was restored to an older release,
        whose tags are about to be removed. Other commits, such as a compaction, don't change the members.
        """
        tagged = self._releases(latest)
        if tagged and self._members(tagged[max(tagged)]) == members:
            return
        for table, member in members.items():
            try:
                self.tag_members(latest.version, {table: member})
            except spec_errors.LanceNamespaceError as error:
                _log.warning("release set %s: %s", self.target.id, error)
        self.tag_release(latest)

    def remove_older(self, latest: LanceDataset, keep_releases: int) -> None:
        """Remove the tags of all releases but the last ones; what fails is logged, and tried again next time.

        Args:
            latest: the newest version of the release set.
            keep_releases: how many releases keep their tags.
        """
        releases = self._releases(latest)
        for number in sorted(releases)[:-keep_releases]:
            removed = [self._remove_of_member(number, table) for table in self._members(releases[number])]
            if all(removed):
                # Last, so that an interrupted removal is repeated.
                delete_tag(latest, f"{self._beginning}.{number}")

    def _remove_of_member(self, limit: int, table: str) -> bool:
        try:
            with resolved_table(self.namespace, table) as target:
                dataset = target.open_latest()
                tags = {} if dataset is None else list_tags(dataset)
                for number, tag in _numbered(tags, rf"{self._beginning}\.(\d+)\.[0-9a-f]+"):
                    if number <= limit and dataset is not None:
                        delete_tag(dataset, tag)
        except spec_errors.TableNotFoundError:
            return True  # it was dropped, with its tags
        except (spec_errors.LanceNamespaceError, *LANCE_ERRORS) as error:
            _log.warning("release set %s: tags of table %s weren't removed: %s", self.target.id, table, error)
            return False
        return True

    def _releases(self, latest: LanceDataset) -> dict[int, int]:
        """Return the version of the release set of each tagged release, by the release's number."""
        tags = list_tags(latest)
        numbered = _numbered(tags, rf"{self._beginning}\.(\d+)")
        return {number: int(tags[tag]["version"]) for number, tag in numbered}

    def _members(self, version: int) -> dict[str, Member]:
        return read_members(self.target.open(version), self.target.id)

    @property
    def _beginning(self) -> str:
        # The location too: another connection may have a set of the same name, with the same tables.
        return f"{_PREFIX}.{_digest((str(self.target.id), self.target.dataset.location))}"


def _numbered(tags: Iterable[str], pattern: str) -> Iterator[tuple[int, str]]:
    for name in tags:
        if found := re.fullmatch(pattern, name):
            yield int(found[1]), name


def _digest(of: object) -> str:
    text = repr(sorted(of.items()) if isinstance(of, Mapping) else of)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _checked_version(target: ResolvedTable, member: Member) -> TableVersion | None:
    version = member.version
    target.check_location(member.location, version)
    if is_detached(version):
        raise spec_errors.InvalidInputError(
            f"tables: version {version} of table {target.id} is staged; publish it before it is released"
        )
    try:
        return target.check_version(version)
    except spec_errors.TableVersionNotFoundError as error:
        raise spec_errors.TableVersionNotFoundError(f"tables: {error}") from error


DEFAULT_KEEP = 2


@observed("release")
def move_release_set(
    namespace: NamespaceSpec | LanceNamespace,
    release_set: TableId | str,
    tables: Mapping[str, int | Member],
    *,
    expected_version: int | None = None,
    allow_older: bool = False,
    keep_releases: int = DEFAULT_KEEP,
    key: str | None = None,
    execution_id: str | None = None,
) -> ReleaseResult:
    """Release versions of several tables together, in one commit to a release set.

    A release set is a declared table with a row for each of its tables, and each of its versions is one
    release: a reader sees all of the versions or none. They are tagged, and so is the version of the set, so
    that clean-ups keep them.

    Args:
        namespace: the namespace of all these tables, or a `NamespaceSpec` to connect from.
        release_set: the identifier of the set's table, such as ``db$daily``.
        tables: the version of each table, by identifier, or also its location. Tables that are missing no
            longer belong to the set.
        expected_version: the version that the release set must have; 0 if it must be new. None allows any.
        allow_older: whether a table may go back to an older version than in the last release.
        keep_releases: how many releases keep their versions from clean-ups, at least one.
        key: the same for all tries of one release; None makes each call a new one.
        execution_id: the same for all tries of one execution; for others of the same key, the outcome is
            ``skipped``.

    Returns:
        The commit: its `version` is the release set's version.

    Raises:
        TableNotFoundError: (4) a table isn't declared.
        TableVersionNotFoundError: (11) a table has no such version.
        InvalidInputError: (13) there are no tables, a version is staged or older than in the last
            release, or other versions were released under the key.
        ConcurrentModificationError: (14) the release set isn't at `expected_version`, or it was moved
            meanwhile; a PassedVersionError if it is past `expected_version`, which no later try changes.
        InvalidTableStateError: (19) the table isn't a release set, or another table was declared under the
            name of one of `tables`.
    """
    members = _parsed(tables, keep_releases)
    check_flag("allow_older", allow_older)
    if expected_version is not None and not is_whole_number(expected_version, at_least=0):
        raise spec_errors.InvalidInputError(
            f"expected_version: expected a whole number of at least 0, or None, got {expected_version!r}"
        )
    fingerprint = json.dumps(_versions(members), sort_keys=True)
    identity = WriteIdentity(key, fingerprint, "skip", execution_id)
    with resolved_table(namespace, release_set) as target:
        with _never_repeated(target, key):
            # The columns too: those of a former release had no location.
            context = WriteContext.begin(target, WriteRequest(Overwrite(schema_mode="overwrite"), identity))
            lookup = context.lookup
            if lookup.earlier is not None:
                # An upstream task may have been cleared since an earlier try of this execution.
                lookup.check_same_data(lookup.earlier)
                return _result(_earlier_release(lookup, lookup.earlier), members)
        before = _checked(namespace, lookup, members, expected_version, allow_older=allow_older)
        tags = ReleaseTags(namespace, target)
        if lookup.latest is not None:
            tags.repair(lookup.latest, before)
        # The tags are set before the release, so that no clean-up comes in between.
        members = tags.tag_members(lookup.version + 1, members)
        result = write_rows(MemberRows(members), context)
        released = target.open(result.version or 0)
        tags.tag_release(released)
        tags.remove_older(released, keep_releases)
    _log.info("release set %s: version %d has %s", result.table, result.version, _versions(members))
    return _result(result, members)


def find_release_set(
    namespace: NamespaceSpec | LanceNamespace,
    release_set: TableId | str,
    version: int | None = None,
    *,
    location: str | None = None,
) -> tuple[int, dict[str, Member]]:
    """Return a version of a release set, and its members by the tables' identifiers.

    Args:
        namespace: its namespace, or a `NamespaceSpec` to connect from.
        release_set: the identifier of its table.
        version: the version of the release set; None is the newest.
        location: where the release set was that has the version; None if that isn't known.

    Raises:
        TableNotFoundError: (4) it isn't declared.
        TableVersionNotFoundError: (11) it has no such version, or none at all yet.
        InvalidTableStateError: (19) the table isn't a release set, or is at another location.
    """
    with resolved_table(namespace, release_set) as target:
        target.check_location(location, version)
        dataset = open_version(target, version)
        return dataset.version, read_members(dataset, target.id)


@contextmanager
def _never_repeated(target: ResolvedTable, key: str | None) -> Iterator[None]:
    """Refuse other versions under the key of a release in its own words: no argument makes it again."""
    from airflow_provider_lancens.namespace.error_types import DifferentDataError

    try:
        yield
    except DifferentDataError as error:
        raise spec_errors.InvalidInputError(
            f"release set {target.id}: other versions of the tables were released under idempotency key "
            f"{key!r}; nothing was released, since a release is never made again. Release these versions "
            "under another key, such as by another run"
        ) from error


def _result(written: WriteResult, members: Mapping[str, Member]) -> ReleaseResult:
    """Return the result of a release by the result of the write to the release set."""
    return ReleaseResult(
        table=written.table,
        location=written.location,
        operation="release",
        outcome=written.outcome,
        version=written.version,
        previous_version=written.previous_version,
        newest_version=written.newest_version,
        key=written.key,
        tables=_versions(members),
        seconds=written.seconds,
    )


def _earlier_release(lookup: KeyLookup, earlier: KeyedCommit) -> WriteResult:
    result = lookup.found_result(earlier)
    what = f"release set {result.table}: version {result.version} was released before"
    if result.outcome == "skipped":
        _log.warning(
            "%s under idempotency key %r, so nothing was released; it is at version %d now",
            what,
            lookup.write.key,
            lookup.version,
        )
    else:
        _log.info("%s, by an earlier try", what)
    return result


def _parsed(tables: Mapping[str, int | Member], keep_releases: int) -> dict[str, Member]:
    if not is_whole_number(keep_releases, at_least=1):
        raise spec_errors.InvalidInputError(
            f"keep_releases: expected a whole number of at least 1, got {keep_releases!r}"
        )
    if not tables:
        raise spec_errors.InvalidInputError("tables: expected at least one table with its version, got none")
    members: dict[str, Member] = {}
    for name, given in tables.items():
        table, member = _parsed_table(name), given if isinstance(given, Member) else Member(given)
        if not is_whole_number(member.version, at_least=1):
            raise spec_errors.InvalidInputError(
                f"tables[{name!r}]: expected a version, a whole number of at least 1, got {member.version!r}"
            )
        if table in members:
            raise spec_errors.InvalidInputError(
                f"tables: {table} is listed twice; expected one version of it"
            )
        members[table] = member
    return members


def _parsed_table(name: str) -> str:
    try:
        return str(TableId.of_result(name))
    except InvalidIdentifierError as error:
        raise spec_errors.InvalidInputError(
            f"tables: expected identifiers such as 'db$table'; {error}"
        ) from error


def _checked(
    namespace: NamespaceSpec | LanceNamespace,
    lookup: KeyLookup,
    members: Mapping[str, Member],
    expected: int | None,
    *,
    allow_older: bool,
) -> dict[str, Member]:
    """Return the members of the last release."""
    target = lookup.target
    if expected is not None and lookup.version != expected:
        raise _is_elsewhere(target, lookup.version, expected)
    if lookup.latest is None:
        return {}
    before = read_members(lookup.latest, target.id)
    for table, member in sorted(members.items()):
        released = before.get(table, Member(0))
        if allow_older or member.version >= released.version:
            continue
        if not _is_of_another_table(namespace, table, released):
            raise _is_older(target, lookup.version, table, released.version, member.version)
    return before


def _is_of_another_table(namespace: NamespaceSpec | LanceNamespace, table: str, released: Member) -> bool:
    """Return whether another table was declared under the name of a member since it was released."""
    with resolved_table(namespace, table) as target:
        return released.location not in (None, target.dataset.location)


def _is_elsewhere(
    target: ResolvedTable, version: int, expected: int
) -> spec_errors.ConcurrentModificationError:
    from airflow_provider_lancens.namespace.error_types import PassedVersionError

    kind = PassedVersionError if version > expected else spec_errors.ConcurrentModificationError
    return kind(
        f"release set {target.id}: is at version {version}, but expected_version={expected}; nothing was "
        "released"
    )


def _is_older(
    target: ResolvedTable, release: int, table: str, before: int, now: int
) -> spec_errors.InvalidInputError:
    return spec_errors.InvalidInputError(
        f"tables: version {now} of table {table} is older than {before}, which release {release} of "
        f"{target.id} has; nothing was released. Pass allow_older=True to go back"
    )


def result_of(table: Table) -> dict[str, Any]:
    """Return a table of a release as an XCom, with its location if the release has it."""
    place = {} if table._location is None else {"location": table._location}
    return {"table": table.name, "version": table.version, **place}


class ReleaseSet:
    """Versions of several tables of a catalog that belong together; made by `LanceCatalog.release_set`."""

    def __init__(
        self, lake: LanceCatalog, table: TableId, at: int | None = None, location: str | None = None
    ) -> None:
        self._lake = lake
        self.table = table
        self._at = at
        """The version that `tables` returns by default; None is the newest."""
        self._location = location
        """Where the release set was that has the version `_at`; None if that isn't known."""

    @property
    def name(self) -> str:
        """The identifier of its table, as it is printed."""
        return str(self.table)

    def __repr__(self) -> str:
        return f"ReleaseSet({self.name!r})"

    def release(
        self,
        tables: Mapping[str, int] | Sequence[TableRef],
        *,
        expected_version: int | None = None,
        allow_older: bool = False,
        keep_releases: int = DEFAULT_KEEP,
        key: str | WriteIdentity | None = None,
    ) -> ReleaseResult:
        """Release versions of tables together; see `move_release_set`.

        Args:
            tables: the version of each table, by identifier; or a list of results or XComs that have a
                version.
            expected_version: the version that the release set must have; 0 if it must be new. None allows
                any.
            allow_older: whether a table may go back to an older version than in the last release.
            keep_releases: how many releases keep their versions from clean-ups.
            key: identifies this release; None makes each call a new one.

        Raises:
            LanceNamespaceError: as `move_release_set`.
        """
        with self._lake.attempt(f"releasing {self.name!r}"):
            if self._at is not None:
                raise spec_errors.InvalidInputError(
                    f"release set {self.name} is opened at version {self._at}, and read-only; release with "
                    f"lake.release_set({self.name!r})"
                )
            identity = WriteIdentity.of(key)
            return move_release_set(
                self._lake.source,
                self.table,
                self._members(tables),
                expected_version=expected_version,
                allow_older=allow_older,
                keep_releases=keep_releases,
                key=identity.key,
                execution_id=identity.execution_id,
            )

    def tables(self, version: int | None = None) -> dict[str, Table]:
        """Return the tables of a release, each opened at its version, by identifier.

        Args:
            version: the version of the release set; None is the version of the result that it was opened
                with, or the newest.

        Raises:
            TableNotFoundError: (4) it isn't declared.
            TableVersionNotFoundError: (11) it has no such version, or none at all yet.
            InvalidTableStateError: (19) the table isn't a release set, or another one than that of the
                result has its name.
        """
        with self._lake.attempt(f"reading release set {self.name!r}"):
            _, members = find_release_set(
                self._lake.source,
                self.table,
                self._at if version is None else version,
                location=self._location,
            )
        return {name: self._lake.table({"table": name, **asdict(member)}) for name, member in members.items()}

    def _members(self, tables: Mapping[str, int] | Sequence[TableRef]) -> dict[str, int | Member]:
        if isinstance(tables, Mapping):
            return dict(tables)
        if not is_list(tables):
            raise spec_errors.InvalidInputError(
                f"tables: expected a mapping of tables to versions, or a list of results, got {tables!r}"
            )
        members: dict[str, int | Member] = {}
        for number, ref in enumerate(tables):
            table = self._lake.table(ref)
            if table._at is None:
                raise spec_errors.InvalidInputError(
                    f"tables[{number}]: expected a result or an XCom with a version, got {ref!r}"
                )
            if table.name in members:
                raise spec_errors.InvalidInputError(
                    f"tables: {table.name} is listed twice; expected one version of it"
                )
            members[table.name] = Member(table._at, table._location)
        return members
