"""Properties of a catalog: what is refused, and what its implementation gets."""

import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.namespace import CatalogNamespace
from airflow_provider_lancens.namespace.catalog.catalog_settings import CatalogSettings, catalog_properties
from airflow_provider_lancens.namespace.config import StorageConfig

SECRET = "hush-hush"
REST = {"impl": "rest", "uri": "http://catalog"}


def parsed(**properties: str) -> CatalogSettings:
    values = catalog_properties({**properties, "require_root": "true"})
    return CatalogSettings.parse(properties, StorageConfig.parse(values), values)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({}, "property 'root' is missing"),
        ({"root": " "}, "property 'root' is missing"),
        ({"impl": "folder"}, "property 'impl' is invalid: expected dir, rest, or the dotted path"),
        ({"impl": "no_such_module.Catalog"}, "there is no module 'no_such_module' here"),
        ({"impl": "json.Catalog"}, "the module json has no class 'Catalog'"),
        ({"impl": "json.JSONDecoder"}, "is not a class of lance_namespace.LanceNamespace"),
        ({"impl": "airflow_provider_lancens.namespace.GlueNamespace"}, "has a connection type of its own"),
        ({"impl": "rest"}, "property 'uri' is missing"),
        ({"impl": "rest", "uri": "catalog:8443"}, r"property 'uri': expected http\(s\)"),
        ({"impl": "rest", "uri": f"https://ann:{SECRET}@catalog"}, "it contains a user or password"),
        ({**REST, "token": f"{SECRET}\nx"}, "property 'token': contains a line end"),
        ({**REST, "token": f"{SECRET}é"}, "another character that no HTTP header may have"),
        ({**REST, "token": SECRET, "secret.headers.authorization": "x"}, "a header Authorization is given"),
        (
            {**REST, "property.headers.a b": SECRET},
            "'property.headers.a b': is not the name of an HTTP header",
        ),
        ({"root": "/lake", "token": SECRET}, "property 'token' has no effect with impl=dir"),
        ({"root": "/lake", "uri": "http://catalog"}, "property 'uri' has no effect with impl=dir"),
        ({"impl": "json.JSONDecoder", "token": SECRET}, "set the secret properties that the class takes"),
        (
            {"root": "/lake", "managed_by": "impl"},
            "property 'managed_by' is unknown; known: a",
        ),
        ({"root": "/lake", "client.timeout": "0"}, "expected a positive number of seconds"),
    ],
)
def test_an_invalid_property_is_refused_without_its_value(properties: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as refused:
        CatalogNamespace(**properties)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("root", ["/lake", "/lake/", "file:///lake/"])
def test_a_folder_is_named_in_one_way(root: str) -> None:
    assert parsed(root=root).own == {"root": "/lake"}


def test_a_folder_gets_the_storage_options_of_the_connection() -> None:
    settings = parsed(
        root="s3a://bucket/lake/", **{"storage.region": "eu-west-1", "storage.secret_access_key": SECRET}
    )

    assert settings.own == {
        "root": "s3://bucket/lake",
        "storage.region": "eu-west-1",
        "storage.secret_access_key": SECRET,
    }
    assert SECRET in settings.secrets
    assert SECRET not in repr(settings)


def test_the_token_is_a_header_without_the_line_end_that_it_was_copied_with() -> None:
    settings = parsed(**REST, token=f"{SECRET}\n", **{"property.headers.x-tenant": "sales"})

    assert settings.own == {
        "uri": "http://catalog",
        "headers.Authorization": f"Bearer {SECRET}",
        "headers.x-tenant": "sales",
    }
    assert {SECRET, f"Bearer {SECRET}", "sales"} <= settings.secrets
    assert settings.address == "http://catalog"


def test_a_class_gets_its_own_properties() -> None:
    settings = parsed(
        impl="made.up.Catalog", uri="thrift://h:1", **{"property.client.pool": "3", "secret.password": SECRET}
    )

    assert settings.own == {"uri": "thrift://h:1", "client.pool": "3", "password": SECRET}
    assert settings.secrets == {SECRET}
