"""Tags that keep the versions of a release set from clean-ups."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.storage.object_store import is_detached
from airflow_provider_lancens.namespace.storage.version_tags import delete_tag, list_tags, set_tag
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace

_PREFIX = "release-set"


@dataclass(frozen=True, slots=True)
class MemberTags:
    """The tags of one version of a release set, in the tables that belong to it."""

    namespace: NamespaceSpec | LanceNamespace
    release_set: str
    number: int
    """The version of the release set."""

    def create(self, members: Mapping[str, int]) -> None:
        """Tag the members' versions.

        Raises:
            TableNotFoundError: (4) a table isn't declared.
            TableVersionNotFoundError: (11) a table has no such version.
            InvalidInputError: (13) a version is staged.
        """
        for table, version in members.items():
            with resolved_table(self.namespace, table) as target:
                _check(target, version)
                # Two who make the same version of a release set don't move each other's tags.
                name = f"{self._beginning}.{self.number}.{_digest(members)}"
                set_tag(target.open(version), name, version)

    def remove_older(self, tables: Mapping[str, int], keep: int) -> None:
        """Remove the tags of older versions of the release set.

        Args:
            tables: the tables to look for them.
            keep: how many versions keep theirs, with this one.
        """
        pattern = re.compile(re.escape(self._beginning) + r"\.(\d+)\.[0-9a-f]+")
        for table in tables:
            with resolved_table(self.namespace, table) as target:
                dataset = target.open_latest()
                for name in [] if dataset is None else list(list_tags(dataset)):
                    found = pattern.fullmatch(name)
                    if found and dataset is not None and int(found[1]) <= self.number - keep:
                        delete_tag(dataset, name)

    @property
    def _beginning(self) -> str:
        return f"{_PREFIX}.{_digest(self.release_set)}"


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
