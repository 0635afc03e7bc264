"""Files of a table that are kept because its registered shallow clones refer to them."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from airflow_provider_lancens.formatting import format_count
from airflow_provider_lancens.namespace.storage.clones import Clone
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

_log = logging.getLogger(__name__)

_FOLDERS = frozenset({"data", "_deletions", "_indices"})
"""Where the files of a source are that a clone refers to: it has manifests and transactions of its own."""


@dataclass(slots=True)
class ClonedFiles:
    """What the clones of a table need of the files that are about to be removed.

    The clones are looked up once, when the first such files are known: after the tags were read that keep
    versions. So the files of a version that was tagged until its clone was registered are kept by either.
    """

    target: ResolvedTable
    kept: set[str] = field(default_factory=set)
    """The paths of all files that were asked for and are needed."""
    clones: set[str] = field(default_factory=set)
    """The identifiers of the clones that need them."""
    _found: tuple[Clone, ...] | None = None

    def among(self, paths: Iterable[str]) -> set[str]:
        """Return which of these files a clone needs. No request if a clone can't refer to any.

        Args:
            paths: relative to the table's location.

        Raises:
            ServiceUnavailableError: (17) the metastore or the storage doesn't answer.
        """
        asked = [path for path in paths if path.partition("/")[0] in _FOLDERS]
        needed: set[str] = set()
        for clone in self.registered() if asked else ():
            if its := {path for path in asked if clone.needs(path)}:
                self.clones.add(clone.table)
                needed |= its
        self.kept |= needed
        return needed

    def registered(self) -> tuple[Clone, ...]:
        """Return the clones of the table, also if they need none of the files.

        Raises:
            ServiceUnavailableError: (17) the metastore or the storage doesn't answer.
        """
        if self._found is None:
            clones = self.target.clones()
            self._found = clones.found
            for reason in clones.unknown:
                _log.warning(
                    "table %s: a shallow clone may refer to files that are removed: %s",
                    self.target.id,
                    reason,
                )
        return self._found

    def log(self) -> None:
        """Warn of the files that were kept, if any."""
        if self.kept:
            _log.warning(
                "table %s: kept %s that shallow clones refer to: %s; to free them, drop a clone, or "
                "overwrite it with its own rows",
                self.target.id,
                format_count(len(self.kept), "file"),
                ", ".join(sorted(self.clones)),
            )
