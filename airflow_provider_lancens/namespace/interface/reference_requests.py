"""Requests on the tags and branches of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lance_namespace.errors import (
    TableBranchAlreadyExistsError,
    TableBranchNotFoundError,
    TableTagAlreadyExistsError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
)
from lance_namespace_urllib3_client import models

from airflow_provider_lancens.namespace.interface.core import AnyRequest, NamespaceCore
from airflow_provider_lancens.namespace.interface.open_dataset import TableData, opened
from airflow_provider_lancens.namespace.paging import page_of
from airflow_provider_lancens.namespace.requests import as_model
from airflow_provider_lancens.namespace.storage.table_links import check_links
from airflow_provider_lancens.namespace.storage.version_tags import (
    create_branch,
    create_tag,
    delete_tag,
    list_branches,
    list_tags,
    move_tag,
)


class ReferenceRequests(NamespaceCore):
    """List, get, create, update and delete tags; list, create and delete branches."""

    def list_table_tags(self, request: AnyRequest) -> models.ListTableTagsResponse:
        """List a table's tags by name, paginated.

        Raises:
            LanceNamespaceError: see `opened`.
        """
        model = as_model(models.ListTableTagsRequest, request)
        with opened(self, model) as dataset:
            found = list_tags(dataset)
        page = page_of(found, model.page_token, model.limit)
        tags = {name: _tag(found[name]) for name in page.names}
        return models.ListTableTagsResponse(tags=tags, page_token=page.token)

    def get_table_tag_version(self, request: AnyRequest) -> models.GetTableTagVersionResponse:
        """Return the version that a tag names.

        Raises:
            TableTagNotFoundError: (8) there is no such tag.
            LanceNamespaceError: see `opened`.
        """
        model = as_model(models.GetTableTagVersionRequest, request)
        with opened(self, model) as dataset:
            tag = list_tags(dataset).get(model.tag)
        if tag is None:
            raise _no_tag(model)
        return models.GetTableTagVersionResponse(version=tag["version"], branch=tag.get("branch"))

    def create_table_tag(self, request: AnyRequest) -> models.CreateTableTagResponse:
        """Tag a version, which protects it from clean-ups.

        Raises:
            TableTagAlreadyExistsError: (9) there is a tag of that name.
            TableVersionNotFoundError: (11) there is no such version.
            ConcurrentModificationError: (14) a clean-up may be removing it.
            LanceNamespaceError: see `opened`.
        """
        model = as_model(models.CreateTableTagRequest, request)
        data = TableData.of(self, model.id)
        with data.specified_errors():
            is_new = create_tag(data.open(), data.files, model.tag, _checked_version(data, model))
        if not is_new:
            raise TableTagAlreadyExistsError(f"table {data.id} has a tag {model.tag!r}")
        return models.CreateTableTagResponse()

    def update_table_tag(self, request: AnyRequest) -> models.UpdateTableTagResponse:
        """Move a tag to another version.

        Raises:
            TableTagNotFoundError: (8) there is no such tag.
            TableVersionNotFoundError: (11) there is no such version.
            ConcurrentModificationError: (14) a clean-up may be removing it.
            LanceNamespaceError: see `opened`.
        """
        model = as_model(models.UpdateTableTagRequest, request)
        data = TableData.of(self, model.id)
        with data.specified_errors():
            exists = move_tag(data.open(), data.files, model.tag, _checked_version(data, model))
        if not exists:
            raise _no_tag(model)
        return models.UpdateTableTagResponse()

    def delete_table_tag(self, request: AnyRequest) -> models.DeleteTableTagResponse:
        """Delete a tag; its version is kept until a clean-up.

        Raises:
            TableTagNotFoundError: (8) there is no such tag.
            LanceNamespaceError: see `opened`.
        """
        model = as_model(models.DeleteTableTagRequest, request)
        with opened(self, model) as dataset:
            existed = delete_tag(dataset, model.tag)
        if not existed:
            raise _no_tag(model)
        return models.DeleteTableTagResponse()

    def list_table_branches(self, request: AnyRequest) -> models.ListTableBranchesResponse:
        """List a table's branches by name, paginated.

        Raises:
            LanceNamespaceError: see `opened`.
        """
        model = as_model(models.ListTableBranchesRequest, request)
        with opened(self, model) as dataset:
            found: Mapping[str, Any] = list_branches(dataset)
        page = page_of(found, model.page_token, model.limit)
        branches = {name: _branch(found[name]) for name in page.names}
        return models.ListTableBranchesResponse(branches=branches, page_token=page.token)

    def create_table_branch(self, request: AnyRequest) -> models.CreateTableBranchResponse:
        """Create a branch of a version, by default of the newest one of main.

        Raises:
            TableBranchAlreadyExistsError: (23) there is a branch of that name.
            TableVersionNotFoundError: (11) there is no such version.
            ConcurrentModificationError: (14) a clean-up may be removing it.
            LanceNamespaceError: see `opened`.
        """
        model = as_model(models.CreateTableBranchRequest, request)
        data = TableData.of(self, model.id)
        with data.specified_errors():
            check_links(data.location, model.name)
            parent = data.open(model.from_version, model.from_branch)
            version = (model.from_branch, parent.version) if model.from_branch else parent.version
            is_new = create_branch(parent, data.files, model.name, version)
        if not is_new:
            raise TableBranchAlreadyExistsError(f"table {data.id} has a branch {model.name!r}")
        return models.CreateTableBranchResponse()

    def delete_table_branch(self, request: AnyRequest) -> models.DeleteTableBranchResponse:
        """Delete a branch with its versions.

        Raises:
            TableBranchNotFoundError: (22) there is no such branch.
            LanceNamespaceError: see `opened`.
        """
        model = as_model(models.DeleteTableBranchRequest, request)
        with opened(self, model) as dataset:
            if model.name not in list_branches(dataset):
                raise TableBranchNotFoundError(
                    f"table {'$'.join(model.id or ())} has no branch {model.name!r}"
                )
            check_links(dataset.uri, model.name)
            dataset.branches.delete(model.name)
        return models.DeleteTableBranchResponse()


def _no_tag(model: Any) -> TableTagNotFoundError:
    return TableTagNotFoundError(f"table {'$'.join(model.id)} has no tag {model.tag!r}")


def _checked_version(data: TableData, model: Any) -> Any:
    """Return a reference to the version to tag.

    Raises:
        TableVersionNotFoundError: (11) there is none.
    """
    try:
        data.open(model.version, model.branch)
    except ValueError as error:
        raise TableVersionNotFoundError(
            f"table {data.id}: branch {model.branch!r} has no version {model.version}"
        ) from error
    return (model.branch, model.version) if model.branch else model.version


def _tag(stored: Mapping[str, Any]) -> models.TagContents:
    return models.TagContents(
        branch=stored.get("branch"), version=stored["version"], manifest_size=stored["manifest_size"]
    )


def _branch(stored: Mapping[str, Any]) -> models.BranchContents:
    return models.BranchContents(
        parent_branch=stored.get("parent_branch"),
        parent_version=stored["parent_version"],
        create_at=stored["create_at"],
        manifest_size=stored["manifest_size"],
    )
