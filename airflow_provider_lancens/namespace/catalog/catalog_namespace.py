"""Lance Namespace over any other implementation, with the extensions that Airflow needs of a namespace.

Operators, sensors and the page use it like a namespace over a metastore: it vends storage options, has a
deadline, is pickled to Spark's executors, and polls tables. The storage is the version authority of each of
its tables; operations that need a metastore are refused with code 0.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Self, TypeVar

from lance_namespace import LanceNamespace
from lance_namespace_urllib3_client import models
from pydantic import BaseModel

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.batch_reads import OF_THE_SERVER
from airflow_provider_lancens.namespace.catalog.catalog_calls import CatalogCalls
from airflow_provider_lancens.namespace.catalog.catalog_drop import CatalogDrop
from airflow_provider_lancens.namespace.catalog.catalog_errors import unsupported
from airflow_provider_lancens.namespace.catalog.catalog_search import CatalogClones, CatalogListing
from airflow_provider_lancens.namespace.catalog.catalog_settings import (
    DIR,
    CatalogSettings,
    catalog_properties,
)
from airflow_provider_lancens.namespace.catalog.folder_catalog import FolderCatalog
from airflow_provider_lancens.namespace.config import StorageConfig
from airflow_provider_lancens.namespace.interface import redacted_responses
from airflow_provider_lancens.namespace.locations import (
    Location,
    described_location,
    is_local,
    normalize,
    shown_location,
)
from airflow_provider_lancens.namespace.metastore_protocol import ServerInfo
from airflow_provider_lancens.namespace.operations.repair import (
    CONSISTENT,
    FILES_MISSING,
    Comparison,
)
from airflow_provider_lancens.namespace.requests import as_model, choice
from airflow_provider_lancens.namespace.storage import object_store
from airflow_provider_lancens.namespace.storage.allowed_locations import AllowedLocations
from airflow_provider_lancens.namespace.storage.clones import Clones
from airflow_provider_lancens.namespace.storage.enclosing_dataset import check_not_enclosed
from airflow_provider_lancens.namespace.storage.location_overlap import is_remote, store_of
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.missing_files import StoredVersions
from airflow_provider_lancens.namespace.storage.purge import DropPlan
from airflow_provider_lancens.namespace.table_properties import BY_IMPLEMENTATION, MANAGED_BY
from airflow_provider_lancens.namespace.table_status import TableStatus
from airflow_provider_lancens.redaction import is_secret, redact

log = logging.getLogger(__name__)

AnyRequest = Any
"""A request model or a dict of its fields."""
StatusOrError = TableStatus | spec_errors.LanceNamespaceError

_Model = TypeVar("_Model", bound=BaseModel)
_ON_A_METASTORE = "a connection to Hive Metastore or AWS Glue, for tables whose versions a metastore decides"
_FAILED_IN_A_ROW = 3
"""Failed tables after which a catalog is considered unavailable; fewer may fail for their own reasons."""
_BY_DICTS = frozenset({"create_table_version", "describe_table_version", "batch_delete_table_versions"})
"""Operations whose requests pylance's implementations take as dicts alone."""


