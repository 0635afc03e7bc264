"""Files that a version of a dataset refers to, below its own location or, as a shallow clone does, in others.

Lance is imported by the caller, which opens the version.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.namespace.locations import Location, join
from airflow_provider_lancens.namespace.storage.allowed_locations import AllowedLocations
from airflow_provider_lancens.namespace.storage.file_paths import FilePath
from airflow_provider_lancens.namespace.storage.table_links import check_links_at

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.fragment import DataFile

DATA, INDICES = "data", "_indices"


def referenced_files(dataset: LanceDataset) -> set[str]:
    """Return the data and deletion files that a version refers to below its own location."""
    return {path for base, path in _files_of(dataset) if base is None}


def files_at_bases(dataset: LanceDataset) -> dict[str, set[str]]:
    """Return the data and deletion files of other datasets that a version, such as a clone, refers to.

    Returns:
        Their paths by the location that they are relative to.
    """
    return paths_at_bases(dataset, _files_of(dataset))


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
        place, path = location, f"{DATA}/{FilePath.of(file.path, location)}"
        if file.base_id is not None:
            place, path = _at_base(bases[file.base_id], path)
        found.append(join(Location.of(place), path))
    return found


def index_folders_at_bases(dataset: LanceDataset) -> dict[str, set[str]]:
    """Return the folders of the indices in other datasets that a version, such as a clone, refers to.

    Returns:
        Their paths by the location that they are relative to.
    """
    return paths_at_bases(dataset, _index_folders_of(dataset))


def paths_at_bases(dataset: LanceDataset, found: Iterable[tuple[int | None, str]]) -> dict[str, set[str]]:
    """Return the paths of files or folders in other datasets by the location that they are relative to.

    Args:
        dataset: the dataset that refers to them.
        found: the id of the base of each, None for the dataset's own location, and the path there.
    """
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
            yield getattr(file, "base_id", None), f"{DATA}/{file.path}"
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
        f"{INDICES}/{segment.uuid}": index.name
        for index in dataset.describe_indices()
        for segment in index.segments
    }


def _index_folders_of(dataset: LanceDataset) -> Iterator[tuple[int | None, str]]:
    """Yield the folders of indices of a version, as `_files_of` its files."""
    for index in dataset.describe_indices():
        for segment in index.segments:
            yield getattr(segment, "base_id", None), f"{INDICES}/{segment.uuid}"


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
