"""Picklable namespace configuration, and tables resolved by a namespace."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import InvalidIdentifierError, TableId, staged_name
from airflow_provider_lancens.namespace.locations import Location, described_location, shown_location
from airflow_provider_lancens.namespace.managed.managed_versions import unknown_versions_error
from airflow_provider_lancens.namespace.property_keys import storage_options
from airflow_provider_lancens.namespace.storage.allowed_locations import AllowedLocations
from airflow_provider_lancens.namespace.storage.clones import Clones
from airflow_provider_lancens.namespace.storage.location_overlap import is_same_place
from airflow_provider_lancens.namespace.storage.object_store import VERSIONS, detached_name, is_detached
from airflow_provider_lancens.namespace.storage.referenced_files import check_bases
from airflow_provider_lancens.namespace.storage.vended_options import EXPIRES_AT, VendedOptions
from airflow_provider_lancens.namespace.table_properties import LAYOUT
from airflow_provider_lancens.namespace.update_interval import EXPECTED_UPDATE
from airflow_provider_lancens.spark.options import DEFAULT_LAYOUT, TableLayout, is_whole_number
from airflow_provider_lancens.spark.storage_failures import storage_failures
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef, VersionAuthority

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset
    from lance_namespace import LanceNamespace
    from lance_namespace_urllib3_client.models import TableVersion

    from airflow_provider_lancens.namespace.error_types import StaleTableError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NamespaceSpec:
    """Picklable namespace configuration, to pass to a Spark job.

    Its repr shows only the names of the properties: the values may hold secrets.
    """

    impl: str
    """An implementation for `lance_namespace.connect`: ``dir``, ``rest`` or a dotted path to a class."""
    properties: Mapping[str, str]

    def connect(self) -> LanceNamespace:
        """Connect to the namespace.

        Raises:
            ValueError: `impl` can't be found, or it refused the properties.
        """
        import lance_namespace

        return lance_namespace.connect(self.impl, dict(self.properties))

    def storage_options(self) -> dict[str, str]:
        """Return Lance's storage options among the properties."""
        return storage_options(self.properties)

    def __repr__(self) -> str:
        return f"NamespaceSpec(impl={self.impl!r}, properties=<{', '.join(sorted(self.properties))}>)"


