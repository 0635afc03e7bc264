"""The reserved keys of a namespace's properties."""

import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace import namespace_properties

DB = NamespaceId.parse("db")
GIVEN = {
    "database.description": "clicks",
    "database.location-uri": "/x",
    "database.owner": "ana",
    "database.owner-type": "ROLE",
    "team": "search",
}


def test_reserved_keys_are_fields_and_read_back() -> None:
    view = namespace_properties.from_properties(DB, GIVEN)
    assert (view.description, view.location, view.owner, view.owner_type) == ("clicks", "/x", "ana", "ROLE")
    assert view.properties == {"team": "search"}
    assert namespace_properties.to_properties(view) == GIVEN


def test_an_owner_type_is_read_in_any_case() -> None:
    assert namespace_properties.from_properties(DB, {"database.owner-type": "user"}).owner_type == "USER"


@pytest.mark.parametrize(
    ("key", "value"), [("database.owner-type", "team"), ("database.location-uri", "relative")]
)
def test_an_invalid_field_value_is_refused_by_its_key(key: str, value: str) -> None:
    with pytest.raises(InvalidInputError, match=key):
        namespace_properties.from_properties(DB, {key: value})
