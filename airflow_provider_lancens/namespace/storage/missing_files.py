"""Missing files of a dataset, which its versions refer to and the storage lacks.

A version whose files were removed can be opened and described, and fails when its rows are read. Lance is
imported only when a version is checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.locations import Location, join
from airflow_provider_lancens.namespace.storage.allowed_locations import AllowedLocations
from airflow_provider_lancens.namespace.storage.file_paths import FilePath
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.table_files import TableFiles
from airflow_provider_lancens.namespace.storage.table_links import check_links, check_links_at
from airflow_provider_lancens.namespace.storage.vended_options import snapshot

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.fragment import DataFile

_DATA, _INDICES = "data", "_indices"


@dataclass(frozen=True, slots=True)
class StoredVersions:
    """Versions of a dataset, read directly from the storage."""

    location: str
    storage_options: Mapping[str, str] = field(repr=False)
    allowed: AllowedLocations = field(default_factory=AllowedLocations, repr=False)
    """Locations in which the files that the versions refer to may be."""

    def missing_files(self, version: int) -> tuple[str, ...]:
        """Return the missing files that a version refers to: relative to the location, sorted.

        Raises:
            TableVersionNotFoundError: (11) there is no such version.
        """
        import lance

        options = snapshot(self.storage_options)
        check_links(self.location)
        try:
            dataset = lance.dataset(Location.of(self.location), version=version, storage_options=options)
        except ValueError as error:
            if self._manifests.find(version) is not None:
                raise
            raise spec_errors.TableVersionNotFoundError(
                f"{self.location} has no version {version}"
            ) from error
        return self.missing_files_of(check_bases(dataset, self.location, self.allowed))

    def missing_files_of(self, dataset: LanceDataset) -> tuple[str, ...]:
        """Return the missing files of an open version; files of a clone's source have their location."""
        files = self._manifests
        listed: set[str] = set()
        wanted = referenced_files(dataset)
        for folder in {path.rpartition("/")[0] for path in wanted}:
            listed.update(file.path for file in files.below(folder))
        # A listing may be older than a file that was just written: check each that isn't in it.
        missing = files.missing(wanted - listed)
        for location, paths in files_at_bases(dataset).items():
            source = TableFiles(location, self.storage_options)
            missing += [f"{location}/{path}" for path in source.missing(paths)]
        segments = StoredSegments(self.location, self.storage_options)
        for index in dataset.describe_indices():
            missing += segments.incomplete(dataset, index)
        return tuple(sorted(missing))

    def newest_complete(self, below: int) -> int | None:
        """Return the newest version below another one without missing files; None if there is none."""
        older = sorted((version for version in self._manifests.all() if version < below), reverse=True)
        return next((version for version in older if self._is_complete(version)), None)

    def _is_complete(self, version: int) -> bool:
        try:
            return not self.missing_files(version)
        except spec_errors.TableVersionNotFoundError:  # cleaned up meanwhile
            return False

    @property
    def _manifests(self) -> Manifests:
        return Manifests(self.location, self.storage_options)


@dataclass(frozen=True, slots=True)
class StoredSegments:
    """What the storage has of the segments of a dataset's indices; their files are listed once."""

    location: str
    storage_options: Mapping[str, str] = field(repr=False)
    _listed: dict[str, int] = field(default_factory=dict, init=False, repr=False)
    """The bytes of the files in each segment's folder."""

    def incomplete(self, dataset: LanceDataset, index: Any) -> list[str]:
        """Return the folders of an index's segments that lack files, or parts of them.

        Args:
            dataset: the dataset, opened at a version with the index.
            index: the index, as Lance describes it.

        Returns:
            Folders relative to the location; a folder in a clone's source begins with the source's location.
        """
        found = []
        for segment in index.segments:
            folder = f"{_INDICES}/{segment.uuid}"
            size = segment.size_bytes or 1  # not every writer tells it
            if segment.base_id is None:
                # A listing may be older than a segment that was just written.
                if self._bytes(folder) < size and _bytes_in(self._files, folder) < size:
                    found.append(folder)
                continue
            ((location, (inside,)),) = _at_bases(dataset, [(segment.base_id, folder)]).items()
            if _bytes_in(TableFiles(location, self.storage_options), inside) < size:
                found.append(f"{location}/{inside}")
        return found

    def _bytes(self, folder: str) -> int:
        if not self._listed:
            sizes: Counter[str] = Counter()
            for page in self._files.all_below(_INDICES):
                for file in page:
                    sizes[file.path.rpartition("/")[0]] += file.size
            self._listed.update(sizes)
        return self._listed.get(folder, 0)

    @property
    def _files(self) -> TableFiles:
        return TableFiles(self.location, self.storage_options)


def _bytes_in(files: TableFiles, folder: str) -> int:
    return sum(file.size for file in files.below(folder))


def referenced_files(dataset: LanceDataset) -> set[str]:
    """Return the data and deletion files that a version refers to below its own location."""
    return {path for base, path in _files_of(dataset) if base is None}