@dataclass(frozen=True, slots=True)
class ResolvedTable:
    """A table as described by its namespace."""

    id: TableId
    dataset: DatasetRef
    versions: LanceNamespace = field(repr=False)
    """The version authority: the one difference between managed and storage-managed tables."""
    namespace: LanceNamespace | None = field(default=None, repr=False)
    """The namespace that resolved it."""
    declared_layout: str | None = None
    """The property of its catalog table with the layout of its dataset, if it was declared with one."""
    expected_update: str | None = None
    """The property of its catalog table that says how often it gets new data, see `spark.freshness`."""

    @property
    def parts(self) -> list[str]:
        """The identifier as used in requests."""
        return list(self.id.parts)

    @property
    def layout(self) -> TableLayout:
        """The layout that it was declared with.

        Raises:
            InvalidTableStateError: (19) another client has written something else in its place.
        """
        if self.declared_layout is None:
            return DEFAULT_LAYOUT
        try:
            return TableLayout.from_json(self.declared_layout)
        except (TypeError, ValueError) as error:
            raise spec_errors.InvalidTableStateError(
                f"table {self.id}: the property {LAYOUT!r} of its catalog table is "
                f"{self.declared_layout[:200]!r}, which is no layout ({error}); correct or remove it"
            ) from error

    def check_location(self, location: str | None, version: object) -> None:
        """Refuse a table that was declared under this name after a version was returned.

        Args:
            location: where the table was that has the version; None if that isn't known.
            version: the version, by its number or what else names it, for the message.

        Raises:
            InvalidTableStateError: (19) this one is at another location. It isn't retried: a later try would
                find what this one has written, and pass over the rows of the other table.
        """
        if location is not None and not is_same_place(location, self.dataset.location):
            shown = staged_name(version) if isinstance(version, int) and is_detached(version) else version
            raise spec_errors.InvalidTableStateError(
                f"table {self.id} was dropped and declared again, or registered at another location, after "
                f"its version {shown} was returned: it was at {shown_location(location)}, and is at "
                f"{shown_location(self.dataset.location)} now. Clear the task that returned the version, or "
                "run it again under another key: it then gets the versions of the table that has the name now"
            )

    def latest_version(self) -> int | None:
        """Return the newest version; None if the table is declared and nothing was written yet."""
        newest = self.newest_version()
        return None if newest is None else int(newest.version)

    def newest_version(self) -> TableVersion | None:
        """Return the newest version as its authority describes it, to be opened by `open`."""
        from lance_namespace import ListTableVersionsRequest

        request = ListTableVersionsRequest(id=list(self.id.parts), descending=True, limit=1)
        try:
            versions = self.versions.list_table_versions(request).versions
        except spec_errors.TableNotFoundError as error:
            raise self._gone() from error
        return versions[0] if versions else None

    def nothing_written(self) -> spec_errors.TableVersionNotFoundError:
        """Return the error (11) of a call that needs a version of a table that has none yet."""
        return spec_errors.TableVersionNotFoundError(
            f"table {self.id} is declared, but nothing has been written to it yet"
        )

    def check_version(self, version: int) -> TableVersion | None:
        """Check that a version exists.

        Returns:
            The version as its authority describes it, to be opened by `open`; None if it is staged.

        Raises:
            TableVersionNotFoundError: (11) it doesn't.
            InvalidInputError: (13) it isn't a version's number.
        """
        if not is_whole_number(version, at_least=0):
            raise spec_errors.InvalidInputError(
                f"table {self.id}: version={version!r} isn't a version; expected a whole number of at least 1"
            )
        if is_detached(version):
            if self.dataset.manifests.stat(f"{VERSIONS}/{detached_name(version)}") is None:
                raise spec_errors.TableVersionNotFoundError(
                    f"table {self.id} has no staged version {version}: it was discarded, or it has expired"
                )
            return None
        from lance_namespace import DescribeTableVersionRequest

        request = DescribeTableVersionRequest(id=self.parts, version=version)
        try:
            return self.versions.describe_table_version(request).version
        except spec_errors.TableVersionNotFoundError as error:
            raise spec_errors.TableVersionNotFoundError(
                f"table {self.id} has no version {version}: it has not been written yet, or was cleaned up"
            ) from error

    def change_since_resolved(self) -> StaleTableError | None:
        """Return the error if the name means another table, or another authority decides its versions."""
        from lance_namespace import DescribeTableRequest

        if self.namespace is None:
            return None
        try:
            now = self.namespace.describe_table(DescribeTableRequest(id=self.parts, vend_credentials=False))
        except spec_errors.TableNotFoundError:
            return self._gone()
        location = now.location and Location.of(described_location(now.location))
        if location != self.dataset.location:
            return self._stale(f"it was at {self.dataset.location}, and a table of its name is elsewhere now")
        if (now.managed_versioning is True) != (self.dataset.version_authority is not None):
            return self._stale("another authority decides its versions now")
        return None

    def clones(self) -> Clones:
        """Return its registered shallow clones; none where its namespace can't list tables of others.

        Raises:
            ServiceUnavailableError: (17) the metastore, or the storage of the table, doesn't answer.
        """
        clones_of = getattr(self.namespace, "clones_of", None)
        return Clones() if clones_of is None else clones_of(self.id, self.dataset.location)

    def is_settled(self) -> bool:
        """End a conversion that died; return whether the storage decides the versions."""
        settle = getattr(self.namespace, "settle_conversion", None)
        return settle is not None and self.dataset.version_authority is None and bool(settle(self.parts))

    def _gone(self) -> StaleTableError:
        return self._stale("it was dropped, renamed, or is being registered again")

    def _stale(self, what: str) -> StaleTableError:
        from airflow_provider_lancens.namespace.error_types import StaleTableError

        return StaleTableError(
            f"table {self.id} has changed since this began: {what}; nothing was committed, run it again"
        )

    def check_not_bypassed(self, seen: int) -> None:
        """Check that no direct writer has bypassed a metastore that decides the versions.

        Args:
            seen: the newest version, just read.

        Raises:
            InvalidTableStateError: (19) one has, or another client set the version back.
        """
        if self.dataset.version_authority is None:
            return
        manifests = self.dataset.manifests
        stored = manifests.newest() or 0
        # The metastore is read after the storage, so a commit in between isn't taken for a direct one.
        if stored > seen and stored > (decided := self.latest_version() or 0):
            raise unknown_versions_error(self.id, manifests, stored, decided)

    def open(self, version: int, known: TableVersion | None = None) -> LanceDataset:
        """Open the dataset at exactly this version.

        Args:
            version: the version.
            known: what `newest_version` or `check_version` has just returned for it.
        """
        return self.dataset.open(version, known=known)

    def open_latest(self, opened: LanceDataset | None = None) -> LanceDataset | None:
        """Open the dataset at its newest version; None if nothing was written yet.

        Args:
            opened: the dataset as opened before by this; it is returned, at the newest version, and its
                manifest only read if that is another one.
        """
        if self.dataset.version_authority is None:
            # Lance finds and opens it with one request less.
            with contextlib.suppress(ValueError):  # there is none, or it was made this moment
                if opened is None:
                    return self.dataset.open(None)
                self.dataset.check_links()
                opened.checkout_latest()  # type: ignore[no-untyped-call]
                return check_bases(opened, self.dataset.location, self.dataset.allowed)
        newest = self.newest_version()
        if newest is None or (opened is not None and _is_at(opened, newest)):
            self.dataset.check_links()
            return None if newest is None else opened
        return self.open(int(newest.version), newest)

    def update_catalog_columns(self, schema: pa.Schema) -> None:
        """Describe the columns of a version that was just committed, which a failure doesn't undo.

        Namespaces other than this package's have nothing to describe.

        Args:
            schema: the columns.

        Raises:
            StaleTableError: (14) the table was dropped or declared again meanwhile, so that no reader finds
                the version by its name.
        """
        from airflow_provider_lancens.namespace.error_types import StaleTableError

        describe = getattr(self.namespace, "update_catalog_columns", None)
        if describe is None:
            return
        try:
            describe(self.parts, schema, self.dataset.location)
        except (StaleTableError, spec_errors.TableNotFoundError) as error:
            raise StaleTableError(
                f"table {self.id} was dropped, renamed or declared again while it was written to: the "
                f"version that was committed at {self.dataset.location} isn't part of the table of this "
                "name; run it again"
            ) from error
        except spec_errors.LanceNamespaceError as error:
            _log.warning(
                "Table %s is committed, but its catalog table could not be updated with its columns, so "
                "DESCRIBE in other clients shows outdated columns or none: %s",
                self.id,
                error,
            )


