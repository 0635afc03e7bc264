"""Calls of Glue operations, with pagination and verification of changes."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lance_namespace.errors import InvalidInputError, LanceNamespaceError, ServiceUnavailableError

from airflow_provider_lancens.namespace.glue.errors import (
    ErrorMap,
    glue_errors,
    is_ambiguous,
    sdk_errors,
    service_error,
)
from airflow_provider_lancens.namespace.glue.settings import GlueSettings
from airflow_provider_lancens.redaction import redact, shareable_cause

PAGE = 100
"""Maximum number of items in a page of Glue's, and of names in a batch."""


@dataclass(frozen=True, slots=True)
class GlueCall:
    """Call of one of the service's operations."""

    operation: str
    """Name of the operation in the SDK, such as ``get_table``."""
    arguments: Mapping[str, Any]
    """The operation's own arguments, without the catalog."""
    attempt: str
    """Description of the call, for messages, such as "read table db$t"."""
    errors: ErrorMap
    """Errors by the service's codes, where the call gives them a meaning of its own."""


class GlueApi:
    """Calls to one Data Catalog, with its errors translated."""

    def __init__(self, settings: GlueSettings) -> None:
        """Take the settings; nothing is opened."""
        self._settings = settings
        self._client = GlueClient(settings)
        self._catalog = {"CatalogId": settings.catalog_id} if settings.catalog_id else {}

    @property
    def where(self) -> str:
        """Display name of the service."""
        return str(self._settings)

    @property
    def endpoint(self) -> str:
        """Address of the service, from a property or the SDK's default chain."""
        with glue_errors({}, "determine the service's endpoint", self._settings):
            return str(self._client.get().meta.endpoint_url)

    def send(self, call: GlueCall) -> Mapping[str, Any]:
        """Make an idempotent call, and return its response."""
        with glue_errors(call.errors, call.attempt, self._settings):
            return self._send(call)

    def read(self, call: GlueCall, member: str) -> Any:
        """Make a read-only call, and return the named member of its response."""
        return self._member(self.send(call), member, call.attempt)

    def pages(self, call: GlueCall, member: str) -> Iterator[Sequence[Mapping[str, Any]]]:
        """Iterate over the pages of a list, fetched lazily.

        The SDK repeats a page that fails, from its token on; a page that keeps failing is an error.
        """
        with glue_errors(call.errors, call.attempt, self._settings):
            paginator = self._client.get().get_paginator(call.operation)
            paging = {"PageSize": PAGE}
            for page in paginator.paginate(**self._catalog, **call.arguments, PaginationConfig=paging):
                yield self._member(page, member, call.attempt)

    def change(self, call: GlueCall, took_effect: Callable[[], bool]) -> None:
        """Make a call that changes something; after an ambiguous error, verify on the server.

        Args:
            call: the call.
            took_effect: returns whether the change took effect on the server.
        """
        with glue_errors(call.errors, call.attempt, self._settings):
            try:
                self._send(call)
            except sdk_errors() as error:
                if not (is_ambiguous(error) and took_effect()):
                    raise

    def drop_table(self, call: GlueCall, is_gone: Callable[[], bool]) -> None:
        """Make a call that drops a table, and isn't repeated if that is gone.

        The SDK repeats a call whose reply was lost, and would drop another table that was created under the
        name since.

        Args:
            call: the call.
            is_gone: returns whether the table is gone on the server.
        """
        with self._client.verified_drop(is_gone), contextlib.suppress(_GoneError):
            self.change(call, is_gone)

    def error_of(self, detail: Mapping[str, str], errors: ErrorMap, attempt: str) -> LanceNamespaceError:
        """Return the error for one item of a batch, given the response's detail for it."""
        error = {"Code": detail.get("ErrorCode", ""), "Message": detail.get("ErrorMessage", "")}
        return service_error({"Error": error}, errors, attempt, self._settings)

    def input_shape(self, name: str) -> Any:
        """Return the SDK's model of an input, such as ``TableInput``."""
        return self._client.get().meta.service_model.shape_for(name)

    def close(self) -> None:
        """Close idle connections."""
        self._client.close()

    def _send(self, call: GlueCall) -> Mapping[str, Any]:
        operation = getattr(self._client.get(), call.operation)
        response: Mapping[str, Any] = operation(**self._catalog, **call.arguments)
        return response

    def _member(self, response: Mapping[str, Any], name: str, attempt: str) -> Any:
        if name not in response:
            raise ServiceUnavailableError(
                f"cannot {attempt} ({self._settings}): the response has no {name}; is the endpoint "
                "a Glue service?"
            )
        return response[name]


class _GoneError(Exception):
    """A table that was to be dropped is gone after a reply was lost."""


class GlueClient:
    """Lazily created boto3 client, recreated in a forked process."""

    def __init__(self, settings: GlueSettings) -> None:
        """Take the settings; nothing is opened."""
        self._settings = settings
        self._lock = threading.Lock()
        self._created: tuple[int, Any] | None = None
        self._drop = threading.local()
        """How a thread that drops a table verifies the drop."""

    @contextlib.contextmanager
    def verified_drop(self, is_gone: Callable[[], bool]) -> Iterator[None]:
        """Let a call that drops a table fail with `_GoneError` rather than be repeated if that is gone."""
        self._drop.sent, self._drop.is_gone = 0, is_gone
        try:
            yield
        finally:
            del self._drop.is_gone

    def _before_drop(self, **_request: Any) -> None:
        is_gone = getattr(self._drop, "is_gone", None)
        if is_gone is None:  # the probe drops its own table without this check
            return
        self._drop.sent += 1
        if self._drop.sent > 1 and is_gone():
            raise _GoneError

    def get(self) -> Any:
        """Return the client, which is thread-safe, although its creation isn't.

        Raises:
            InvalidInputError: (13) the endpoint or the region is invalid.
            botocore.exceptions.BotoCoreError: no region, or a profile that doesn't exist.
        """
        with self._lock:
            # After a fork, the client is created anew: two processes on one socket would mix responses.
            if self._created is None or self._created[0] != os.getpid():
                self._created = os.getpid(), self._make()
            return self._created[1]

    def close(self) -> None:
        """Close idle connections; the next call creates a new client."""
        with self._lock:
            made, self._created = self._created, None
        if made and made[0] == os.getpid():
            made[1].close()

    def _make(self) -> Any:
        import boto3  # the import takes half a second, so only calls to a catalog do it
        from botocore.config import Config

        settings, credentials = self._settings, self._settings.credentials
        session = boto3.session.Session(
            aws_access_key_id=credentials and credentials.access_key_id,
            aws_secret_access_key=credentials and credentials.secret_access_key,
            aws_session_token=credentials and credentials.session_token,
            region_name=settings.region,
        )
        config = Config(
            connect_timeout=settings.connect_timeout,
            read_timeout=settings.read_timeout,
            retries={"mode": "adaptive", "total_max_attempts": settings.max_attempts},
        )
        try:
            client = session.client("glue", endpoint_url=settings.endpoint, config=config)
        except ValueError as error:  # raised by the SDK for an invalid host or region
            raise InvalidInputError(
                f"{settings}: {redact(str(error))}; check 'endpoint' and 'region'"
            ) from shareable_cause(error)
        client.meta.events.register("before-send.glue.DeleteTable", self._before_drop)
        return client
