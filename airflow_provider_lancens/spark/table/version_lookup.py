"""Find the version of a table at a time or with a tag."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId, staged_number
from airflow_provider_lancens.namespace.locations import is_local
from airflow_provider_lancens.namespace.storage.version_tags import OWN_TAGS, is_on_main, list_tags
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace

VersionLike: TypeAlias = int | str | datetime
"""A version as a person chooses it, see `WantedVersion.of`."""

_SECOND, _TICK = timedelta(seconds=1), timedelta(milliseconds=10) - timedelta.resolution
"""Precision of the times that object stores and local file systems, by the kernel's tick, give to files."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def find_version(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    version: VersionLike,
) -> int:
    """Return the number of the version that was the newest at a time, or that a tag names.

    The time of a version is when the storage got its manifest, by the storage's clock: the writers' clocks
    may differ, and then a later commit could become part of the past. It is the same for all clients, and
    can't change, unless the table is copied. Looking it up costs a listing.

    Args:
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.
        version: a time with a time zone, not in the future, so that later calls return the same version. It
            counts in whole seconds on an object store; locally, the last hundredth of a second doesn't count.
            Or the name of a tag, a number, or a time as text in ISO 8601.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        TableTagNotFoundError: (8) it has no such tag.
        TableVersionNotFoundError: (11) nothing was written to it by then, or the versions of that time were
            cleaned up.
        InvalidInputError: (13) it is none of these, or the time has no time zone or is in the future.
    """
    wanted = WantedVersion.of(version)
    if not wanted.is_given:
        raise spec_errors.InvalidInputError(_unknown_version("version", version))
    with resolved_table(namespace, table) as target:
        found = wanted.find(target) or 0
        target.check_version(found)
        return found


@dataclass(frozen=True, slots=True)
class WantedVersion:
    """A version by its number, its time or its tag; the newest one if nothing is given.

    Raises:
        InvalidInputError: (13) more than one is given, or the time has no time zone or is in the future.
    """

    version: int | None = None
    as_of: datetime | None = None
    tag: str | None = None
    is_text: bool = False
    """Whether `version` was given as text, which may be the name of a tag too."""

    @classmethod
    def of(cls, value: VersionLike | None, argument: str = "version") -> Self:
        """Return the version that a value means; None is the newest one.

        Args:
            value: a number; a time with a time zone, which means the version that was the newest then; or
                text, such as a template renders: the digits of a number, a time in ISO 8601, the name of a
                tag, or the name of a staged version.
            argument: what the caller calls it.

        Raises:
            InvalidInputError: (13) it is none of these, or the time has no time zone or is in the future.
        """
        if value is None:
            return cls()
        if isinstance(value, datetime):
            _check_time(argument, value)
            return cls(as_of=value)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return cls(version=value)
        if not isinstance(value, str) or not value.strip():
            raise spec_errors.InvalidInputError(_unknown_version(argument, value))
        return cls._of_text(value.strip(), argument)

    @classmethod
    def _of_text(cls, text: str, argument: str) -> Self:
        if text.isascii() and text.isdecimal():
            return cls(version=int(text), is_text=True)
        if (staged := staged_number(text)) is not None:
            return cls(version=staged)
        if ":" not in text:  # the name of no tag contains one
            return cls(tag=text)
        try:
            time = datetime.fromisoformat(text)
        except ValueError as error:
            raise spec_errors.InvalidInputError(_unknown_version(argument, text)) from error
        _check_time(argument, time)
        return cls(as_of=time)

    def __post_init__(self) -> None:
        given = {name: value for name, value in self._fields().items() if value is not None}
        if len(given) > 1:
            raise spec_errors.InvalidInputError(
                f"version, as_of, tag: expected at most one of them, got {given}"
            )
        if self.as_of is not None:
            _check_time("version", self.as_of)

    @property
    def is_given(self) -> bool:
        """Whether it is anything but the newest version."""
        return any(value is not None for value in self._fields().values())

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self._fields().items() if value is not None)

    def find(self, target: ResolvedTable) -> int | None:
        """Return its number; None for the newest version.

        Raises:
            TableTagNotFoundError: (8) the table has no such tag.
            TableVersionNotFoundError: (11) it has no version of that time.
            InvalidInputError: (13) the version was given as text, and a tag has this name; or the tag names a
                version of a branch.
        """
        if self.as_of is not None:
            return _at_time(target, self.as_of)
        if self.is_text and str(self.version) in _tags(target):
            raise spec_errors.InvalidInputError(
                f"table {target.id}: version={str(self.version)!r} has two readings: version {self.version}, "
                f"given as the number {self.version}; or the tag of that name, whose version is "
                f"{_tagged(target, str(self.version))}"
            )
        return self.version if self.tag is None else _tagged(target, self.tag)

    def _fields(self) -> dict[str, object]:
        return {"version": self.version, "as_of": self.as_of, "tag": self.tag}


