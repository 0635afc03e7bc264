"""Tags that keep the last releases of a release set from clean-ups.

The versions of its tables are tagged before they are released, and the version of the release set itself
afterwards. The latter tags are the index of the releases: a table that left the set is found by them, also
if many releases ago.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.lance_errors import LANCE_ERRORS
from airflow_provider_lancens.namespace.storage.object_store import is_detached
from airflow_provider_lancens.namespace.storage.version_tags import delete_tag, list_tags, set_tag
from airflow_provider_lancens.spark.release_sets.member_rows import read_members
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace import LanceNamespace

_log = logging.getLogger(__name__)

_PREFIX = "release-set"


@dataclass(frozen=True, slots=True)
class ReleaseTags:
    """The tags of the releases of one release set."""

    namespace: NamespaceSpec | LanceNamespace
    target: ResolvedTable
    """The release set."""

    def tag_members(self, number: int, members: Mapping[str, int]) -> None:
        """Tag the versions of a release that is about to be made; all are checked before any is tagged.

        Args:
            number: the release's, above that of each earlier one.
            members: the versions by table.

        Raises:
            TableNotFoundError: (4) a table isn't declared.
            TableVersionNotFoundError: (11) a table has no such version.
            InvalidInputError: (13) a version is staged.
        """
        with ExitStack() as opened:
            targets = {one: opened.enter_context(resolved_table(self.namespace, one)) for one in members}
            for table, version in members.items():
                _check(targets[table], version)
            for table, version in members.items():
                # Two who make the same version of a release set don't move each other's tags.
                tag = f"{self._beginning}.{number}.{_digest(members)}"
                set_tag(targets[table].open(version), targets[table].dataset.manifests, tag, version)

    def tag_release(self, released: LanceDataset) -> None:
        """Tag a version of the release set."""
        tag = f"{self._beginning}.{released.version}"
        set_tag(released, self.target.dataset.manifests, tag, released.version)

    def repair(self, latest: LanceDataset, members: Mapping[str, int]) -> None:
        """Tag the last release, which has these members, unless it is tagged.

        It isn't if whoever made it was interrupted, or if the release set was restored to an older release,
        whose tags are about to be removed. Other commits, such as a compaction, don't change the members.
        """
        tagged = self._releases(latest)
        if tagged and self._members(tagged[max(tagged)]) == members:
            return
        for table, version in members.items():
            try:
                self.tag_members(latest.version, {table: version})
            except spec_errors.LanceNamespaceError as error:
                _log.warning("release set %s: %s", self.target.id, error)
        self.tag_release(latest)

    def remove_older(self, latest: LanceDataset, keep: int) -> None:
        """Remove the tags of all releases but the last ones; what fails is logged, and tried again next time.

        Args:
            latest: the newest version of the release set.
            keep: how many releases keep their tags.
        """
        releases = self._releases(latest)
        for number in sorted(releases)[:-keep]:
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

    def _members(self, version: int) -> dict[str, int]:
        return read_members(self.target.open(version), self.target.id)

    @property
    def _beginning(self) -> str:
        # With the location, since another connection may have a set of the same name, and the same tables.
        return f"{_PREFIX}.{_digest((str(self.target.id), self.target.dataset.location))}"


def _numbered(tags: Iterable[str], pattern: str) -> Iterator[tuple[int, str]]:
    for name in tags:
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
