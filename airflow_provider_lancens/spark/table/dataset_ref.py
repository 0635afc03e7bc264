"""Picklable reference to a dataset, with which an executor opens a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.lance_errors import LANCE_ERRORS
from airflow_provider_lancens.namespace.locations import Location, is_local, join
from airflow_provider_lancens.namespace.row_errors import RowError
from airflow_provider_lancens.namespace.storage.allowed_locations import AllowedLocations
from airflow_provider_lancens.namespace.storage.file_paths import is_file_path
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.object_store import is_detached
from airflow_provider_lancens.namespace.storage.referenced_files import check_bases
from airflow_provider_lancens.namespace.storage.table_links import check_links
from airflow_provider_lancens.namespace.storage.vended_options import VendedOptions, snapshot
from airflow_provider_lancens.namespace.storage.version_removals import is_removed

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace import LanceNamespace
    from lance_namespace_urllib3_client.models import TableVersion

    from airflow_provider_lancens.spark.blobs import CheckBlob

_SMALL = 256 * 1024
"""Bytes of a manifest that Spark can send with each task; it has some hundred for each fragment."""


@dataclass(frozen=True, slots=True)
class VersionAuthority:
    """The namespace that decides the versions of a managed table; it must be picklable."""

    namespace: LanceNamespace
    table_id: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DatasetRef:
    """Location of a dataset, and the storage options to reach it with; no repr shows the options."""

    location: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    version_authority: VersionAuthority | None = field(default=None, repr=False)
    """The version authority of a managed table: a manifest in its folder need not be committed."""
    allowed: AllowedLocations = field(default_factory=AllowedLocations, repr=False)
    """Where what its versions refer to may be."""

    def __post_init__(self) -> None:
        """Check the location, which may be another client's.

        Raises:
            InvalidInputError: (13) it is invalid.
        """
        object.__setattr__(self, "location", Location.of(self.location))

    @property
    def manifests(self) -> Manifests:
        """The dataset's manifests, and all other files at its location."""
        return Manifests(self.location, self.storage_options)

    def open(
        self, version: int | None, manifest: bytes | None = None, *, known: TableVersion | None = None
    ) -> LanceDataset:
        """Open it at exactly this version; None is the newest stored version.

        Args:
            version: the version.
            manifest: its manifest as Lance serializes it, see `small_manifest`; None reads it.
            known: the version as the version authority has just described it; None asks that.

        Raises:
            ValueError: that version doesn't exist.
            InvalidInputError: (13) a symbolic link leads out of its folder.
            PermissionDeniedError: (15) it refers to data that isn't read with this table's credentials.
        """
        self.check_links()
        return check_bases(self._opened(version, manifest, known), self.location, self.allowed)

    def check_links(self) -> None:
        """Check that no symbolic link leads out of its folder, before anything is written there.

        Raises:
            InvalidInputError: (13) one does.
        """
        check_links(self.location)

    def _opened(
        self, version: int | None, manifest: bytes | None, known: TableVersion | None
    ) -> LanceDataset:
        # Slow to import, and a driver that only finds an earlier commit should not wait for it.
        import lance

        options = snapshot(self.storage_options)
        authority = self.version_authority
        # A given manifest is the version's manifest: a task that was sent it doesn't ask the authority.
        is_known = manifest is not None or (version is not None and is_detached(version))
        if authority is None or is_known:
            renewal = vendor_arguments(self.location, self.storage_options)
            return lance.LanceDataset(
                self.location, version, storage_options=options, serialized_manifest=manifest, **renewal
            )
        namespace = authority.namespace
        if known is not None:
            from airflow_provider_lancens.spark.table.namespace_proxy import KnownVersion

            namespace = KnownVersion(namespace, known)
        # As `lance.dataset` does, but that has the namespace describe the table again each time.
        return lance.LanceDataset(
            self.location,
            version,
            storage_options=options,
            namespace_client=namespace,
            table_id=list(authority.table_id),
            namespace_client_managed_versioning=True,
        )

    def blob_check(self, dataset: LanceDataset) -> CheckBlob:
        """Return a check that a file to which a row refers may be read with this table's credentials.

        Args:
            dataset: the dataset at the version that has the row.

        Returns:
            A function of the file's URI, the id of the base that a relative one is relative to, and the
            column. It raises PermissionDeniedError (15) if the file may not be read.
        """
        bases: Any = dataset._ds.base_paths()

        def check(uri: str, base: int, column: str) -> None:
            if is_file_path(uri):
                place = bases[base].path if base in bases else self.location
                if not is_local(place):
                    return  # below a base that `open` has checked
                uri = join(place, uri)  # a symbolic link may lead further
            self.allowed.check_reference(uri, self.location, f"column {column}: a row refers to a file")

        return check

    @contextmanager
    def explaining_removal(
        self, version: int, explained: Callable[[str], spec_errors.LanceNamespaceError]
    ) -> Iterator[None]:
        """If the block fails, check whether that is since a clean-up removed the version that it reads.

        Args:
            version: the version.
            explained: returns the error for a version that was cleaned up.

        Raises:
            LanceNamespaceError: it was.
        """
        try:
            yield
        except RowError:
            raise
        except LANCE_ERRORS as error:
            if not is_detached(version) and is_removed(self.manifests, version):
                raise explained(f"{self.location}: version {version}") from error
            raise


def vendor_arguments(location: str, options: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments by which Lance renews these options; none if they don't expire."""
    if not isinstance(options, VendedOptions):
        return {}
    from airflow_provider_lancens.spark.table.credential_vendor import CredentialVendor

    return {"namespace_client": CredentialVendor(location, options), "table_id": options.table_id}


def small_manifest(dataset: LanceDataset) -> bytes | None:
    """Return the manifest of an opened version, by which executors open it too; None if it is large."""
    manifest: bytes = dataset._ds.serialized_manifest()  # as Lance itself does to pickle a dataset
    return manifest if len(manifest) <= _SMALL else None