def _check_time(argument: str, as_of: datetime) -> None:
    if not isinstance(as_of, datetime) or as_of.tzinfo is None:
        raise spec_errors.InvalidInputError(f"{argument}: expected a time with a time zone, got {as_of!r}")
    if as_of > datetime.now(UTC):
        raise spec_errors.InvalidInputError(
            f"{argument}: expected a time in the past, got {as_of.isoformat()}: later commits "
            "would change what it means"
        )


def _unknown_version(argument: str, value: object) -> str:
    hint = "; for an XCom or a result, open lake.table(...) with it" if isinstance(value, Mapping) else ""
    shown = f"a {type(value).__name__}" if isinstance(value, Mapping) else repr(value)
    return (
        f"{argument}: expected a number, a time with a time zone such as '2026-11-25T00:00:00+00:00', or the "
        f"name of a tag, got {shown}{hint}"
    )


def _tags(target: ResolvedTable) -> Mapping[str, Any]:
    latest = target.open_latest()
    return {} if latest is None else list_tags(latest)


def _tagged(target: ResolvedTable, tag: str) -> int:
    tags = _tags(target)
    if tag not in tags:
        is_date = re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", tag) is not None
        time = f". A time is written with hours and a time zone: '{tag}T00:00:00+00:00'" if is_date else ""
        named = sorted(name for name in tags if not name.startswith(OWN_TAGS))
        raise spec_errors.TableTagNotFoundError(
            f"table {target.id} has no tag {tag!r}; tags: {', '.join(named) or 'none'}. An expired "
            f"bookmark has no tag any more; Table.bookmarks says which expired{time}"
        )
    if not is_on_main(tags[tag]):
        raise spec_errors.InvalidInputError(
            f"table {target.id}: tag {tag!r} names a version of branch {tags[tag]['branch']!r}, and only the "
            "main line of a table is read and restored; pylance's checkout_version opens it"
        )
    return int(tags[tag]["version"])


def _at_time(target: ResolvedTable, as_of: datetime) -> int:
    stored = target.dataset.manifests.all()
    # The listing has the newest version, unless the metastore decides.
    newest = (
        target.latest_version() if target.dataset.version_authority is not None else max(stored, default=None)
    )
    if newest is None:
        raise target.nothing_written()
    # The newest version of a managed table may not have its final name yet: it will have a later time.
    times = [(version, stored[version].modified or _EPOCH) for version in sorted(stored) if version <= newest]
    # A commit that is made from now on isn't before the limit: a local file system gives it the time of the
    # kernel's last tick, an object store the time in whole seconds.
    limit = as_of - (_TICK if is_local(target.dataset.location) else (as_of - _EPOCH) % _SECOND)
    # A copy of a table may have its versions in another order: none after a later one counts.
    found = [version for version, _ in takewhile(lambda known: known[1] < limit, times)]
    if found:
        _check_followed(target, found[-1], [version for version, _ in times], as_of)
        return found[-1]
    first, stored_at = times[0] if times else (newest, datetime.now(UTC))
    raise spec_errors.TableVersionNotFoundError(
        f"table {target.id}: its oldest version, {first}, was committed at {stored_at.isoformat()}, after "
        f"{as_of.isoformat()}; older ones were cleaned up, or there were none"
    )


def _check_followed(target: ResolvedTable, version: int, kept: Iterable[int], as_of: datetime) -> None:
    """Check that a version was the newest until a later time: that the next version is kept, if there is one.

    A clean-up keeps older versions that are tagged, and the time of a version that it has removed is lost.

    Raises:
        TableVersionNotFoundError: (11) the next version was cleaned up.
    """
    following = min((number for number in kept if number > version), default=version + 1)
    if following > version + 1:
        raise spec_errors.TableVersionNotFoundError(
            f"table {target.id}: of its versions around {as_of.isoformat()}, {version} and {following} "
            "are kept, and those between them were cleaned up, one of which may have been the newest then"
        )
