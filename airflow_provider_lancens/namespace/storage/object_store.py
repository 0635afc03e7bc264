"""Read access to a table's location through the object store, without importing Lance.

`obstore` wraps the Rust library that Lance itself uses, so it takes Lance's own storage options, and reading
a version this way costs a triggerer one listing request.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import obstore
from obstore import exceptions
from obstore.store import LocalStore, ObjectStore, from_url

from airflow_provider_lancens.identifiers import FIRST_STAGED
from airflow_provider_lancens.namespace.locations import Location, is_local, normalize
from airflow_provider_lancens.namespace.storage import local_folder
from airflow_provider_lancens.namespace.storage.aws_credentials import credential_provider
from airflow_provider_lancens.namespace.storage.storage_errors import (
    invalid_option,
    invalid_url,
    is_refused_bulk_delete,
    storage_error,
)
from airflow_provider_lancens.namespace.storage.vended_options import snapshot
from airflow_provider_lancens.redaction import redact, secret_values

log = logging.getLogger(__name__)

StoreId = tuple[str, str]
"""A bucket with its scheme, and the given endpoint."""

VERSIONS = "_versions"
BRANCHES = "tree"
"""Folder of a dataset's branches, each of which is a dataset below it."""
TAGS = "_refs/tags"
"""Folder of a table's tags."""
RECORDED = "_lancens"
"""This package's folder beside Lance's; each module that writes there names its subfolder."""
MANIFEST_SUFFIX = ".manifest"
_V2_DIGITS = 20
_V2_LENGTH = _V2_DIGITS + len(MANIFEST_SUFFIX)
_V2_TOP = 2**64 - 1
"""Detached versions have greater numbers."""
_PAGE = 1000
_CLIENT_KEYS = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "default_content_type",
        "http1_only",
        "http2_keep_alive_interval",
        "http2_keep_alive_timeout",
        "http2_keep_alive_while_idle",
        "http2_max_frame_size",
        "http2_only",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_ca_certificate",
        "proxy_excludes",
        "proxy_url",
        "randomize_addresses",
        "timeout",
        "user_agent",
    }
)
_CLIENT_PREFIXES = ("aws_", "azure_", "google_")
_TIMEOUTS = {"connect_timeout": timedelta(seconds=10), "timeout": timedelta(seconds=30)}
_from_url: Callable[..., ObjectStore] = from_url  # its overloads require the kind of store to be known
_RETRIES = {"max_retries": 3, "retry_timeout": timedelta(seconds=60)}
_SHORT_TIMEOUTS = {"connect_timeout": timedelta(seconds=3), "timeout": timedelta(seconds=8)}
_FEW_RETRIES = {"max_retries": 1, "retry_timeout": timedelta(seconds=8)}
"""With these, a request fails within half a minute, also a request for the credentials of an instance."""
_ALLOW_HTTP = "allow_http"
_DIRECTORY_BUCKET = "--x-s3"
"""How the name of each directory bucket of S3 ends; no other bucket's does."""
_EXPRESS, _SINGLE_DELETES = "s3_express", "disable_bulk_delete"
_ENDPOINTS = ("endpoint", "endpoint_url", "endpoint_url_s3")
_AWS = "aws_"
_MISSING = (exceptions.NotFoundError, FileNotFoundError)
_without_bulk_deletes: set[StoreId] = set()
"""The stores that have refused to delete several objects by one request, for this process."""


def latest_version(
    location: str, storage_options: Mapping[str, str], *, is_optional: bool = False
) -> int | None:
    """Return the newest version of the dataset at a location.

    Args:
        location: the table's root, as `describe_table` returns it.
        storage_options: Lance's storage options for it.
        is_optional: as of `open_store`.

    Returns:
        The version; None if there is no dataset yet.

    Raises:
        InvalidInputError: (13) the location is invalid on every storage that Lance supports, or the folder of
            its versions is a symbolic link.
        PermissionDeniedError: (15) access is denied.
        UnauthenticatedError: (16) the storage refused the credentials.
        ServiceUnavailableError: (17) the storage can't be reached or returned an error, or the bucket does
            not exist.
    """
    newest = newest_manifest(location, storage_options, is_optional=is_optional)
    return None if newest is None else version_of(newest)


def newest_manifest(
    location: str, storage_options: Mapping[str, str], *, is_optional: bool = False
) -> str | None:
    """Return the path of the newest version's manifest, relative to the location; None if there is none.

    It costs one listing request, of the newest thousand names where the dataset has V2 names and the store
    lists by name; a store that lists in another order is asked for all of them.

    Args:
        location: the table's root.
        storage_options: Lance's storage options for it.
        is_optional: as of `open_store`.

    Raises:
        LanceNamespaceError: as `latest_version`.
    """
    location = Location.of(location)
    store = open_store(location, storage_options, is_optional=is_optional)
    if store is None:
        return None
    with storage_errors(location, storage_options):
        if isinstance(store, LocalStore):
            folder = Path(location)
            local_folder.check_folder(folder, VERSIONS)
            return _newest_of(local_folder.names_in(folder / VERSIONS))
        return _newest_listed(store, lists_by_name=not is_directory_bucket(location))


