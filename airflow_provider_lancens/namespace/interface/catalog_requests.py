"""Requests of the specification on namespaces, tables and versions."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lance_namespace.errors import InvalidInputError
from lance_namespace_urllib3_client import models

from airflow_provider_lancens.namespace import table_properties
from airflow_provider_lancens.namespace.interface import redacted_responses
from airflow_provider_lancens.namespace.interface.core import AnyRequest, NamespaceCore
from airflow_provider_lancens.namespace.locations import Location, as_uri, location_fault
from airflow_provider_lancens.namespace.managed.publication import V2_SCHEME, CommitRecord
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable
from airflow_provider_lancens.namespace.operations import namespace_operations
from airflow_provider_lancens.namespace.operations.branches import branch_name
from airflow_provider_lancens.namespace.operations.cascade import CascadePlan
from airflow_provider_lancens.namespace.operations.repair import Comparison, RepairOperations
from airflow_provider_lancens.namespace.paging import page_of
from airflow_provider_lancens.namespace.requests import (
    as_model,
    child_namespace_id,
    choice,
    database_id,
    foreign_tables_of,
    namespace_id,
    refuse,
    table_id,
)
from airflow_provider_lancens.namespace.storage.manifests import Manifest, staged_name
from airflow_provider_lancens.namespace.storage.purge import DropPlan
from airflow_provider_lancens.redaction import redact

FOREIGN_TABLES = "cascade.foreign-tables"
"""Key of `DropNamespaceRequest.context`: comma-separated ids of tables that aren't Lance but may be
dropped by a cascade; ``*`` for any. The models have no field for it."""
VERDICT, STORAGE_VERSION, EXPLANATION = "managed.verdict", "managed.storage-version", "managed.explanation"
"""Keys of a managed table's `DescribeTableResponse.context`, set if ``check_declared`` is requested."""
_OPEN_IT = "requires the dataset; open it with lance.dataset(namespace_client=..., table_id=...)"
_DIGITS = 20
"""Digits of the largest version, to which sort keys are padded."""


