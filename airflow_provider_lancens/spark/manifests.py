"""The versions of a storage-managed data set, as a namespace of their own.

It answers the calls by which Lance commits through a namespace, so that `fence.CommitFence` need
not know whether a metastore or the storage decides.
"""

from __future__ import annotations

from typing import Any

from lance_namespace import LanceNamespace
from lance_namespace.errors import TableVersionNotFoundError
from lance_namespace_urllib3_client import models

from airflow_provider_lancens.namespace.commits import V2_SCHEME, Commit, publish
from airflow_provider_lancens.namespace.manifests import Manifest, Manifests, staged_name
from airflow_provider_lancens.namespace.requests import as_model
from airflow_provider_lancens.spark.dataset import DatasetRef

AnyRequest = Any
"""A request model or a dict of its fields: Lance's core passes dicts."""


class ManifestFolder(LanceNamespace):
    """A private namespace of one table, over the manifests in its ``_versions`` folder."""

    def __init__(self, dataset: DatasetRef) -> None:
        """Take the data set, which need not exist yet."""
        self._manifests = Manifests(dataset.location, dataset.storage_options)

    def namespace_id(self) -> str:
        """Where the folder is."""
        return f"manifests:{self._manifests.location}"

    def list_table_versions(self, request: AnyRequest) -> models.ListTableVersionsResponse:
        """The versions, newest first; Lance asks for the newest one."""
        asked = as_model(models.ListTableVersionsRequest, request)
        newest_first = sorted(self._manifests.all().items(), reverse=True)[: asked.limit]
        return models.ListTableVersionsResponse(versions=[_entry(manifest) for _, manifest in newest_first])

    def describe_table_version(self, request: AnyRequest) -> models.DescribeTableVersionResponse:
        """One version's manifest.

        Raises:
            TableVersionNotFoundError: (11) there is none.
        """
        version = as_model(models.DescribeTableVersionRequest, request).version or 0
        found = self._manifests.find(version)
        if found is None:
            raise TableVersionNotFoundError(f"{self._manifests.location} has no version {version}")
        return models.DescribeTableVersionResponse(version=_entry(found))

    def create_table_version(self, request: AnyRequest) -> models.CreateTableVersionResponse:
        """Give a staged manifest its final name, which only one writer can.

        Raises:
            ConcurrentModificationError: (14) that version exists.
        """
        asked = as_model(models.CreateTableVersionRequest, request)
        commit = Commit(asked.version, staged_name(asked.manifest_path), asked.naming_scheme or V2_SCHEME)
        made = publish(self._manifests, commit)
        return models.CreateTableVersionResponse(version=_entry(made))


def _entry(manifest: Manifest) -> models.TableVersion:
    return models.TableVersion(version=manifest.version, manifest_path=manifest.path)
