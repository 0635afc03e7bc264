"""Properties of a catalog that another implementation of Lance Namespace provides."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.config import (
    Properties,
    StorageConfig,
    check_endpoint,
)
from airflow_provider_lancens.namespace.locations import normalize
from airflow_provider_lancens.namespace.property_keys import ROOT, STORAGE_PREFIX
from airflow_provider_lancens.redaction import redact, secret_values, shareable_cause

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace

IMPL, URI, TOKEN, TIMEOUT = "impl", "uri", "token", "client.timeout"
PROPERTY_PREFIX, SECRET_PREFIX = "property.", "secret."
"""Prefixes of the implementation's own properties; the values of the second are secret."""
DIR, REST = "dir", "rest"

_KNOWN = frozenset({IMPL, URI, TOKEN, TIMEOUT, ROOT, "require_root", "allowed_locations", "vend_credentials"})
_TIMEOUT = 60.0
_OWN_PACKAGE = "airflow_provider_lancens."
_AUTHORIZATION, _BEARER = "headers.Authorization", "Bearer "
_HEADER = re.compile(r"headers?\.(?P<name>.*)", re.IGNORECASE | re.DOTALL)
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_CLASS = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")


@dataclass(frozen=True, slots=True)
class CatalogSettings:
    """What is needed to open a catalog."""

    impl: str
    """``dir``, ``rest``, or the dotted path of a class."""
    own: Mapping[str, str] = field(repr=False)
    """The properties that its class is created with, including secrets."""
    secrets: frozenset[str] = field(repr=False)
    """Values that no message may contain."""
    timeout: float
    """Seconds that one request may take."""
    address: str
    """Root or URI of the catalog, without secrets; empty if it has neither."""

    @classmethod
    def parse(cls, properties: Mapping[str, str], config: StorageConfig, values: Properties) -> Self:
        """Read the properties.

        Args:
            properties: all properties, including the implementation's own.
            config: the storage settings that were read from them.
            values: the properties except the implementation's own.

        Raises:
            InvalidInputError: (13) one is missing or invalid.
        """
        impl = _implementation_of(values)
        secret = _with_prefix(properties, SECRET_PREFIX)
        own = {
            **_with_prefix(properties, PROPERTY_PREFIX),
            **secret,
            **{f"{STORAGE_PREFIX}{name}": value for name, value in config.storage_options.items()},
        }
        if config.root:
            own[ROOT] = normalize(config.root)
        secrets = {*secret.values(), *secret_values(config.storage_options)}
        if impl == DIR:
            _check_folder(values, config)
        elif impl == REST:
            own |= _service(values, own)
            secrets |= {value for name, value in own.items() if _HEADER.fullmatch(name)}
            secrets |= {value.removeprefix(_BEARER) for value in secrets}
        else:
            own |= _service_of_a_class(values, impl)
        address = redact(own.get(ROOT) or own.get(URI) or "")
        return cls(impl, own, frozenset(secrets), values.seconds(TIMEOUT, _TIMEOUT), address)

    def implementation(self) -> type[LanceNamespace]:
        """Import the implementation's class; no object of it is created.

        Raises:
            InvalidInputError: (13) there is no such class, or it isn't a Lance namespace.
        """
        import lance_namespace

        path = lance_namespace.NATIVE_IMPLS.get(self.impl, self.impl)
        module, _, name = path.rpartition(".")
        try:
            found = getattr(importlib.import_module(module), name)
        except ModuleNotFoundError as error:
            raise spec_errors.InvalidInputError(
                f"property {IMPL!r}: there is no module {error.name!r} here, which {path} needs; install its "
                "package on workers, triggerers, API servers and Spark's executors, or correct the path"
            ) from error
        except AttributeError as error:
            raise spec_errors.InvalidInputError(
                f"property {IMPL!r}: the module {module} has no class {name!r}"
            ) from error
        except Exception as error:  # noqa: BLE001 - whatever a module raises that is imported
            raise spec_errors.InvalidInputError(
                f"property {IMPL!r}: {path} can't be imported: {type(error).__name__}: {redact(str(error))}"
            ) from shareable_cause(error)
        if not (isinstance(found, type) and issubclass(found, lance_namespace.LanceNamespace)):
            raise spec_errors.InvalidInputError(
                f"property {IMPL!r}: {path} is not a class of lance_namespace.LanceNamespace"
            )
        return found


