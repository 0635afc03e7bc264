"""Reserved property keys of a namespace, for values that a metastore stores in dedicated fields.

``database.*`` are the specification's (Object Mapping). They mean the same for a catalog, which
also answers to the keys that the Java implementation gives it.
"""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace.locations import check_location, normalize
from airflow_provider_lancens.namespace.metastore_protocol import Namespace

DESCRIPTION = "database.description"
LOCATION = "database.location-uri"
OWNER = "database.owner"
OWNER_TYPE = "database.owner-type"
OWNER_TYPES = ("USER", "ROLE", "GROUP")
_RESERVED = frozenset({DESCRIPTION, LOCATION, OWNER, OWNER_TYPE})


def from_properties(namespace: NamespaceId, properties: Mapping[str, str]) -> Namespace:
    """Convert a caller's properties to a `Namespace`.

    Raises:
        InvalidInputError: (13) a reserved property is invalid.
    """
    location = properties.get(LOCATION)
    if location is not None:
        location = check_location(location, f"property {LOCATION!r}")
    return Namespace(
        id=namespace,
        location=location,
        description=properties.get(DESCRIPTION),
        owner=properties.get(OWNER),
        owner_type=_owner_type(properties),
        properties={key: value for key, value in properties.items() if key not in _RESERVED},
    )


def to_properties(namespace: Namespace) -> dict[str, str]:
    """Return a namespace's custom properties and, under the reserved keys, its fields."""
    fields = {
        LOCATION: normalize(namespace.location) if namespace.location else None,
        DESCRIPTION: namespace.description,
        OWNER: namespace.owner,
        OWNER_TYPE: namespace.owner_type,
    }
    return {**namespace.properties, **{key: value for key, value in fields.items() if value}}


def _owner_type(properties: Mapping[str, str]) -> str | None:
    value = properties.get(OWNER_TYPE)
    if value is not None and value.upper() not in OWNER_TYPES:
        raise spec_errors.InvalidInputError(
            f"property {OWNER_TYPE!r}: expected one of {', '.join(OWNER_TYPES)}, got {value!r}"
        )
    return value.upper() if value else None