def _newest_listed(store: ObjectStore, *, lists_by_name: bool) -> str | None:
    newest: str | None = None
    for page in obstore.list(store, prefix=VERSIONS, chunk_size=_PAGE):
        names = [entry["path"].rpartition("/")[2] for entry in page]
        newest = _newest_of(names, newest)
        if newest and lists_by_name and _is_newest_first(names):
            break
    return newest


def _newest_of(names: Sequence[str], before: str | None = None) -> str | None:
    if not before and (newest := _newest_v2(names)):
        return newest
    numbered = [
        (version, f"{VERSIONS}/{name}") for name in names if (version := version_of(name)) is not None
    ]
    if before is not None:
        numbered.append((version_of(before) or 0, before))
    return max(numbered)[1] if numbered else None


def _newest_v2(names: Sequence[str]) -> str | None:
    """Return the newest version's path if all versions have V2 names; quick for very many.

    They all have one length and count down, so none but the first by name needs to be parsed.
    """
    of_length = [name for name in names if len(name) == _V2_LENGTH]
    newest = min(of_length, default="")
    if version_of(newest) is None or any(len(name) < _V2_LENGTH and version_of(name) for name in names):
        return None
    return f"{VERSIONS}/{newest}"


def manifest_names(version: int) -> tuple[str, str]:
    """Return the file names of a version's manifest: the V2 naming scheme's, then V1's."""
    return f"{_V2_TOP - version:020d}{MANIFEST_SUFFIX}", f"{version}{MANIFEST_SUFFIX}"


def version_of(path: str) -> int | None:
    """Return the version of a manifest's path; None for detached, staging and other files."""
    name = path.rpartition("/")[2]
    digits = name.removesuffix(MANIFEST_SUFFIX)
    if digits == name or not digits.isascii() or not digits.isdecimal():
        return None
    version = _V2_TOP - int(digits) if len(digits) == _V2_DIGITS else int(digits)
    return version if 0 <= version < FIRST_STAGED else None


def is_detached(version: int) -> bool:
    """Return whether a number belongs to a detached version, which only its own manifest shows."""
    return isinstance(version, int) and version >= FIRST_STAGED


def detached_name(version: int) -> str:
    """Return the file name of a detached version's manifest."""
    return f"d{version}{MANIFEST_SUFFIX}"


def detached_version_of(path: str) -> int | None:
    """Return the version of a detached manifest's path; None for any other file."""
    digits = path.rpartition("/")[2].removeprefix("d").removesuffix(MANIFEST_SUFFIX)
    is_number = digits.isascii() and digits.isdecimal() and is_detached(int(digits))
    return int(digits) if is_number and path.endswith(detached_name(int(digits))) else None


def open_store(
    location: str, storage_options: Mapping[str, str], *, is_optional: bool = False
) -> ObjectStore | None:
    """Open the object store at a location; None if a local folder doesn't exist.

    Args:
        location: the table's root.
        storage_options: Lance's storage options for it.
        is_optional: whether the caller goes on without an answer, and so is not to wait for minutes for a
            store that can't be reached.

    Raises:
        InvalidInputError: (13) the location, a storage option or the selected AWS profile is invalid.
        UnauthenticatedError: (16) the selected AWS profile has no credentials.
    """
    location = Location.of(location)
    if is_local(location):
        path = Path(location)
        return LocalStore(path, automatic_cleanup=True) if path.is_dir() else None
    url, storage_options = str(location), snapshot(storage_options)
    client, config = _split_options(url.partition("://")[0], storage_options)
    provider = None
    if is_s3(location):
        config = _default_options(location, storage_options) | config
        provider = credential_provider(config)
        if allowed := os.environ.get(f"{_AWS}{_ALLOW_HTTP}".upper()):  # as Lance reads it
            client.setdefault(_ALLOW_HTTP, allowed)
    client = {**client, **_SHORT_TIMEOUTS} if is_optional else {**_TIMEOUTS, **client}
    try:
        return _remote_store(
            url, frozenset(config.items()), frozenset(client.items()), provider, is_optional=is_optional
        )
    except (exceptions.BaseError, ValueError) as error:
        # The library quotes the value of an option, which may be a misplaced secret.
        for key, value in storage_options.items():
            if expected := _allowed_value(url, key, value):
                raise invalid_option(location, key, expected) from None
        raise invalid_url(error, location, secret_values(storage_options)) from None


def supports_bulk_deletes(location: str, storage_options: Mapping[str, str]) -> bool:
    """Whether no bulk delete of this process was refused by the store of a location."""
    return store_id(location, storage_options) not in _without_bulk_deletes


