"""Tags that keep the last releases of a release set from clean-ups.

The versions of its tables are tagged before they are released, and the version of the release set itself
afterwards. The latter tags are the index of the releases: a table that left the set is found by them, also
if many releases ago.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.storage.object_store import is_detached
from airflow_provider_lancens.namespace.storage.version_tags import delete_tag, list_tags, set_tag
from airflow_provider_lancens.spark.release_sets.member_rows import read_members
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace import LanceNamespace

_PREFIX = "release-set"


@dataclass(frozen=True, slots=True)
class ReleaseTags:
    """The tags of the releases of one release set."""

    namespace: NamespaceSpec | LanceNamespace
    target: ResolvedTable
    """The release set."""

    def tag_members(self, number: int, members: Mapping[str, int]) -> None:
        """Tag the versions of a release that is about to be made.

        Args:
            number: the release's, above that of each earlier one.
            members: the versions by table.

        Raises:
            TableNotFoundError: (4) a table isn't declared.
            TableVersionNotFoundError: (11) a table has no such version.
            InvalidInputError: (13) a version is staged.
        """
        for table, version in members.items():
            with resolved_table(self.namespace, table) as target:
                _check(target, version)
                # Two who make the same version of a release set don't move each other's tags.
                set_tag(target.open(version), f"{self._beginning}.{number}.{_digest(members)}", version)

    def tag_release(self, released: LanceDataset) -> None:
        """Tag a version of the release set."""
        set_tag(released, f"{self._beginning}.{released.version}", released.version)

    def repair(self, latest: LanceDataset) -> None:
        """Tag the last release, if whoever made it was interrupted before that."""
        tagged = self._releases(latest)
        if not tagged or self._members(tagged[max(tagged)]) != self._members(latest.version):
            self.tag_release(latest)

    def remove_older(self, latest: LanceDataset, keep: int) -> None:
        """Remove the tags of all releases but the last ones.

        Args:
            latest: the newest version of the release set.
            keep: how many releases keep their tags.
        """
        releases = self._releases(latest)
        for number in sorted(releases)[:-keep]:
            self._remove_of_members(number, self._members(releases[number]))
            delete_tag(
                latest, f"{self._beginning}.{number}"
            )  # last, so that an interrupted removal is repeated

    def _remove_of_members(self, limit: int, tables: Iterable[str]) -> None:
        for table in tables:
            try:
                with resolved_table(self.namespace, table) as target:
                    dataset = target.open_latest()
                    for number, tag in _numbered(dataset, rf"{self._beginning}\.(\d+)\.[0-9a-f]+"):
                        if number <= limit and dataset is not None:
                            delete_tag(dataset, tag)
            except spec_errors.TableNotFoundError:
                continue  # it was dropped, with its tags

    def _releases(self, latest: LanceDataset) -> dict[int, int]:
        """Return the version of the release set of each tagged release, by the release's number."""
        tags = list_tags(latest)
        numbered = _numbered(latest, rf"{self._beginning}\.(\d+)")
        return {number: int(tags[tag]["version"]) for number, tag in numbered if tag in tags}

    def _members(self, version: int) -> dict[str, int]:
        return read_members(self.target.open(version), self.target.id)

    @property
    def _beginning(self) -> str:
        return f"{_PREFIX}.{_digest(str(self.target.id))}"


def _numbered(dataset: LanceDataset | None, pattern: str) -> Iterator[tuple[int, str]]:
    for name in [] if dataset is None else list(list_tags(dataset)):
        if found := re.fullmatch(pattern, name):
            yield int(found[1]), name


def _digest(of: object) -> str:
    text = repr(sorted(of.items()) if isinstance(of, Mapping) else of)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _check(target: ResolvedTable, version: int) -> None:
    if is_detached(version):
        raise spec_errors.InvalidInputError(
            f"tables: version {version} of table {target.id} is staged; publish it before it is released"
        )
    try:
        target.check_version(version)
    except spec_errors.TableVersionNotFoundError as error:
        raise spec_errors.TableVersionNotFoundError(f"tables: {error}") from error
