"""What lies at a table's location, read through the object store and without loading Lance.

`obstore` is the Python face of the Rust library that Lance itself reads through, so it takes
Lance's own storage options, and reading a version this way costs a triggerer one listing request.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import obstore
from lance_namespace.errors import PermissionDeniedError, ServiceUnavailableError, UnauthenticatedError
from obstore import exceptions
from obstore.store import LocalStore, ObjectStore, from_url

from airflow_provider_lancens.namespace.locations import is_local, normalize

if TYPE_CHECKING:
    from obstore import ObjectMeta

VERSIONS = "_versions"
RECORDED = "_lancens"
"""The folder of our own beside Lance's: manifests of commits that aren't finished, see `commits`."""
MANIFEST_SUFFIX = ".manifest"
_V2_DIGITS = 20
_V2_TOP = 2**64 - 1
_PAGE = 1000
_CLIENT_KEYS = frozenset(
    {"allow_http", "allow_invalid_certificates", "connect_timeout", "proxy_url", "timeout"}
)
_TIMEOUTS = {"connect_timeout": timedelta(seconds=10), "timeout": timedelta(seconds=30)}
_from_url: Callable[..., ObjectStore] = from_url  # its overloads want the store known beforehand
_RETRIES = {"max_retries": 3, "retry_timeout": timedelta(seconds=60)}


def latest_version(location: str, storage_options: Mapping[str, str]) -> int | None:
    """The newest version of the data set at a location.

    Args:
        location: the table's root, as `describe_table` answers it.
        storage_options: Lance's storage options for it.

    Returns:
        The version; None where no data set is there yet.

    Raises:
        ServiceUnavailableError: (17) the storage can't be reached or its answer is an error.
        PermissionDeniedError: (15), UnauthenticatedError: (16) it refused these credentials.
    """
    store = open_store(location, storage_options)
    if store is None:
        return None
    newest: int | None = None
    with storage_errors(location):
        for page in obstore.list(store, prefix=VERSIONS, chunk_size=_PAGE):
            versions = [v for v in (version_of(entry["path"]) for entry in page) if v is not None]
            newest = max([*versions, *([] if newest is None else [newest])], default=None)
            if versions and _newest_come_first(store, page):
                break
    return newest


def manifest_names(version: int) -> tuple[str, str]:
    """The file names of a version's manifest: the V2 naming scheme's, then V1's."""
    return f"{_V2_TOP - version:020d}{MANIFEST_SUFFIX}", f"{version}{MANIFEST_SUFFIX}"


def version_of(path: str) -> int | None:
    """The version that a manifest's path stands for; None for detached, staging and other files."""
    name = path.rpartition("/")[2]
    digits = name.removesuffix(MANIFEST_SUFFIX)
    if digits == name or not digits.isdecimal():
        return None
    return _V2_TOP - int(digits) if len(digits) == _V2_DIGITS else int(digits)


def open_store(location: str, storage_options: Mapping[str, str]) -> ObjectStore | None:
    """The object store below a location; None where a local folder doesn't exist."""
    if is_local(location):
        path = Path(normalize(location))
        return LocalStore(path, automatic_cleanup=True) if path.is_dir() else None
    url = normalize(location)
    client: dict[str, Any] = {key: value for key, value in storage_options.items() if key in _CLIENT_KEYS}
    config = {
        key: value
        for key, value in storage_options.items()
        if key not in _CLIENT_KEYS and _understood(url.partition("://")[0], key)
    }
    with storage_errors(location):
        return _remote_store(url, frozenset(config.items()), frozenset({**_TIMEOUTS, **client}.items()))


@contextlib.contextmanager
def storage_errors(location: str, passing: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turn the object store's errors into the specification's, naming the location.

    Args:
        location: what is read or written.
        passing: the kinds that the caller understands, and gets as they are.
    """
    try:
        yield
    except passing:
        raise
    except exceptions.PermissionDeniedError as error:
        raise PermissionDeniedError(f"storage at {location}: access denied; check storage.*") from error
    except exceptions.UnauthenticatedError as error:
        raise UnauthenticatedError(f"storage at {location}: not authenticated; check storage.*") from error
    except exceptions.BaseError as error:
        reason = str(error).partition("\n")[0]
        raise ServiceUnavailableError(
            f"storage at {location} did not answer as expected: {reason}"
        ) from error


def _newest_come_first(store: ObjectStore, page: Sequence[ObjectMeta]) -> bool:
    # Object stores list by name, and V2 names count down; a local folder comes in any order.
    name = page[0]["path"].rpartition("/")[2]
    return not isinstance(store, LocalStore) and len(name) == _V2_DIGITS + len(MANIFEST_SUFFIX)


@functools.lru_cache(maxsize=64)
def _remote_store(url: str, config: frozenset[Any], client: frozenset[Any]) -> ObjectStore:
    # Kept, since making one reads the system's certificates, and a used one holds open connections.
    return _from_url(url, config=dict(config), client_options=dict(client), retry_config=_RETRIES)


@functools.cache
def _understood(scheme: str, key: str) -> bool:
    # Lance's options also hold keys of its own; the store refuses what it doesn't know.
    try:
        _from_url(f"{scheme}://probe", config={key: "1"})
    except exceptions.UnknownConfigurationKeyError:
        return False
    except exceptions.BaseError:
        return True
    return True