def delete_objects(location: str, storage_options: Mapping[str, str], paths: Collection[str]) -> None:
    """Delete objects, on S3 a thousand by one request if the store supports that; missing ones may be named.

    A store that refuses these requests is remembered, and then asked to delete each object by itself.

    Args:
        location: the table's root, which is not local.
        storage_options: Lance's storage options for it.
        paths: the objects, relative to the location.

    Raises:
        LanceNamespaceError: (15, 16, 17) as `latest_version`.
    """
    store = open_store(location, storage_options)
    with storage_errors(location, storage_options):
        try:
            _delete(store, paths)
        except (exceptions.BaseError, *_MISSING) as error:
            if not is_refused_bulk_delete(error):
                raise
            single = {f"{_AWS}{_SINGLE_DELETES}": "true"}
            _delete(open_store(location, {**snapshot(storage_options), **single}), paths)
            _without_bulk_deletes.add(store_id(location, storage_options))
            log.info("storage at %s refuses bulk deletes: objects are deleted one by one", redact(location))


def _delete(store: Any, paths: Collection[str]) -> None:
    try:
        obstore.delete(store, list(paths))
    except _MISSING as error:
        if is_refused_bulk_delete(error):
            raise
        for path in paths:  # the request ended at the first missing object, and may have left the others
            with contextlib.suppress(*_MISSING):
                obstore.delete(store, path)


def store_id(location: str, storage_options: Mapping[str, str]) -> StoreId:
    """Return what identifies the store of a location, in whose behavior no two of its locations differ."""
    split = urlsplit(normalize(location))
    given = (storage_options.get(f"{prefix}{key}") for key in _ENDPOINTS for prefix in (_AWS, ""))
    return f"{split.scheme}://{split.netloc}", next((value for value in given if value), "")


def is_s3(location: str) -> bool:
    """Whether a location is in S3, or in a store of others with its interface."""
    return normalize(location).startswith("s3://")


def is_directory_bucket(location: str) -> bool:
    """Whether a location is in a directory bucket of S3, which lists its objects in no order."""
    return is_s3(location) and urlsplit(normalize(location)).netloc.endswith(_DIRECTORY_BUCKET)


@contextlib.contextmanager
def storage_errors(
    location: str,
    storage_options: Mapping[str, str] | None = None,
    passing: tuple[type[Exception], ...] = (),
) -> Iterator[None]:
    """Turn the errors of the object store and of the file system into the specification's.

    Args:
        location: the location that is read or written; the message names it.
        storage_options: Lance's storage options; their values are not shown.
        passing: exception types that the caller handles; they are re-raised unchanged.

    Raises:
        PermissionDeniedError: (15) access is denied, or the file system is read-only.
        UnauthenticatedError: (16) the storage refused the credentials.
        ServiceUnavailableError: (17) it can't be reached, is full, or failed.
        UnsupportedOperationError: (0) it lacks what is needed.
    """
    try:
        yield
    except passing:
        raise
    except (exceptions.BaseError, OSError, NotImplementedError) as error:
        # Not chained: the store's own text includes its request in detail, with credentials.
        raise storage_error(error, location, secret_values(storage_options or {})) from None


def _default_options(location: str, storage_options: Mapping[str, str]) -> dict[str, str]:
    """Return the options for S3 that its location implies, as Lance does, or that are known of the store."""
    implied = {
        _EXPRESS: is_directory_bucket(location),
        _SINGLE_DELETES: not supports_bulk_deletes(location, storage_options),
    }
    return {
        key: "true"
        for key, applies in implied.items()
        if applies and not {key, f"{_AWS}{key}"} & storage_options.keys()
    }


def _split_options(scheme: str, options: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Split Lance's options into options of the HTTP client and options of the store."""
    client: dict[str, Any] = {}
    config: dict[str, str] = {}
    for key, value in options.items():
        plain = next((key.removeprefix(p) for p in _CLIENT_PREFIXES if key.startswith(p)), key)
        if plain in _CLIENT_KEYS:
            client[plain] = value
        elif _is_known_option(scheme, key):
            config[key] = value
    return client, config


def _allowed_value(url: str, key: str, value: str) -> str | None:
    """Return what the store expects of an option, as its message says; None if the value is valid."""
    client, config = _split_options(url.partition("://")[0], {key: value})
    try:
        _from_url(url, config=config, client_options=client)
    except exceptions.BaseError as error:
        _, failed, expected = str(error).partition("\n")[0].rpartition('" as ')
        return expected if failed else None
    except ValueError:
        return None  # the URL is invalid, not an option
    return None


def _is_newest_first(names: Sequence[str]) -> bool:
    # V2 names count down, so a store that lists by name lists the newest first. Not all stores do.
    return len(names[0]) == _V2_LENGTH and all(a <= b for a, b in itertools.pairwise(names))


@functools.lru_cache(maxsize=64)
def _remote_store(
    url: str, config: frozenset[Any], client: frozenset[Any], provider: object, *, is_optional: bool
) -> ObjectStore:
    # Cached, since creating one reads the system's certificates, and a used one holds open connections.
    retries = _FEW_RETRIES if is_optional else _RETRIES
    signing = {} if provider is None else {"credential_provider": provider}
    return _from_url(url, config=dict(config), client_options=dict(client), retry_config=retries, **signing)


@functools.cache
def _is_known_option(scheme: str, key: str) -> bool:
    # Some options are Lance's own, and the store refuses options that it doesn't know.
    try:
        _from_url(f"{scheme}://probe", config={key: "1"})
    except exceptions.UnknownConfigurationKeyError:
        return False
    except exceptions.BaseError:
        return True
    return True