class CatalogNamespace(LanceNamespace):
    """Lance tables in a folder or a bucket, a REST service, or whatever a class of Lance Namespace opens.

    Properties, all strings: ``impl`` (``dir``, ``rest``, or the dotted path of a class), ``root`` (of
    ``dir``), ``uri`` and ``token`` (of ``rest``), ``property.*`` and ``secret.*`` (the implementation's
    own), ``client.timeout`` (seconds for one request), ``allowed_locations``,
    ``vend_credentials``, ``storage.*``.

    Instances are thread-safe, and pickled as their properties.
    """

    _kind: ClassVar[str] = "catalog"

    def __init__(self, **properties: str) -> None:
        """Parse the properties and import the implementation; nothing is opened.

        Raises:
            InvalidInputError: (13) a property is unknown, missing or invalid, or there is no such class.
        """
        values = catalog_properties(properties)
        # `require_root`: without a given root, the current folder must not become the root.
        self._config = StorageConfig.parse(catalog_properties({**properties, "require_root": "true"}))
        self._settings = CatalogSettings.parse(properties, self._config, values)
        self._properties = dict(properties)
        self._calls = CatalogCalls(self._settings, self._settings.implementation())
        self._folder = FolderCatalog.of(self._config.root, self._settings.own) if self.impl == DIR else None
        self._vended: dict[TableId, Mapping[str, str]] = {}
        self._not_polled: TableId | None = None
        """The first table that the last poll left out."""
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._properties)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.namespace_id()})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def impl(self) -> str:
        """The implementation: ``dir``, ``rest``, or the dotted path of a class."""
        return self._settings.impl

    @property
    def allowed_locations(self) -> AllowedLocations:
        """Where what its tables refer to may be."""
        return self._config.allowed

    def namespace_id(self) -> str:
        """Return a human-readable identity, without any secret."""
        return f"{self._kind}:{self._settings.impl}#{self._settings.address}"

    def for_reading(self) -> Self:
        """Return this namespace, no read of which writes anything."""
        return self

    def close(self) -> None:
        """Close connections; the next call opens new ones."""
        self._calls.close()

    def server_info(self) -> ServerInfo:
        """Describe the catalog; it is asked for its topmost namespaces, unless it has none.

        Raises:
            UnauthenticatedError: (16) the service refused the credentials.
            ServiceUnavailableError: (17) it doesn't answer, or its storage doesn't.
        """
        with contextlib.suppress(spec_errors.UnsupportedOperationError):
            self.list_namespaces(models.ListNamespacesRequest(id=[], limit=1))
        return ServerInfo(f"catalog {self.impl}{self._absent_root()}", compare_and_set=False)

    def _absent_root(self) -> str:
        root = normalize(self._config.root)
        if self.impl != DIR or not is_local(root) or Path(root).is_dir():
            return ""
        return ", whose root doesn't exist on this machine: the first table will create it"

    # Operations of the interface that do more than pass the request on

    def list_namespaces(self, request: AnyRequest) -> models.ListNamespacesResponse:
        """Return the namespaces in a namespace."""
        return self._called("list_namespaces", models.ListNamespacesRequest, request)

    def describe_table(self, request: AnyRequest) -> models.DescribeTableResponse:
        """Return a table's location, and the storage options to reach it with.

        Raises:
            UnsupportedOperationError: (0) the catalog decides the versions of this table itself.
            TableNotFoundError: (4) there is no such table.
            PermissionDeniedError: (15) its location isn't allowed.
        """
        asked = as_model(models.DescribeTableRequest, request)
        described = self._called("describe_table", models.DescribeTableRequest, asked)
        table = self._subject(asked.id)
        if described.managed_versioning is True:
            raise unsupported(
                f"{table}: a table whose versions the catalog decides", self.impl, _ON_A_METASTORE
            )
        options = self._vended_options(asked.vend_credentials, described.storage_options)
        return _redacted(
            redacted_responses.DescribeTableResponse,
            described,
            location=self._checked(self._given(_plain(described.location), table), table),
            storage_options=options,
        )

    def declare_table(self, request: AnyRequest) -> models.DeclareTableResponse:
        """Create a table's entry, without rows.

        Raises:
            UnsupportedOperationError: (0) the metastore is to decide its versions.
            TableAlreadyExistsError: (5) it exists.
            InvalidInputError: (13) the location is in a folder of another dataset; or, of a folder without
                entries, the table was deregistered there.
        """
        asked = as_model(models.DeclareTableRequest, request)
        self._refuse_managed(asked.properties)
        if asked.location is not None:
            self._check_not_enclosed(asked.location, self._subject(asked.id))
        declared = self._declared(asked)
        table = self._subject(asked.id)
        self._refuse_decided(declared.managed_versioning, table)
        options = self._vended_options(asked.vend_credentials, declared.storage_options)
        return _redacted(
            redacted_responses.DeclareTableResponse,
            declared,
            location=self._checked(self._given(_plain(declared.location), table), table),
            storage_options=options,
        )

    def register_table(self, request: AnyRequest) -> models.RegisterTableResponse:
        """Create the entry of data that exists.

        Raises:
            UnsupportedOperationError: (0) the metastore is to decide its versions, or the entry of a table
                that exists is to be replaced, and the catalog can't; or it had no effect.
            TableAlreadyExistsError: (5) it exists.
            InvalidInputError: (13) the location is in a folder of another dataset; or, of a folder, it isn't
                below its root, overlaps its entries, or isn't the folder of a table of the topmost level.
        """
        asked = as_model(models.RegisterTableRequest, request)
        self._refuse_managed(asked.properties)
        self._check_not_enclosed(asked.location, self._subject(asked.id))
        try:
            passed = asked.model_copy(update={"location": self._registrable(asked)})
            registered = self._called("register_table", models.RegisterTableRequest, passed)
        except spec_errors.TableAlreadyExistsError as error:
            if choice(asked.mode, ("create", "overwrite"), "create", "mode") == "create":
                raise
            what = f"replacing the entry of {self._subject(asked.id)} (if_exists='replace')"
            raise unsupported(what, self.impl, "deregister it first, which keeps its data") from error
        self._check_effect("registering", asked.id, lambda found: found is not None)
        return _redacted(
            redacted_responses.RegisterTableResponse, registered, location=normalize(asked.location)
        )

    def table_exists(self, request: AnyRequest) -> models.TableExistsResponse:
        """Check that a table exists; it is described, if the catalog has no other way.

        Raises:
            TableNotFoundError: (4) there is no such table.
        """
        asked = as_model(models.TableExistsRequest, request)
        try:
            return self._called("table_exists", models.TableExistsRequest, asked)
        except spec_errors.UnsupportedOperationError:
            self.describe_table(models.DescribeTableRequest(id=asked.id, vend_credentials=False))
            return models.TableExistsResponse()

    def deregister_table(self, request: AnyRequest) -> models.DeregisterTableResponse:
        """Remove a table's entry; its data stays.

        Raises:
            UnsupportedOperationError: (0) it has no effect: the catalog knows the table by its folder.
            TableNotFoundError: (4) there is no such table.
        """
        asked = as_model(models.DeregisterTableRequest, request)
        if self._folder is not None and self._folder.own_folder(asked.id or ()):
            found = self._location_of(asked.id)
            if found is None:
                raise spec_errors.TableNotFoundError(f"{self._subject(asked.id)} doesn't exist")
            self._folder.check_deregistration(asked.id or (), found)
        removed = self._remove_entry(asked.id or [])
        before = _plain(removed.location)
        self._check_effect("deregistering", asked.id, lambda found: found is None or found != before)
        return _redacted(redacted_responses.DeregisterTableResponse, removed, location=before)

    def drop_table(self, request: AnyRequest) -> models.DropTableResponse:
        """Remove a table's entry and its data.

        Of a folder, only files of Lance and of this package are deleted (guarantee 3); any other catalog
        decides what it deletes.

        Raises:
            TableNotFoundError: (4) there is no such table.
            InvalidInputError: (13) another table of the catalog has the same location or an overlapping one,
                or is a clone that refers to the data; or of a folder: its location is a symbolic link or
                overlaps the catalog's entries, or the table exists by a folder that has other files.
            ConcurrentModificationError: (14) a write to it is running.
            PermissionDeniedError: (15) its location isn't allowed.
        """
        asked = as_model(models.DropTableRequest, request)
        drop = self._droppable(asked)
        if self._folder is not None:
            drop.remove_from(self._folder, lambda: self._remove_entry(drop.table.parts))
            return redacted_responses.DropTableResponse(id=asked.id, location=drop.location)
        dropped = self._called("drop_table", models.DropTableRequest, asked)
        return _redacted(redacted_responses.DropTableResponse, dropped, location=_plain(dropped.location))

    # Extensions that Airflow needs beyond the interface

    def poll_tables(
        self, tables: Collection[TableId], known: Mapping[TableId, object] | None = None
    ) -> dict[TableId, StatusOrError]:
        """Poll many tables, one request each; a failing one doesn't affect the others.

        Args:
            tables: their identifiers.
            known: the result of an earlier poll, whose statuses are returned where they haven't changed.

        Returns:
            For each its status, whose version only `read_storage_version` knows, or an error: the table's
            own, or the same for all tables that weren't polled any more, since the catalog doesn't answer.
            The next poll begins with these.
        """
        statuses: dict[TableId, StatusOrError] = {}
        left = deque(tables)
        if self._not_polled is not None and self._not_polled in left:
            left.rotate(-left.index(self._not_polled))
        failed, waited, longest = 0, 0.0, _FAILED_IN_A_ROW * self._settings.timeout
        while left:
            table, began = left.popleft(), time.monotonic()
            try:
                statuses[table], failed = self._status(table), 0
            except spec_errors.UnauthenticatedError as error:
                # Counted for this table alone, whose storage may differ from the others'. This error ends
                # a wait for good, unlike the errors below, so tables that weren't polled don't get it.
                statuses[table], failed = error, 0
            except OF_THE_SERVER as error:
                statuses[table], failed = error, failed + 1
                waited += time.monotonic() - began  # in total, even if other tables are answered in between
                is_over = failed == _FAILED_IN_A_ROW or waited >= longest
                if is_over or not isinstance(error, spec_errors.ServiceUnavailableError):
                    statuses |= dict.fromkeys(left, error)
                    break
            except spec_errors.LanceNamespaceError as error:
                statuses[table], failed = error, 0
        self._not_polled = left[0] if left else None
        before = known or {}
        return {table: _unless_unchanged(status, before.get(table)) for table, status in statuses.items()}

    def read_storage_version(self, status: TableStatus) -> TableStatus:
        """Return a status whose version was read from the storage, by one listing request.

        Args:
            status: a status with ``needs_listing``, as `poll_tables` returns it.

        Raises:
            PermissionDeniedError: (15) access to the storage is denied.
            UnauthenticatedError: (16) the storage refused the credentials.
            ServiceUnavailableError: (17) the storage can't be reached or failed.
        """
        with self._lock:
            options = self._vended.get(status.table, self._config.storage_options)
        version = object_store.latest_version(str(status.location), options)
        return replace(status, version=version or 0, needs_listing=False)

    def clones_of(self, table: TableId, location: str) -> Clones:
        """Return the shallow clones of a table in the catalog, before files of it are removed.

        Args:
            table: its identifier.
            location: its location.

        Returns:
            The tables whose newest versions refer to files of it, and why there may be others.

        Raises:
            ServiceUnavailableError: (17) the catalog doesn't answer.
        """
        return CatalogClones(self._listing(), self.describe_table, table.parts, location).search()

    def compare_table(self, parts: Sequence[str]) -> Comparison:
        """Check that the files of a table's newest version exist.

        Args:
            parts: the levels of its identifier.

        Raises:
            TableNotFoundError: (4) there is no such table.
        """
        table = TableId(tuple(parts))
        described = self.describe_table(models.DescribeTableRequest(id=list(parts), vend_credentials=True))
        location, options = Location.of(str(described.location)), described.storage_options or {}
        newest = Manifests(location, options).newest() or 0
        found = Comparison(table, newest, newest, CONSISTENT)
        if not newest:
            return found
        versions = StoredVersions(location, options, self.allowed_locations)
        try:
            missing = versions.missing_files(newest)
        except spec_errors.TableVersionNotFoundError:  # cleaned up after other commits: compare again
            return self.compare_table(parts)
        if not missing:
            return found
        whole = versions.newest_complete(below=newest)
        return replace(found, verdict=FILES_MISSING, missing_files=missing, complete_version=whole)

    def convert_table(self, parts: Sequence[str], *, managed_by: str) -> bool:
        """Return False: the storage decides the versions of each table already.

        Args:
            parts: the levels of the table's identifier.
            managed_by: ``storage``.

        Raises:
            UnsupportedOperationError: (0) `managed_by` is ``impl``.
        """
        if managed_by == BY_IMPLEMENTATION:
            self._refuse_managed({MANAGED_BY: managed_by})
        self.describe_table(models.DescribeTableRequest(id=list(parts), vend_credentials=False))
        return False

    def adopt_table(self, parts: Sequence[str], **_options: object) -> NoReturn:
        """Refuse: there is no version in the catalog that could differ from the storage's.

        Raises:
            UnsupportedOperationError: (0) always.
        """
        raise unsupported(
            f"adopting versions of {self._subject(parts)}",
            self.impl,
            "nothing, since the storage decides its versions",
        )

    def advance_table_version(self, parts: Sequence[str], **_versions: int) -> NoReturn:
        """Refuse: the catalog has no version that could be advanced.

        Raises:
            UnsupportedOperationError: (0) always.
        """
        raise unsupported(
            f"advancing the version of {self._subject(parts)}",
            self.impl,
            "nothing, since a commit to the storage is the new version",
        )

    def plan_drop_table(self, request: AnyRequest) -> DropPlan:
        """Return what `drop_table` would delete; nothing is changed.

        Raises:
            LanceNamespaceError: what `drop_table` would raise.
        """
        return self._droppable(request).plan()

    def plan_drop_namespace(self, request: AnyRequest) -> NoReturn:
        """Refuse: a catalog may contain objects that this package can't list, so there is no plan.

        Raises:
            UnsupportedOperationError: (0) always.
        """
        parts = as_model(models.DropNamespaceRequest, request).id or []
        raise unsupported(
            f"the plan of a cascade (cascade=True, dry_run=True) for namespace {'$'.join(parts)!r}",
            self.impl,
            "drop or deregister its tables, then the namespace without cascade",
        )

    def drop_planned_namespace(self, *_arguments: object) -> NoReturn:
        """Refuse, see `plan_drop_namespace`.

        Raises:
            UnsupportedOperationError: (0) always.
        """
        raise unsupported("a cascade", self.impl, "drop or deregister the namespace's tables, then it")

    def _droppable(self, request: AnyRequest) -> CatalogDrop:
        """Return the drop of a table, which was checked."""
        asked = as_model(models.DropTableRequest, request)
        described = self.describe_table(models.DescribeTableRequest(id=asked.id, vend_credentials=True))
        table, location = TableId(tuple(asked.id or ())), str(described.location)
        options = described.storage_options or {}
        drop = CatalogDrop(table, location, options, self._folder, self._listing(), self._location_of)
        drop.check(lambda: self.clones_of(table, location))
        return drop

    def _listing(self) -> CatalogListing:
        return CatalogListing(self.list_namespaces, self.list_tables)

    def _declared(self, asked: models.DeclareTableRequest) -> models.DeclareTableResponse:
        """Declare a table; in a folder, the entry of a table whose folder somebody removed is replaced."""
        parts, folder = asked.id or [], self._folder
        own = None if folder is None else folder.own_folder(parts)
        if own and self._location_of(parts) is not None:
            raise spec_errors.TableAlreadyExistsError(f"{self._subject(parts)} already exists, at {own}")
        declared: models.DeclareTableResponse
        try:
            declared = self._called("declare_table", models.DeclareTableRequest, asked)
        except spec_errors.TableAlreadyExistsError:
            if folder is None or not own or self._location_of(parts) is not None:
                raise
            folder.check_not_deregistered(parts)
            with contextlib.suppress(spec_errors.TableNotFoundError):
                self._remove_entry(parts)
            declared = self._called("declare_table", models.DeclareTableRequest, asked)
        return declared

    def _remove_entry(self, parts: Sequence[str]) -> models.DeregisterTableResponse:
        removed: models.DeregisterTableResponse
        request = models.DeregisterTableRequest(id=list(parts))
        removed = self._called("deregister_table", models.DeregisterTableRequest, request)
        return removed

    def _registrable(self, asked: models.RegisterTableRequest) -> str:
        """Return a location as a folder's catalog registers it; for another catalog, unchanged."""
        if self._folder is None:
            return str(asked.location)
        location = Location.of(asked.location)
        relative = self._folder.relative(location)
        parts = asked.id or []
        exists = self._folder.own_folder(parts) is not None and self._location_of(parts) is not None
        self._folder.check_registration(parts, location, exists=exists)
        return relative

    def _check_effect(
        self, doing: str, parts: Sequence[str] | None, is_done: Callable[[str | None], bool]
    ) -> None:
        """Check that the catalog did what it reports.

        Args:
            doing: what it reports.
            parts: the levels of the table's identifier.
            is_done: given the location of the table now, None without one, whether it was done.

        Raises:
            UnsupportedOperationError: (0) it wasn't.
        """
        try:
            found = self._location_of(parts)
        except spec_errors.LanceNamespaceError as error:
            log.info("%s: whether %s it had an effect is unknown: %s", self._subject(parts), doing, error)
            return
        if not is_done(found):
            raise unsupported(
                f"{doing} {self._subject(parts)}",
                self.impl,
                "use a table in a namespace",
                f"it reported success, but the table {'still exists' if found else 'does not exist'}",
            )

    def _location_of(self, parts: Sequence[str] | None) -> str | None:
        """Return the location of a table, allowed or not; None if there is no such table."""
        request = models.DescribeTableRequest(id=list(parts or ()))
        try:
            location = self._called("describe_table", models.DescribeTableRequest, request).location
        except (spec_errors.TableNotFoundError, spec_errors.NamespaceNotFoundError):
            return None
        return self._given(_plain(location), self._subject(parts))

    def _called(self, operation: str, model: type[BaseModel], request: AnyRequest, *data: Any) -> Any:
        asked = as_model(model, request)
        return self._calls.call(operation, asked.model_dump() if operation in _BY_DICTS else asked, *data)

    def _status(self, table: TableId) -> TableStatus:
        request = models.DescribeTableRequest(id=list(table.parts), vend_credentials=True)
        try:
            described = self.describe_table(request)
        except (spec_errors.NamespaceNotFoundError, spec_errors.TableNotFoundError):
            return TableStatus(table)
        with self._lock:
            self._vended[table] = described.storage_options or {}
        return TableStatus(table, described.location, needs_listing=True)

    def _vended_options(
        self, requested: bool | None, vended: Mapping[str, str] | None
    ) -> dict[str, str] | None:
        own = self._config.vended(requested) or {}
        if any(map(is_secret, vended or {})):  # credentials of two sources are never mixed
            own = {name: value for name, value in own.items() if not is_secret(name)}
        return {**own, **(vended or {})} or None

    def _checked(self, location: str, subject: str) -> Location:
        """Return a location that may be used with the connection's credentials.

        Raises:
            InvalidInputError: (13) it is invalid.
            PermissionDeniedError: (15) it isn't below one of the allowed ones, or in the root's bucket.
        """
        checked = Location.of(location)
        self._config.allowed.check(checked, subject)
        root = self._config.root
        confined = not self._config.allowed.is_given and bool(root) and is_remote(store_of(root))
        if confined and store_of(checked) != store_of(root):
            raise spec_errors.PermissionDeniedError(
                f"{subject}: its location {shown_location(redact(checked))} is in another store than the "
                f"connection's root {redact(root)}; if this connection may use it, set its property "
                "'allowed_locations' to the prefixes of all its tables"
            )
        return checked

    def _check_not_enclosed(self, location: str, subject: str) -> None:
        """Check a location that a table is to have, see `check_not_enclosed`.

        Raises:
            InvalidInputError: (13) it is invalid, or in a folder of another dataset.
            PermissionDeniedError: (15) as `_checked`.
        """
        checked = self._checked(location, subject)
        check_not_enclosed(checked, self._config.storage_options, self._config.allowed, subject)

    def _given(self, location: str | None, table: str) -> str:
        if not location:
            raise spec_errors.InternalError(f"{table}: the catalog {self.impl} returned no location")
        return location

    def _refuse_managed(self, properties: Mapping[str, str] | None) -> None:
        if (properties or {}).get(MANAGED_BY, "").strip().lower() == BY_IMPLEMENTATION:
            raise unsupported("version_authority='catalog'", self.impl, _ON_A_METASTORE)

    def _refuse_decided(self, managed_versioning: bool | None, table: str) -> None:
        if managed_versioning is True:
            what = f"{table}: a table whose versions the catalog decides"
            raise unsupported(what, self.impl, _ON_A_METASTORE)

    @staticmethod
    def _subject(parts: Sequence[str] | None) -> str:
        return f"table {'$'.join(parts or ())!r}"


