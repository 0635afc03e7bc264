"""Shallow clones of a dataset: which files of it their newest versions refer to.

Lance records a shallow clone in the clone alone, by the location of its source and the files there. It never
reads the source's manifests again, so a clone needs files of the source, and no version of it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.locations import Location
from airflow_provider_lancens.namespace.storage.location_overlap import ResolvedLocation
from airflow_provider_lancens.namespace.storage.referenced_files import (
    files_at_bases,
    index_folders_at_bases,
    is_among,
)
from airflow_provider_lancens.namespace.storage.table_links import check_links
from airflow_provider_lancens.namespace.storage.vended_options import snapshot

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Clone:
    """A table whose newest version refers to files of another one, its source."""

    table: str
    """Identifier, such as ``db$table``."""
    paths: frozenset[str]
    """Data files, deletion files and folders of indices, relative to the source's location."""

    def needs(self, path: str) -> bool:
        """Return whether it refers to a file, given its path relative to the source's location."""
        return is_among(path, self.paths)


@dataclass(frozen=True, slots=True)
class Clones:
    """The clones of a table that are known."""

    found: tuple[Clone, ...] = ()
    unknown: tuple[str, ...] = ()
    """Why other clones may exist: what couldn't be listed or read; empty if everything was."""

    def check_none(self, source: object) -> None:
        """Check that no clone refers to the data of a table that is about to be dropped.

        Args:
            source: the identifier of the table, for messages.

        Raises:
            InvalidInputError: (13) one does.
        """
        for clone in self.found:
            raise spec_errors.InvalidInputError(
                f"table {source}: table {clone.table} is a clone that refers to its data; drop the clone "
                "first, or overwrite it; deregistering this table keeps the data"
            )
        for reason in self.unknown:
            log.warning(
                "Table %s: a shallow clone may refer to its data, which a drop deletes: %s", source, reason
            )


def clone_at(
    table: str, location: str, storage_options: Mapping[str, str], source: ResolvedLocation
) -> Clone | None:
    """Return the files of a source that the newest version of a table refers to; None if there are none.

    Reads the newest manifest; of a table that refers to the source, also the descriptions of its indices.

    Args:
        table: its identifier.
        location: its location, which was checked to be allowed.
        storage_options: Lance's storage options for it.
        source: the location of the source.

    Raises:
        OSError, ValueError, RuntimeError: there is no dataset, or the storage or Lance failed.
        LanceNamespaceError: a symbolic link leads out of it.
    """
    import lance

    check_links(location)
    dataset = lance.dataset(Location.of(location), storage_options=snapshot(storage_options))
    bases = dataset._ds.base_paths()
    if not any(ResolvedLocation(base.path).overlaps(source) for base in bases.values()):
        return None
    paths: set[str] = set()
    for referred in (files_at_bases(dataset), index_folders_at_bases(dataset)):
        for base, found in referred.items():
            paths |= _below(source, ResolvedLocation(base), found)
    return Clone(table, frozenset(paths)) if paths else None


def _below(source: ResolvedLocation, base: ResolvedLocation, paths: Iterable[str]) -> set[str]:
    """Return the paths that lie in the source, made relative to the source instead of the base."""
    inside, around = base.path_below(source), source.path_below(base)
    if inside is not None:
        return {f"{inside}/{path}".removeprefix("/") for path in paths}
    if around is not None:
        return {path.removeprefix(f"{around}/") for path in paths if path.startswith(f"{around}/")}
    return set()