def catalog_properties(properties: Mapping[str, str]) -> Properties:
    """Check the names of the properties, and return all but the implementation's own.

    Raises:
        InvalidInputError: (13) a value isn't text, or a name looks like a misspelled one.
    """
    for key, value in properties.items():
        if not isinstance(value, str):
            raise spec_errors.InvalidInputError(
                f"property {key!r}: expected a string, got {type(value).__name__}; properties are strings"
            )
    common = {
        key: value
        for key, value in properties.items()
        if not key.startswith((PROPERTY_PREFIX, SECRET_PREFIX))
    }
    for key in common:
        if key not in _KNOWN and not key.startswith(STORAGE_PREFIX):
            raise spec_errors.InvalidInputError(
                f"property {key.partition('=')[0]!r} is unknown; known: {', '.join(sorted(_KNOWN))}, "
                f"{STORAGE_PREFIX}*, and {PROPERTY_PREFIX}* and {SECRET_PREFIX}* for the implementation's own"
            )
    return Properties(common, _KNOWN)


def _implementation_of(values: Properties) -> str:
    impl = values.text(IMPL, DIR) or DIR
    if impl not in (DIR, REST) and not _CLASS.fullmatch(impl):
        raise spec_errors.InvalidInputError(
            f"property {IMPL!r} is invalid: expected dir, rest, or the dotted path of a class such as "
            "lance_namespace_impls.unity.UnityNamespace"
        )
    if impl.startswith(_OWN_PACKAGE):
        raise spec_errors.InvalidInputError(
            f"property {IMPL!r}: {impl} has a connection type of its own: lance_hive2, lance_hive3 or "
            "lance_glue"
        )
    return impl


def _check_folder(values: Properties, config: StorageConfig) -> None:
    values.refuse((URI, TOKEN), "has no effect with impl=dir; set root, and storage.* for credentials")
    if not config.root:
        raise spec_errors.InvalidInputError(
            f"property {ROOT!r} is missing: the folder or bucket of the tables, such as s3://bucket/lake"
        )


def _service(values: Properties, own: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a REST service that are given as properties of the connection."""
    uri, token = values.text(URI), values.text(TOKEN)
    if uri is None:
        raise spec_errors.InvalidInputError(
            f"property {URI!r} is missing: the address of the REST service, such as https://catalog:8443"
        )
    given = {URI: check_endpoint(URI, uri, "the token, or secret properties")}
    if token is not None:
        if any(_canonical(name) == _AUTHORIZATION.lower() for name in own):
            raise spec_errors.InvalidInputError(
                f"property {TOKEN!r}: a header Authorization is given as well; set only one of them"
            )
        given[_AUTHORIZATION] = f"{_BEARER}{token}"
    _check_headers({**own, **given})
    return given


def _service_of_a_class(values: Properties, impl: str) -> dict[str, str]:
    values.refuse((TOKEN,), f"has no effect with impl={impl}; set the secret properties that the class takes")
    uri = values.text(URI)
    return {} if uri is None else {URI: uri}


def _with_prefix(properties: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in properties.items() if key.startswith(prefix)}


def _canonical(name: str) -> str:
    header = _HEADER.fullmatch(name)
    return name if header is None else f"headers.{header['name'].lower()}"


def _check_headers(own: Mapping[str, str]) -> None:
    """Refuse headers that the client would leave out of its requests, without a word."""
    for name, value in own.items():
        header = _HEADER.fullmatch(name)
        if header is None:
            continue
        shown = TOKEN if name == _AUTHORIZATION else f"{PROPERTY_PREFIX}{name}"
        if not _HEADER_NAME.fullmatch(header["name"]):
            raise spec_errors.InvalidInputError(f"property {shown!r}: is not the name of an HTTP header")
        if not all(" " <= character <= "~" for character in value):
            raise spec_errors.InvalidInputError(
                f"property {shown!r}: contains a line end or another character that no HTTP header may have; "
                "was it copied with one?"
            )
