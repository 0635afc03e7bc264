"""Batched reads of catalog tables, in which a table that can't be read doesn't fail the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors

if TYPE_CHECKING:
    from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable

OF_THE_SERVER = (
    spec_errors.ServiceUnavailableError,
    spec_errors.ThrottlingError,
    spec_errors.UnauthenticatedError,
)
"""Errors of the server rather than of a table: the next request would fail the same way."""
_OF_THE_TABLE = spec_errors.PermissionDeniedError
"""An answer about a table: a server that denies it isn't failing, however many tables are denied."""
_NONE_OF_SO_MANY = 5
"""Number of failed tables, with none read successfully, after which the server is considered failing."""


@dataclass(slots=True)
class BatchRead:
    """Result of reading some catalog tables."""

    tables: list[CatalogTable] = field(default_factory=list)
    failures: dict[str, spec_errors.LanceNamespaceError] = field(default_factory=dict)
    """Error by name of each table that can't be read."""


def read_each(
    names: Sequence[str],
    read: Callable[[Sequence[str]], Sequence[CatalogTable]],
    *,
    server_answers: bool = False,
) -> BatchRead:
    """Read a batch of catalog tables by one call; if that fails, bisect until the failing tables are found.

    Args:
        names: the tables to read.
        read: reads some of them by one call, and omits tables that don't exist.
        server_answers: whether the server has already returned tables, so that it isn't failing.

    Returns:
        The tables that could be read, and the error of each other table.

    Raises:
        NamespaceNotFoundError: (1) the namespace doesn't exist.
        UnauthenticatedError: (16) the server refused the credentials.
        ServiceUnavailableError: (17) the server failed, or fails for one table after the other.
        ThrottlingError: (21) the server throttles requests.
    """
    result = BatchRead()
    failed_first = _bisect(result, names, read, server_answers=server_answers)
    # These failed before any table was read, maybe since the server failed: read them once more.
    for name in failed_first if result.tables else ():
        del result.failures[name]
        if (error := _add(result, [name], read)) is not None:
            result.failures[name] = error
    return result


def _bisect(
    result: BatchRead,
    names: Sequence[str],
    read: Callable[[Sequence[str]], Sequence[CatalogTable]],
    *,
    server_answers: bool,
) -> list[str]:
    """Add the tables and the failures to a result; return the tables that failed before any was read."""
    batches, failed_first = [names], []
    while batches:
        batch = batches.pop()
        error = _add(result, batch, read)
        if error is not None and len(batch) > 1:
            middle = len(batch) // 2
            batches += [batch[middle:], batch[:middle]]
        elif error is not None:
            result.failures[batch[0]] = error
            if not (server_answers or result.tables or isinstance(error, _OF_THE_TABLE)):
                failed_first.append(batch[0])
                _check_not_failing(len(failed_first), error)
    return failed_first


def _add(
    result: BatchRead, batch: Sequence[str], read: Callable[[Sequence[str]], Sequence[CatalogTable]]
) -> spec_errors.LanceNamespaceError | None:
    """Add the tables of a batch to a result; return the error if one of them can't be read."""
    try:
        result.tables += read(batch)
    except (spec_errors.NamespaceNotFoundError, *OF_THE_SERVER):
        raise
    except spec_errors.LanceNamespaceError as error:
        return error
    return None


def read_one_by_one(
    names: Iterable[str], read: Callable[[str], CatalogTable | None], *, server_answers: bool = False
) -> Iterator[BatchRead]:
    """Read catalog tables lazily, each by a call of its own.

    Args:
        names: the tables to read.
        read: reads one of them; None if it doesn't exist.
        server_answers: as for `read_each`, which raises the same errors.
    """
    failed_first: dict[str, spec_errors.LanceNamespaceError] = {}
    for name in names:
        try:
            table = read(name)
        except (spec_errors.NamespaceNotFoundError, *OF_THE_SERVER):
            raise
        except spec_errors.LanceNamespaceError as error:
            if server_answers or isinstance(error, _OF_THE_TABLE):
                yield BatchRead(failures={name: error})
            else:
                failed_first[name] = error
                _check_not_failing(len(failed_first), error)
        else:
            server_answers = True
            if table:
                yield BatchRead([table])
            # These failed before this table was read, maybe since the server failed: read them once more.
            yield from read_one_by_one([*failed_first], read, server_answers=True)
            failed_first = {}
    if failed_first:
        yield BatchRead(failures=failed_first)


def _check_not_failing(failed: int, error: spec_errors.LanceNamespaceError) -> None:
    if failed >= _NONE_OF_SO_MANY:
        from airflow_provider_lancens.namespace.error_types import UnreadableTablesError

        raise UnreadableTablesError(f"none of {failed} tables could be read; last error: {error}") from error