class CatalogRequests(NamespaceCore):
    """Requests on namespaces, tables and versions."""

    def create_namespace(self, request: AnyRequest) -> models.CreateNamespaceResponse:
        """Create a namespace. Modes CREATE (default), EXIST_OK, OVERWRITE.

        Raises:
            NamespaceNotFoundError: (1) its parent doesn't exist.
            NamespaceAlreadyExistsError: (2) it exists.
            NamespaceNotEmptyError: (3) the mode is OVERWRITE and it isn't empty.
            InvalidInputError: (13) the request is invalid.
        """
        model = as_model(models.CreateNamespaceRequest, request)
        modes = (namespace_operations.CREATE, namespace_operations.EXIST_OK, namespace_operations.OVERWRITE)
        mode = choice(model.mode, modes, namespace_operations.CREATE, "mode")
        target = child_namespace_id(model.id, self._metastore, "created")
        properties = self._namespaces.create(target, mode, model.properties or {})
        return redacted_responses.CreateNamespaceResponse(properties=properties)

    def list_namespaces(self, request: AnyRequest) -> models.ListNamespacesResponse:
        """List the names one level below a namespace, sorted and paginated.

        Raises:
            NamespaceNotFoundError: (1) it doesn't exist.
            InvalidInputError: (13) the request is invalid, such as its limit or its page token.
        """
        model = as_model(models.ListNamespacesRequest, request)
        parent = namespace_id(model.id, self._metastore)
        page = self._namespaces.list(parent, model.page_token, model.limit)
        return models.ListNamespacesResponse(namespaces=page.names, page_token=page.token)

    def describe_namespace(self, request: AnyRequest) -> models.DescribeNamespaceResponse:
        """Return a namespace's properties.

        Raises:
            NamespaceNotFoundError: (1) it doesn't exist.
            InvalidInputError: (13) the request is invalid.
        """
        model = as_model(models.DescribeNamespaceRequest, request)
        target = namespace_id(model.id, self._metastore)
        properties = {} if target.is_root else self._namespaces.describe(target)
        return redacted_responses.DescribeNamespaceResponse(properties=properties)

    def namespace_exists(self, request: AnyRequest) -> None:
        """Check that a namespace exists.

        Raises:
            NamespaceNotFoundError: (1) it doesn't exist.
            InvalidInputError: (13) the request is invalid.
        """
        model = as_model(models.NamespaceExistsRequest, request)
        self._namespaces.exists(namespace_id(model.id, self._metastore))

    def drop_namespace(self, request: AnyRequest) -> models.DropNamespaceResponse:
        """Drop a namespace without deleting files. Modes FAIL, SKIP; behaviors RESTRICT, CASCADE.

        The request's context may name foreign tables that a cascade may drop: see `FOREIGN_TABLES`.

        Raises:
            NamespaceNotFoundError: (1) it doesn't exist and the mode is FAIL.
            NamespaceNotEmptyError: (3) it isn't empty, or has tables that aren't Lance.
            InvalidInputError: (13) the request is invalid, or the server never drops this namespace.
        """
        model = as_model(models.DropNamespaceRequest, request)
        mode = choice(
            model.mode,
            (namespace_operations.FAIL, namespace_operations.SKIP),
            namespace_operations.FAIL,
            "mode",
        )
        behaviors = (namespace_operations.RESTRICT, namespace_operations.CASCADE)
        behavior = choice(model.behavior, behaviors, namespace_operations.RESTRICT, "behavior")
        target = child_namespace_id(model.id, self._metastore, "dropped")
        named = (model.context or {}).get(FOREIGN_TABLES, "")
        allowed = foreign_tables_of(filter(None, named.split(",")), self._metastore)
        properties = self._namespaces.drop(target, mode, behavior, allowed)
        return redacted_responses.DropNamespaceResponse(properties=properties)

    def plan_drop_namespace(self, request: AnyRequest) -> CascadePlan:
        """Return what `drop_namespace` with CASCADE would drop; nothing is changed.

        Raises:
            NamespaceNotFoundError: (1) it doesn't exist.
            InvalidInputError: (13) the request is invalid, or the server never drops this namespace.
        """
        model = as_model(models.DropNamespaceRequest, request)
        return self._namespaces.plan_drop(child_namespace_id(model.id, self._metastore, "dropped"))

    def check_planned_namespace(
        self, plan: CascadePlan, foreign_tables: Collection[str] = (), *, cascade: bool = True
    ) -> None:
        """Raise what a drop by a plan that was just made would; nothing is changed.

        Args:
            plan: the plan, as `plan_drop_namespace` returned it.
            foreign_tables: identifiers of tables that aren't Lance but may be dropped; ``*`` for any.
            cascade: False checks a drop that isn't a cascade, for which the namespace must be empty.

        Raises:
            NamespaceNotEmptyError: (3) it has tables that aren't Lance and aren't allowed, or any without a
                cascade. The message names them.
            ConcurrentModificationError: (14) a table is being written to.
            InvalidInputError: (13) an identifier is invalid.
        """
        allowed = foreign_tables_of(foreign_tables, self._metastore)
        behavior = namespace_operations.CASCADE if cascade else namespace_operations.RESTRICT
        self._namespaces.check_planned(plan, behavior, allowed)

    def drop_planned_namespace(
        self, plan: CascadePlan, foreign_tables: Collection[str] = ()
    ) -> models.DropNamespaceResponse:
        """Drop exactly what a plan of `plan_drop_namespace` contains, without deleting files.

        Args:
            plan: the plan. Tables of it that are gone meanwhile count as dropped.
            foreign_tables: identifiers of tables that aren't Lance but may be dropped; ``*`` for any.

        Raises:
            NamespaceNotFoundError: (1) the namespace doesn't exist any more.
            NamespaceNotEmptyError: (3) it has tables that aren't Lance and aren't allowed; or it has changed
                since the plan: a table was created, replaced or moved. The message names them.
            InvalidInputError: (13) an identifier is invalid, or the server never drops this namespace.
        """
        allowed = foreign_tables_of(foreign_tables, self._metastore)
        return redacted_responses.DropNamespaceResponse(
            properties=self._namespaces.drop_planned(plan, allowed)
        )

    def declare_table(self, request: AnyRequest) -> models.DeclareTableResponse:
        """Create a catalog table without a dataset.

        Raises:
            NamespaceNotFoundError: (1) its namespace doesn't exist.
            TableAlreadyExistsError: (5) it exists.
            InvalidInputError: (13) the request is invalid.
        """
        model = as_model(models.DeclareTableRequest, request)
        target = table_id(model.id, self._metastore)
        catalog_table = self._tables.declare(target, model.location, model.properties or {})
        return redacted_responses.DeclareTableResponse(
            location=str(self._tables.location_of(catalog_table)),
            storage_options=self._config.vended(model.vend_credentials),
            properties=dict(catalog_table.parameters),
            managed_versioning=table_properties.is_managed(catalog_table),
        )

    def register_table(self, request: AnyRequest) -> models.RegisterTableResponse:
        """Create a catalog table for an existing dataset. Modes CREATE, OVERWRITE.

        Raises:
            NamespaceNotFoundError: (1) its namespace doesn't exist.
            TableAlreadyExistsError: (5) it exists.
            InvalidInputError: (13) the request is invalid.
        """
        model = as_model(models.RegisterTableRequest, request)
        mode = choice(
            model.mode,
            (namespace_operations.CREATE, namespace_operations.OVERWRITE),
            namespace_operations.CREATE,
            "mode",
        )
        target = table_id(model.id, self._metastore)
        catalog_table = self._tables.register(
            target, model.location, model.properties or {}, overwrite=mode == namespace_operations.OVERWRITE
        )
        return redacted_responses.RegisterTableResponse(
            location=str(self._tables.location_of(catalog_table)), properties=dict(catalog_table.parameters)
        )

    def list_tables(self, request: AnyRequest) -> models.ListTablesResponse:
        """List the names of a database's Lance tables, sorted and paginated.

        Raises:
            NamespaceNotFoundError: (1) the database doesn't exist.
            InvalidInputError: (13) the request is invalid, such as its limit or its page token.
        """
        model = as_model(models.ListTablesRequest, request)
        parent = database_id(model.id, self._metastore)
        declared = model.include_declared is not False
        page = self._tables.list(parent, model.page_token, model.limit, declared=declared)
        return models.ListTablesResponse(tables=page.names, page_token=page.token)

    def list_all_tables(self, request: AnyRequest) -> models.ListTablesResponse:
        """List the full identifiers of all Lance tables, sorted and paginated.

        Raises:
            InvalidInputError: (13) the request is invalid, such as its limit or its page token.
        """
        model = as_model(models.ListTablesRequest, request)
        declared = model.include_declared is not False
        page = self._tables.list_all(model.page_token, model.limit, declared=declared)
        return models.ListTablesResponse(tables=page.names, page_token=page.token)

    def describe_table(self, request: AnyRequest) -> models.DescribeTableResponse:
        """Return a Lance table's location, properties and, if managed, version.

        Raises:
            TableNotFoundError: (4) there is no such table.
            TableVersionNotFoundError: (11) the requested version doesn't exist.
            InvalidInputError: (13) it is not a Lance table, or the request is invalid.
        """
        model = as_model(models.DescribeTableRequest, request)
        refuse(model, {"tag": _OPEN_IT, "branch": _OPEN_IT, "load_detailed_metadata": _OPEN_IT})
        catalog_table = self._tables.get(table_id(model.id, self._metastore))
        location = self._tables.location_of(catalog_table)
        return redacted_responses.DescribeTableResponse(
            version=self._reads.response_version(catalog_table, model.version),
            location=str(location),
            table_uri=as_uri(location) if model.with_table_uri else None,
            storage_options=self._config.vended(model.vend_credentials),
            properties=dict(catalog_table.parameters),
            managed_versioning=table_properties.is_managed(catalog_table),
            is_only_declared=self._tables.is_only_declared(catalog_table) if model.check_declared else None,
            context=self._consistency(catalog_table)
            if model.check_declared and table_properties.is_managed(catalog_table)
            else None,
        )

    def _consistency(self, catalog_table: CatalogTable) -> dict[str, str]:
        comparison = RepairOperations(self._reads).compare_catalog_table(catalog_table)
        return {
            VERDICT: comparison.verdict,
            STORAGE_VERSION: str(comparison.storage_version),
            EXPLANATION: comparison.explanation,
        }

    def table_exists(self, request: AnyRequest) -> None:
        """Check that a Lance table exists, at the requested version if one is given.

        Raises:
            TableNotFoundError: (4) there is no such table.
            TableVersionNotFoundError: (11) the requested version doesn't exist.
            InvalidInputError: (13) it is not a Lance table, or the request is invalid.
        """
        model = as_model(models.TableExistsRequest, request)
        catalog_table = self._tables.get(table_id(model.id, self._metastore))
        self._reads.response_version(catalog_table, model.version)

    def rename_table(self, request: AnyRequest) -> models.RenameTableResponse:
        """Rename a Lance table, also into another namespace; its data stays where it is.

        Raises:
            UnsupportedOperationError: (0) the catalog table's type is MANAGED, or the metastore can't rename.
            NamespaceNotFoundError: (1) the new namespace doesn't exist.
            TableNotFoundError: (4) there is no such table.
            TableAlreadyExistsError: (5) the new name is taken.
            InvalidInputError: (13) it is not a Lance table, or the request is invalid.
        """
        model = as_model(models.RenameTableRequest, request)
        table = table_id(model.id, self._metastore)
        namespace = model.new_namespace_id or list(table.namespace.parts)
        self._tables.rename(table, table_id([*namespace, model.new_table_name], self._metastore))
        return models.RenameTableResponse()

    def deregister_table(self, request: AnyRequest) -> models.DeregisterTableResponse:
        """Drop a Lance table's catalog table and keep its data.

        Raises:
            TableNotFoundError: (4) there is no such table.
            InvalidInputError: (13) it is not a Lance table.
        """
        model = as_model(models.DeregisterTableRequest, request)
        catalog_table = self._tables.deregister(table_id(model.id, self._metastore))
        return redacted_responses.DeregisterTableResponse(
            id=list(catalog_table.id.parts),
            location=_last_location(catalog_table),
            properties=dict(catalog_table.parameters),
        )

    def drop_table(self, request: AnyRequest) -> models.DropTableResponse:
        """Delete a Lance table's files and then drop its catalog table.

        Raises:
            TableNotFoundError: (4) there is no such table.
            InvalidInputError: (13) it is not a Lance table, or another catalog table shares its data.
        """
        model = as_model(models.DropTableRequest, request)
        catalog_table = self._tables.drop(table_id(model.id, self._metastore))
        return redacted_responses.DropTableResponse(
            id=list(catalog_table.id.parts),
            location=_last_location(catalog_table),
            properties=dict(catalog_table.parameters),
        )

    def plan_drop_table(self, request: AnyRequest) -> DropPlan:
        """Return what `drop_table` would delete; nothing is changed.

        Raises:
            LanceNamespaceError: what `drop_table` would raise.
        """
        model = as_model(models.DropTableRequest, request)
        return self._tables.plan_drop(table_id(model.id, self._metastore))

    def create_table_version(self, request: AnyRequest) -> models.CreateTableVersionResponse:
        """Commit a staged manifest as the next version of a table or branch.

        Raises:
            UnsupportedOperationError: (0) the metastore can't compare-and-set, or a branch has `metadata`.
            TableNotFoundError: (4) there is no such table.
            TableVersionNotFoundError: (11) a branch's staged manifest is gone.
            InvalidInputError: (13) the storage is the version authority, or the request is invalid.
            ConcurrentModificationError: (14) that version exists, or isn't the next one.
            ServiceUnavailableError: (17) metastore or storage didn't answer; it may be committed.
            InvalidTableStateError: (19) metastore and storage disagree; nothing was committed.
        """
        model = as_model(models.CreateTableVersionRequest, request)
        table, branch = table_id(model.id, self._metastore), branch_name(model.branch)
        commit = CommitRecord(
            model.version, staged_name(model.manifest_path), model.naming_scheme or V2_SCHEME
        )
        if branch:
            refuse(model, {"metadata": "only the manifest of a branch's version is stored; leave it out"})
            manifest = self._branches.create(table, branch, commit)
        else:
            manifest = self._versions.create(table, commit)
        return models.CreateTableVersionResponse(version=_table_version(manifest))

    def describe_table_version(self, request: AnyRequest) -> models.DescribeTableVersionResponse:
        """Return one version's manifest, of a branch if requested.

        Raises:
            TableNotFoundError: (4) there is no such table.
            TableVersionNotFoundError: (11) there is no such version.
            InvalidInputError: (13) it is not a Lance table, or the request is invalid.
            InvalidTableStateError: (19) metastore and storage disagree.
        """
        model = as_model(models.DescribeTableVersionRequest, request)
        table, branch = table_id(model.id, self._metastore), branch_name(model.branch)
        if model.version is None:
            raise InvalidInputError("version: required, but missing")
        if branch:
            manifest = self._branches.describe(table, branch, model.version)
        else:
            manifest = self._versions.describe(table, model.version)
        return models.DescribeTableVersionResponse(version=_table_version(manifest))

    def list_table_versions(self, request: AnyRequest) -> models.ListTableVersionsResponse:
        """List versions in ascending or, if requested, descending order, paginated.

        Versions of a branch if requested: empty if there is no such branch, since Lance lists before it
        creates one.

        Raises:
            TableNotFoundError: (4) there is no such table.
            InvalidInputError: (13) it is not a Lance table, or the request is invalid.
            InvalidTableStateError: (19) metastore and storage disagree.
        """
        model = as_model(models.ListTableVersionsRequest, request)
        table, branch = table_id(model.id, self._metastore), branch_name(model.branch)
        if model.descending and model.limit == 1 and not model.page_token:
            newest = self._branches.newest(table, branch) if branch else self._versions.newest(table)
            return _list_response([newest] if newest else [], None)
        manifests = self._branches.all(table, branch) if branch else self._versions.all(table)
        by_key = {
            _sort_key(version, descending=bool(model.descending)): manifest
            for version, manifest in manifests.items()
        }
        page = page_of(by_key, model.page_token, model.limit)
        return _list_response([by_key[key] for key in page.names], page.token)

    def advance_table_version(self, table: Sequence[str], *, expected: int, new: int) -> bool:
        """Move a managed table's version by compare-and-set, for writers that aren't pylance.

        Args:
            table: its identifier.
            expected: the version that it must be at.
            new: the version to move it to; its manifest must be on the storage.

        Returns:
            False if it was already at `new`: a repeated request changes nothing.

        Raises:
            UnsupportedOperationError: (0) the metastore can't compare-and-set.
            TableNotFoundError: (4) there is no such table.
            TableVersionNotFoundError: (11) `new` isn't on the storage.
            InvalidInputError: (13) the table isn't implementation-managed, or `new` isn't newer.
            ConcurrentModificationError: (14) it is at neither version.
        """
        return self._versions.advance(table_id(table, self._metastore), expected, new)

    def compare_table(self, table: Sequence[str]) -> Comparison:
        """Compare a table with its storage.

        After a direct write, the metastore is behind the storage of a managed table. The newest version of
        any table may refer to files that were removed.

        Returns:
            A verdict, and a message that explains it and says what to do.

        Raises:
            TableNotFoundError: (4) there is no such table.
            InvalidInputError: (13) it is not a Lance table.
            ServiceUnavailableError: (17) the storage didn't answer.
        """
        return self._repair.compare(table_id(table, self._metastore))

    def adopt_table(self, table: Sequence[str], *, abandon: bool = False) -> Comparison:
        """Move the metastore to the storage's newest version.

        Args:
            table: its identifier.
            abandon: allow it even if a direct writer's version differs from the version committed through
                the metastore, which is then abandoned.

        Returns:
            The comparison before.

        Raises:
            TableNotFoundError: (4) there is no such table.
            InvalidInputError: (13) the table isn't implementation-managed.
            ConcurrentModificationError: (14) the table was changed meanwhile.
            InvalidTableStateError: (19) metastore and storage diverged, and `abandon` is false; or files of
                the storage's newest version are missing.
        """
        return self._repair.adopt(table_id(table, self._metastore), abandon=abandon)

    def convert_table(self, table: Sequence[str], *, managed_by: str) -> bool:
        """Make the metastore (``impl``) or the storage (``storage``) a table's version authority.

        Returns:
            False if it already was.

        Raises:
            UnsupportedOperationError: (0) the metastore can't compare-and-set.
            TableNotFoundError: (4) there is no such table.
            InvalidInputError: (13) it is not a Lance table, or `managed_by` is neither.
            ConcurrentModificationError: (14) a write is running, or the table was changed concurrently.
            InvalidTableStateError: (19) metastore and storage disagree.
        """
        return self._repair.convert(table_id(table, self._metastore), managed_by)

    def settle_conversion(self, table: Sequence[str]) -> bool:
        """End a conversion to the metastore that died more than ten minutes ago; writes call it if need be.

        Returns:
            Whether the storage is the version authority, and no conversion is in progress.

        Raises:
            TableNotFoundError: (4) there is no such table.
            ConcurrentModificationError: (14) the table was changed concurrently.
        """
        return self._repair.settle(table_id(table, self._metastore))


def _last_location(catalog_table: CatalogTable) -> str | None:
    # A table of another client may lack a location, or have a refused location; it can be dropped anyway.
    if catalog_table.location and not location_fault(catalog_table.location):
        return str(Location.of(catalog_table.location))
    return redact(catalog_table.location or "") or None


def _table_version(manifest: Manifest) -> models.TableVersion:
    return models.TableVersion(
        version=manifest.version,
        manifest_path=manifest.path,
        manifest_size=manifest.size,
        e_tag=manifest.e_tag,
        timestamp_millis=manifest.modified_millis,
    )


def _list_response(manifests: Sequence[Manifest], token: str | None) -> models.ListTableVersionsResponse:
    return models.ListTableVersionsResponse(
        versions=[_table_version(manifest) for manifest in manifests], page_token=token
    )


def _sort_key(version: int, *, descending: bool) -> str:
    return f"{10**_DIGITS - version if descending else version:0{_DIGITS}d}"