def files_at_bases(dataset: LanceDataset) -> dict[str, set[str]]:
    """Return the data and deletion files of other datasets that a version, such as a clone, refers to.

    Returns:
        Their paths by the location that they are relative to.
    """
    return _at_bases(dataset, _files_of(dataset))


def data_file_locations(dataset: LanceDataset, location: str, files: Sequence[DataFile]) -> list[str]:
    """Return the locations of data files of a version; `check_bases` checks the location of a source.

    Args:
        dataset: the dataset, opened at the version.
        location: the table's.
        files: the files.

    Raises:
        InvalidTableStateError: (19) the name of a file isn't the path of a file below its location.
    """
    bases: Any = dataset._ds.base_paths() if any(file.base_id is not None for file in files) else {}
    found = []
    for file in files:
        place, path = location, f"{_DATA}/{FilePath.of(file.path, location)}"
        if file.base_id is not None:
            place, path = _at_base(bases[file.base_id], path)
        found.append(join(Location.of(place), path))
    return found


def index_folders_at_bases(dataset: LanceDataset) -> dict[str, set[str]]:
    """Return the folders of the indices in other datasets that a version, such as a clone, refers to.

    Returns:
        Their paths by the location that they are relative to.
    """
    return _at_bases(dataset, _index_folders_of(dataset))


def _at_bases(dataset: LanceDataset, found: Iterable[tuple[int | None, str]]) -> dict[str, set[str]]:
    by_location: dict[str, set[str]] = {}
    paths = [(base, path) for base, path in found if base is not None]
    bases: Any = dataset._ds.base_paths() if paths else {}
    for base, path in paths:
        place, inside = _at_base(bases[base], path)
        by_location.setdefault(place, set()).add(inside)
    return by_location


def _at_base(base: Any, path: str) -> tuple[str, str]:
    """Return the location of a base, and a file's path there; a base may be the folder of the files."""
    return base.path, path if base.is_dataset_root else path.partition("/")[2]


def _files_of(dataset: LanceDataset) -> Iterator[tuple[int | None, str]]:
    """Yield the files of a version: the id of their base, None for its own location, and their path there."""
    for fragment in dataset.get_fragments():
        metadata = fragment.metadata
        overlays = [overlay.data_file for overlay in metadata.overlays]
        for file in (*metadata.files, *overlays):
            yield getattr(file, "base_id", None), f"{_DATA}/{file.path}"
        if (deletions := metadata.deletion_file) is not None:
            yield getattr(deletions, "base_id", None), deletions.path(metadata.id)


def check_bases(dataset: LanceDataset, location: str, allowed: AllowedLocations) -> LanceDataset:
    """Return an opened dataset, once it is checked that the others that it refers to may be read.

    Any writer of a table can refer to data elsewhere, as a shallow clone does. It costs no request. Of local
    ones, no symbolic link may lead further, see `table_links`.

    Args:
        dataset: the dataset.
        location: the table's, for the message.
        allowed: where such data may be.

    Raises:
        InvalidInputError: (13) a symbolic link leads out of one.
        PermissionDeniedError: (15) it may not be there.
    """
    bases: Any = dataset._ds.base_paths()
    for base in bases.values():
        allowed.check_reference(base.path, location, f"version {dataset.version} of the table at {location}")
        if base.is_dataset_root:
            check_links_at(base.path)
    if not all(base.is_dataset_root for base in bases.values()):
        for place, paths in files_at_bases(dataset).items():
            check_links_at(place, paths)
    return dataset


def index_folders(dataset: LanceDataset) -> set[str]:
    """Return the folders of the indices that a version refers to below its own location."""
    return {path for base, path in _index_folders_of(dataset) if base is None}


def index_names(dataset: LanceDataset) -> dict[str, str]:
    """Return the names of a version's indices by the folders of their segments."""
    return {
        f"{_INDICES}/{segment.uuid}": index.name
        for index in dataset.describe_indices()
        for segment in index.segments
    }


def _index_folders_of(dataset: LanceDataset) -> Iterator[tuple[int | None, str]]:
    """Yield the folders of indices of a version, as `_files_of` its files."""
    for index in dataset.describe_indices():
        for segment in index.segments:
            yield getattr(segment, "base_id", None), f"{_INDICES}/{segment.uuid}"


def is_of_index(path: str) -> bool:
    """Return whether a missing file, as `StoredVersions` names it, is a part of an index."""
    return path.rpartition("/")[0].endswith(_INDICES)


def is_among(path: str, paths: Collection[str]) -> bool:
    """Return whether a version refers to a file.

    Args:
        path: of the file.
        paths: data files, deletion files and folders of indices. The values of a blob column lie in a folder
            with the name of the data file.
    """
    parts = path.split("/")
    starts = ("/".join(parts[:count]) for count in range(1, len(parts) + 1))
    return any(start in paths or f"{start}.lance" in paths for start in starts)


def example_of(paths: Iterable[str]) -> str:
    """Return the first of some files and the number of others, for a message."""
    first, *others = sorted(paths)
    return f"{first} and {len(others)} more" if others else first