def _passed_on(operation: str) -> Callable[..., Any]:
    """Return a method that passes an operation on to the implementation."""
    name = f"{''.join(map(str.capitalize, operation.split('_')))}Request"
    model: type[BaseModel] | None = getattr(models, _REQUESTS.get(operation, name), None)

    def call(self: CatalogNamespace, request: AnyRequest, *data: Any) -> Any:
        if model is None:  # the interface has no request model for it any more
            return self._calls.call(operation, request, *data)
        return self._called(operation, model, request, *data)

    call.__name__ = operation
    call.__doc__ = f"Pass `{operation}` on to the implementation."
    return call


_REQUESTS = {
    "list_all_tables": "ListTablesRequest",
    "create_table_scalar_index": "CreateTableIndexRequest",
}
"""The requests of operations whose names differ."""
_NO_OPERATIONS = frozenset({"namespace_id"})

for _operation in sorted(vars(LanceNamespace)):
    if not _operation.startswith("_") and _operation not in {*vars(CatalogNamespace), *_NO_OPERATIONS}:
        setattr(CatalogNamespace, _operation, _passed_on(_operation))


def _redacted(model: type[_Model], response: BaseModel, **changed: Any) -> _Model:
    """Return a response with other values, whose repr shows no options."""
    return model.model_validate({**response.model_dump(by_alias=True), **changed})


def _plain(location: str | None) -> str | None:
    return None if location is None else described_location(location)


def _unless_unchanged(status: StatusOrError, known: object) -> StatusOrError:
    return known if isinstance(known, TableStatus) and known == status else status


def _rebuild(kind: type[CatalogNamespace], properties: Mapping[str, str]) -> CatalogNamespace:
    return kind(**properties)
