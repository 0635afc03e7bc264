"""Requests about the versions of a table, and what managed tables need beside the specification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lance_namespace.errors import InvalidInputError
from lance_namespace_urllib3_client import models

from airflow_provider_lancens.namespace.commits import V2_SCHEME, Commit
from airflow_provider_lancens.namespace.interface.core import AnyRequest, NamespaceCore
from airflow_provider_lancens.namespace.manifests import Manifest, staged_name
from airflow_provider_lancens.namespace.marks import WRITES
from airflow_provider_lancens.namespace.operations.repair import Comparison
from airflow_provider_lancens.namespace.paging import page_of
from airflow_provider_lancens.namespace.requests import as_model, refuse, table_id
from airflow_provider_lancens.namespace.writes import Write

_NO_BRANCHES = {"branch": "branches are the storage's; open the data set and check the branch out"}
_DIGITS = 20
"""Of a version in a page's order: as many as the largest one has."""


class VersionRequests(NamespaceCore):
    """CreateTableVersion, DescribeTableVersion, ListTableVersions; advance, compare, adopt, convert."""

    def create_table_version(self, request: AnyRequest) -> models.CreateTableVersionResponse:
        """Make a staged manifest the next version of a managed table; 0, 4, 13, 14, 17, 19."""
        asked = as_model(models.CreateTableVersionRequest, request)
        refuse(asked, _NO_BRANCHES)
        commit = Commit(asked.version, staged_name(asked.manifest_path), asked.naming_scheme or V2_SCHEME)
        made = self._versions.create(table_id(asked.id, self._metastore), commit, _write_in(asked.metadata))
        return models.CreateTableVersionResponse(version=_answer(made))

    def describe_table_version(self, request: AnyRequest) -> models.DescribeTableVersionResponse:
        """Answer one version's manifest; 4, 11, 13, 19."""
        asked = as_model(models.DescribeTableVersionRequest, request)
        refuse(asked, _NO_BRANCHES)
        if asked.version is None:
            raise InvalidInputError("version: which one is missing")
        found = self._versions.describe(table_id(asked.id, self._metastore), asked.version)
        return models.DescribeTableVersionResponse(version=_answer(found))

    def list_table_versions(self, request: AnyRequest) -> models.ListTableVersionsResponse:
        """List versions in order, ascending unless asked otherwise, in pages; 4, 13, 19."""
        asked = as_model(models.ListTableVersionsRequest, request)
        refuse(asked, _NO_BRANCHES)
        table = table_id(asked.id, self._metastore)
        if asked.descending and asked.limit == 1 and not asked.page_token:
            newest = self._versions.newest(table)
            return _listed([newest] if newest else [], None)
        found = self._versions.all(table)
        by_key = {_key(version, descending=bool(asked.descending)): one for version, one in found.items()}
        page = page_of(by_key, asked.page_token, asked.limit)
        return _listed([by_key[key] for key in page.names], page.token)

    def advance_table_version(self, table: Sequence[str], *, expected: int, new: int) -> bool:
        """Move a managed table's version by compare-and-set, for writers that aren't pylance.

        Args:
            table: its identifier.
            expected: the version that it must be at.
            new: the version that it is to be at; its manifest must lie on the storage.

        Returns:
            False where it was at `new` already: the same request again changes nothing.

        Raises:
            LanceNamespaceError: 0 no compare-and-set, 4, 11 no manifest, 13 not managed, 14 at neither.
        """
        return self._versions.advance(table_id(table, self._metastore), expected, new)

    def compare_table(self, table: Sequence[str]) -> Comparison:
        """How a managed table and its storage stand: a writer by path leaves the metastore behind; 4, 13."""
        return self._repair.compare(table_id(table, self._metastore))

    def adopt_table(self, table: Sequence[str], *, abandon: bool = False) -> Comparison:
        """Move the metastore to the storage's newest version.

        Args:
            table: its identifier.
            abandon: allow it also where a writer by path made another version than the one that was committed
                through the metastore, which is given up then.

        Returns:
            How it stood before.

        Raises:
            LanceNamespaceError: 4, 13 not managed, 14 it moved meanwhile, 19 it diverged, `abandon` is false.
        """
        return self._repair.adopt(table_id(table, self._metastore), abandon=abandon)

    def convert_table(self, table: Sequence[str], *, managed_by: str) -> bool:
        """Hand a table's version to the metastore (``impl``) or to the storage (``storage``).

        Returns:
            False where it was so already.

        Raises:
            LanceNamespaceError: 0 no compare-and-set, 4, 13, 14, 19 metastore and storage disagree.
        """
        return self._repair.convert(table_id(table, self._metastore), managed_by)


def _write_in(metadata: Mapping[str, str] | None) -> Write | None:
    text = (metadata or {}).get(WRITES)
    try:
        return Write.from_text(text) if text else None
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"metadata[{WRITES!r}]: not a write as text, {error}") from error


def _answer(manifest: Manifest) -> models.TableVersion:
    return models.TableVersion(
        version=manifest.version,
        manifest_path=manifest.path,
        manifest_size=manifest.size,
        e_tag=manifest.e_tag,
        timestamp_millis=manifest.modified_millis,
    )


def _listed(manifests: Sequence[Manifest], token: str | None) -> models.ListTableVersionsResponse:
    return models.ListTableVersionsResponse(versions=[_answer(one) for one in manifests], page_token=token)


def _key(version: int, *, descending: bool) -> str:
    return f"{10**_DIGITS - version if descending else version:0{_DIGITS}d}"
