"""How an operation of Glue is called: all pages of a list, and no change that is reported wrongly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lance_namespace.errors import LanceNamespaceError, ServiceUnavailableError

from airflow_provider_lancens.namespace.glue.client import GlueClient
from airflow_provider_lancens.namespace.glue.errors import (
    Meanings,
    glue_errors,
    is_in_doubt,
    of_service,
    sdk_errors,
)
from airflow_provider_lancens.namespace.glue.settings import GlueSettings

PAGE = 100
"""The most that Glue answers at once, and the most names that a batch may hold."""


class Calls:
    """Calls to one Data Catalog, with its errors translated."""

    def __init__(self, settings: GlueSettings) -> None:
        """Take the settings; nothing is opened."""
        self._settings = settings
        self._client = GlueClient(settings)
        self._catalog = {"CatalogId": settings.catalog_id} if settings.catalog_id else {}

    @property
    def where(self) -> str:
        """The service, in words."""
        return str(self._settings)

    @property
    def endpoint(self) -> str:
        """The service's address, whether a property says it or the SDK's default chain."""
        with glue_errors({}, "find the service's address", self._settings):
            return str(self._client.get().meta.endpoint_url)

    def call(self, meanings: Meanings, attempt: str, operation: str, **arguments: Any) -> Mapping[str, Any]:
        """Call an operation whose repetition does no harm.

        Args:
            meanings: what an error's code means here.
            attempt: what is attempted on what, for the message.
            operation: its name in the SDK, as ``get_table``.
            arguments: the operation's own, without the catalog.
        """
        with glue_errors(meanings, attempt, self._settings):
            return self._send(operation, arguments)

    def read(self, meanings: Meanings, attempt: str, operation: str, answer: str, **arguments: Any) -> Any:
        """The same for an operation that reads: the named member of its answer."""
        return self._member(self.call(meanings, attempt, operation, **arguments), answer, attempt)

    def pages(
        self, meanings: Meanings, attempt: str, operation: str, answer: str, **arguments: Any
    ) -> Iterator[Mapping[str, Any]]:
        """The entries of a list, page by page as they are asked for; a page that fails is an error."""
        with glue_errors(meanings, attempt, self._settings):
            paginator = self._client.get().get_paginator(operation)
            paging = {"PageSize": PAGE}
            for page in paginator.paginate(**self._catalog, **arguments, PaginationConfig=paging):
                yield from self._member(page, answer, attempt)

    def change(
        self, meanings: Meanings, attempt: str, operation: str, happened: Callable[[], bool], **arguments: Any
    ) -> None:
        """Call an operation that changes something; where an error leaves it open, the server is asked.

        Args:
            meanings: what an error's code means here.
            attempt: what is attempted on what, for the message.
            operation: its name in the SDK.
            happened: whether the change stands on the server.
            arguments: the operation's own, without the catalog.
        """
        with glue_errors(meanings, attempt, self._settings):
            try:
                self._send(operation, arguments)
            except sdk_errors() as error:
                if not (is_in_doubt(error) and happened()):
                    raise

    def error_of(self, detail: Mapping[str, str], meanings: Meanings, attempt: str) -> LanceNamespaceError:
        """The error for one part of a batch, by the detail that came back for it."""
        error = {"Code": detail.get("ErrorCode", ""), "Message": detail.get("ErrorMessage", "")}
        return of_service({"Error": error}, meanings, attempt, self._settings)

    def input_shape(self, name: str) -> Any:
        """The SDK's own model of an input, such as ``TableInput``."""
        return self._client.get().meta.service_model.shape_for(name)

    def close(self) -> None:
        """Give up idle connections."""
        self._client.close()

    def _send(self, operation: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = getattr(self._client.get(), operation)(**self._catalog, **arguments)
        return answer

    def _member(self, answer: Mapping[str, Any], name: str, attempt: str) -> Any:
        if name not in answer:
            raise ServiceUnavailableError(
                f"cannot {attempt} ({self._settings}): the answer holds no {name}; is this Glue?"
            )
        return answer[name]
