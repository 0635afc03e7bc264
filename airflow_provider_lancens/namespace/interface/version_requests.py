"""Table version requests of the specification, and its extensions for managed tables."""

from __future__ import annotations

from collections.abc import Sequence

from lance_namespace.errors import InvalidInputError
from lance_namespace_urllib3_client import models

from airflow_provider_lancens.namespace.interface.core import AnyRequest, NamespaceCore
from airflow_provider_lancens.namespace.managed.publication import V2_SCHEME, CommitRecord
from airflow_provider_lancens.namespace.operations.branches import branch_name
from airflow_provider_lancens.namespace.operations.repair import Comparison
from airflow_provider_lancens.namespace.paging import page_of
from airflow_provider_lancens.namespace.requests import as_model, refuse, table_id
from airflow_provider_lancens.namespace.storage.manifests import Manifest, staged_name

_DIGITS = 20
"""Digits of the largest version, to which sort keys are padded."""


class VersionRequests(NamespaceCore):
    """CreateTableVersion, DescribeTableVersion, ListTableVersions; advance, compare, adopt, convert."""

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
            made = self._branches.create(table, branch, commit)
        else:
            made = self._versions.create(table, commit)
        return models.CreateTableVersionResponse(version=_table_version(made))

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
            found = self._branches.describe(table, branch, model.version)
        else:
            found = self._versions.describe(table, model.version)
        return models.DescribeTableVersionResponse(version=_table_version(found))

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
        found = self._branches.all(table, branch) if branch else self._versions.all(table)
        by_key = {
            _sort_key(version, descending=bool(model.descending)): one for version, one in found.items()
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
            abandon: allow it even if a direct writer's version differs from the one that was committed
                through the metastore, which is then abandoned.

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
        versions=[_table_version(one) for one in manifests], page_token=token
    )


def _sort_key(version: int, *, descending: bool) -> str:
    return f"{10**_DIGITS - version if descending else version:0{_DIGITS}d}"
