"""The versions of a storage-managed dataset as a namespace.

It implements the calls by which Lance commits through a namespace, so that `SingleVersionCommit` need not
know whether a metastore or the storage is the version authority.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lance_namespace import LanceNamespace
from lance_namespace_urllib3_client import models

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.managed.publication import (
    V2_SCHEME,
    CommitRecord,
    create_version,
    publish,
)
from airflow_provider_lancens.namespace.requests import as_model
from airflow_provider_lancens.namespace.storage.conditional_writes import require_conditional_writes
from airflow_provider_lancens.namespace.storage.manifests import Manifest, staged_name
from airflow_provider_lancens.namespace.storage.vended_options import snapshot
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef

AnyRequest = Any
"""A request model or a dict of its fields: Lance's core passes dicts."""


@dataclass(eq=False)
class StorageVersions(LanceNamespace):
    """A private namespace of one table, over the manifests in its ``_versions`` folder."""

    dataset: DatasetRef
    """The dataset, which need not exist yet."""

    def namespace_id(self) -> str:
        """Return an id made of the dataset's location."""
        return f"manifests:{self.dataset.location}"

    def describe_table(self, request: AnyRequest) -> models.DescribeTableResponse:  # noqa: ARG002 one table
        """Return the location, by which Lance opens the dataset, and the current storage options."""
        return models.DescribeTableResponse(
            location=self.dataset.location,
            storage_options=snapshot(self.dataset.storage_options),
            managed_versioning=True,
        )

    def list_table_versions(self, request: AnyRequest) -> models.ListTableVersionsResponse:
        """Return the versions, newest first; Lance asks for the newest one."""
        model = as_model(models.ListTableVersionsRequest, request)
        manifests = self.dataset.manifests
        if model.limit == 1:
            newest = manifests.newest_manifest()
            return models.ListTableVersionsResponse(versions=[_table_version(newest)] if newest else [])
        stored = manifests.all()
        newest_first = sorted(stored.items(), reverse=True)[: model.limit]
        versions = [
            models.TableVersion(version=v, manifest_path=manifest.path) for v, manifest in newest_first
        ]
        return models.ListTableVersionsResponse(versions=versions)

    def describe_table_version(self, request: AnyRequest) -> models.DescribeTableVersionResponse:
        """Return the manifest of one version.

        Raises:
            TableVersionNotFoundError: (11) there is none.
        """
        version = as_model(models.DescribeTableVersionRequest, request).version or 0
        found = self.dataset.manifests.find(version)
        if found is None:
            raise spec_errors.TableVersionNotFoundError(f"{self.dataset.location} has no version {version}")
        return models.DescribeTableVersionResponse(version=_table_version(found))

    def create_table_version(self, request: AnyRequest) -> models.CreateTableVersionResponse:
        """Give a staged manifest its final name, at which only one writer can succeed.

        Raises:
            ConcurrentModificationError: (14) that version exists.
            UnsupportedOperationError: (0) the storage overwrites files that exist.
        """
        manifests = self.dataset.manifests
        require_conditional_writes(manifests)
        made = publish(manifests, _commit_of(request))
        return models.CreateTableVersionResponse(version=_table_version(made))

    def create_if(
        self, request: AnyRequest, check_allowed: Callable[[], object]
    ) -> models.CreateTableVersionResponse:
        """Create a version if that is allowed, as `create_table_version` does; its staged file remains.

        Args:
            request: the request.
            check_allowed: called before the version is created, while its staged file is read; an error that
                it raises is raised here.

        Raises:
            ConcurrentModificationError: (14) that version exists.
            UnsupportedOperationError: (0) the storage overwrites files that exist.
        """
        manifests = self.dataset.manifests
        require_conditional_writes(manifests)
        made = create_version(manifests, _commit_of(request), check_allowed)
        return models.CreateTableVersionResponse(version=_table_version(made))


def _commit_of(request: AnyRequest) -> CommitRecord:
    model = as_model(models.CreateTableVersionRequest, request)
    return CommitRecord(model.version, staged_name(model.manifest_path), model.naming_scheme or V2_SCHEME)


def _table_version(manifest: Manifest) -> models.TableVersion:
    return models.TableVersion(version=manifest.version, manifest_path=manifest.path)
