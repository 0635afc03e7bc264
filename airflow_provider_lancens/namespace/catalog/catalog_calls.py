"""Calls of a catalog's implementation, each with a deadline and with the specification's errors.

An implementation is opened when it is first called, since opening one may read its storage. Its calls have no
deadline of their own, pylance's REST client none at all, so each runs in a thread that isn't waited for
longer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.catalog.catalog_errors import catalog_error, cause_of
from airflow_provider_lancens.namespace.catalog.catalog_settings import CatalogSettings
from airflow_provider_lancens.namespace.deadline import Deadline, within

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace

T = TypeVar("T")

_MOST_UNANSWERED = 32
"""Calls that were given up and still run; each has a thread and a connection until it ends."""


class CatalogCalls:
    """The implementation of a catalog, opened by its first call. Thread-safe.

    Args:
        settings: what it is opened with.
        implementation: its class.
    """

    def __init__(self, settings: CatalogSettings, implementation: type[LanceNamespace]) -> None:
        self._settings = settings
        self._class = implementation
        self._opened: LanceNamespace | None = None
        self._lock = threading.Lock()
        self._unanswered = 0

    def call(self, operation: str, *arguments: Any) -> Any:
        """Call an operation of the implementation.

        Args:
            operation: its name.
            arguments: the request, and the rows if the operation takes rows.

        Raises:
            UnsupportedOperationError: (0) it hasn't this operation.
            InvalidInputError: (13) its class refused the properties.
            ServiceUnavailableError: (17) no answer in time.
        """

        def run() -> Any:
            method = getattr(self._implementation(), operation, None)
            if method is None:  # the class implements an older version of the interface
                raise NotImplementedError("its class has no such operation")
            return method(*arguments)

        try:
            return self._within_time(operation, run)
        except TimeoutError:
            raise spec_errors.ServiceUnavailableError(
                f"{operation}: catalog {self._shown} didn't answer within {self._settings.timeout:g} s"
            ) from None
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
                raise
            raise self._converted(error, operation) from cause_of(error, self._settings.secrets)

    def close(self) -> None:
        """Forget the implementation, whose connections end with it; the next call opens another one."""
        with self._lock:
            opened, self._opened = self._opened, None
        close = getattr(opened, "close", None)
        if close is not None:
            close()

    @property
    def _shown(self) -> str:
        return f"{self._settings.impl} at {self._settings.address or 'an address of its own'}"

    def _converted(self, error: BaseException, operation: str) -> spec_errors.LanceNamespaceError:
        settings = self._settings
        return catalog_error(error, operation, settings.impl, settings.secrets, settings.address)

    def _implementation(self) -> LanceNamespace:
        with self._lock:
            if self._opened is not None:
                return self._opened
        # Outside of the lock: a call that hangs here must not block later calls.
        try:
            opened = self._class(**self._settings.own)
        except (TypeError, ValueError, KeyError) as error:
            converted = catalog_error(error, "opening", self._settings.impl, self._settings.secrets)
            if not isinstance(converted, spec_errors.InternalError):
                raise converted from cause_of(error, self._settings.secrets)
            said = catalog_error(
                ValueError(str(error)), "opening", self._settings.impl, self._settings.secrets
            )
            raise spec_errors.InvalidInputError(
                f"the class of catalog {self._settings.impl} refused its properties "
                f"({', '.join(sorted(self._settings.own)) or 'none'}): {said}"
            ) from cause_of(error, self._settings.secrets)
        with self._lock:
            self._opened = self._opened or opened
            return self._opened

    def _within_time(self, operation: str, run: Callable[[], T]) -> T:
        with self._lock:
            if self._unanswered >= _MOST_UNANSWERED:
                raise spec_errors.ServiceUnavailableError(
                    f"{operation}: catalog {self._shown} hasn't answered {self._unanswered} earlier requests"
                )
            self._unanswered += 1

        def counted() -> T:
            try:
                return run()
            finally:
                with self._lock:
                    self._unanswered -= 1

        return within(Deadline(self._settings.timeout), operation, counted)