def _is_at(opened: LanceDataset, newest: TableVersion) -> bool:
    """Return whether a dataset was opened by a manifest that is still the newest version's manifest.

    The number doesn't show it: the table may have been dropped and declared again at its location.
    """
    from airflow_provider_lancens.spark.table.namespace_proxy import KnownVersion

    # Where another version of pylance keeps the namespace elsewhere, the version is opened once more.
    namespace = getattr(opened, "_namespace_client", None)
    is_same = isinstance(namespace, KnownVersion) and namespace.known == newest
    return is_same and newest.e_tag is not None and opened.version == newest.version


def vends_options(namespace: LanceNamespace) -> bool:
    """Return whether a namespace vends its storage options, as the namespaces of this package do."""
    return hasattr(namespace, "allowed_locations")


@contextlib.contextmanager
def resolved_table(
    namespace: NamespaceSpec | LanceNamespace, table: TableId | str
) -> Iterator[ResolvedTable]:
    """Resolve a declared table with its namespace; a namespace connected here is closed after the block.

    Args:
        namespace: a namespace, or a `NamespaceSpec` to connect from.
        table: the table's identifier, such as ``db$table``.

    Raises:
        InvalidInputError: (13) `table` isn't a valid identifier, or its location is invalid.
        TableNotFoundError: (4) it isn't declared.
        LanceNamespaceError: an error of the block, converted by `storage_failures`.
    """
    try:
        identifier = table if isinstance(table, TableId) else TableId.of_result(table)
    except InvalidIdentifierError as error:
        raise spec_errors.InvalidInputError(
            f"table: expected an identifier such as 'db$table', {error}"
        ) from error
    from lance_namespace import DescribeTableRequest

    from airflow_provider_lancens.spark.table.storage_versions import StorageVersions

    with contextlib.ExitStack() as opened:
        own_options: Mapping[str, str] = {}
        connect: Callable[[], LanceNamespace]
        if isinstance(namespace, NamespaceSpec):
            connect = namespace.connect
            own_options, namespace = namespace.storage_options(), connect()
            opened.callback(getattr(namespace, "close", lambda: None))
            if vends_options(namespace):
                own_options = {}  # never beside another's credentials
        else:
            connect = partial(_itself, namespace)
        # Reading and writing the data needs credentials. They are requested, since a namespace may not vend
        # them by default, and taken from its properties, since Lance's directory namespace never vends them.
        request = DescribeTableRequest(id=list(identifier.parts), vend_credentials=True)
        answer = namespace.describe_table(request)
        if not answer.location:
            raise spec_errors.InvalidTableStateError(f"table {table}: its namespace returned no location")
        options = _options(connect, identifier, own_options, answer.storage_options or {})
        allowed = getattr(namespace, "allowed_locations", AllowedLocations())
        dataset = DatasetRef(described_location(answer.location), options, allowed=allowed)
        versions: LanceNamespace = StorageVersions(dataset)
        if answer.managed_versioning is True:
            dataset = replace(dataset, version_authority=VersionAuthority(namespace, identifier.parts))
            versions = namespace
        opened.enter_context(storage_failures(dataset.location, dataset.storage_options))
        properties = answer.properties or {}
        declared = properties.get(LAYOUT), properties.get(EXPECTED_UPDATE)
        yield ResolvedTable(identifier, dataset, versions, namespace, *declared)


def _options(
    connect: Callable[[], LanceNamespace],
    table: TableId,
    own: Mapping[str, str],
    vended: Mapping[str, str],
) -> Mapping[str, str]:
    if EXPIRES_AT in vended:
        return VendedOptions(connect, table.parts, own, vended)
    return {**own, **vended}


def _itself(namespace: LanceNamespace) -> LanceNamespace:
    return namespace
