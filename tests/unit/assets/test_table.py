"""The asset of a Lance table."""

import pytest
from airflow.sdk import Asset

from airflow_provider_lancens.assets.table import LanceTable, create_asset, lance_table
from airflow_provider_lancens.assets.table_watcher import watched_table
from airflow_provider_lancens.identifiers import TableId

URI = "lance://lake/sales/orders"


def test_a_table_is_an_asset_by_its_authority_and_its_name() -> None:
    assert lance_table("sales$orders", "lake").uri == URI


def test_a_table_in_a_catalog_has_one_more_level() -> None:
    assert lance_table("spark$sales$orders", "lake").uri == "lance://lake/spark/sales/orders"


def test_airflow_finds_the_asset_factory_and_the_normalizer_by_the_scheme() -> None:
    from airflow.providers_manager import ProvidersManager

    manager = ProvidersManager()
    assert manager.asset_factories["lance"](asset_authority="lake", table="sales$orders").uri == URI
    assert Asset("lance://lake/Sales/Orders/").uri == URI


@pytest.mark.parametrize("table", ["Sales$Orders", "sales$orders"])
def test_different_notations_are_the_same_asset(table: str) -> None:
    assert create_asset(asset_authority="lake", table=table).uri == URI


def test_names_with_special_uri_characters_survive_a_round_trip() -> None:
    table = LanceTable.of("lake", "sales$orders 1/2?#%")
    assert LanceTable.parse(table.uri) == table
    assert LanceTable.parse(Asset(table.uri).uri) == table


@pytest.mark.parametrize("parts", [("orders",), ("a", "b", "c", "orders")])
def test_a_table_of_a_catalog_with_other_levels_is_given_as_an_identifier(parts: tuple[str, ...]) -> None:
    made = lance_table(TableId(parts), "folder")
    assert made.uri == watched_table(TableId(parts), "folder").uri == f"lance://folder/{'/'.join(parts)}"
    assert LanceTable.parse(made.uri).table == TableId(parts)


@pytest.mark.parametrize("argument", ["table", "asset_authority"])
@pytest.mark.parametrize("template", ["{{ params.table }}$t", "{% if x %}a$b{% endif %}"])
def test_a_template_is_refused_with_the_name_of_its_argument(argument: str, template: str) -> None:
    arguments = {"table": "sales$orders", "asset_authority": "lake", argument: template}
    with pytest.raises(ValueError, match=f"{argument}=.*templates are not allowed"):
        create_asset(**arguments)


def test_an_asset_has_the_name_and_the_group_that_it_is_given_and_the_same_uri() -> None:
    given = {"name": "orders", "group": "sales", "extra": {"team": "sales"}}
    for made in (
        lance_table("sales$orders", "lake", **given),
        watched_table("sales$orders", "lake", **given),
    ):
        assert (made.uri, made.name, made.group, made.extra) == (URI, "orders", "sales", {"team": "sales"})
    assert lance_table("sales$orders", "lake").name == URI
    assert (
        lance_table("sales$orders").uri
        == watched_table("sales$orders").uri
        == "lance://lance_default/sales/orders"
    )


@pytest.mark.parametrize("argument", ["name", "group"])
def test_a_template_in_the_name_or_the_group_of_an_asset_is_refused(argument: str) -> None:
    with pytest.raises(ValueError, match=f"{argument}=.*templates are not allowed"):
        lance_table("sales$orders", **{argument: "{{ ds }}"})


@pytest.mark.parametrize("table", ["orders", "a$b$c$d", "sales$", ""])
def test_an_invalid_table_name_is_refused(table: str) -> None:
    with pytest.raises(ValueError, match="write it as database"):
        lance_table(table, "lake")


def test_an_identifier_with_dots_is_the_same_asset_as_the_printed_one() -> None:
    assert lance_table("sales.orders", "lake").uri == lance_table("sales$orders", "lake").uri


def test_an_identifier_with_two_readings_is_refused_with_both() -> None:
    with pytest.raises(ValueError, match=r"two readings.*sales\$eu\$orders.*sales.`eu.orders`"):
        lance_table("sales$eu.orders", "lake")


def test_a_uri_names_a_table_whose_name_contains_a_dot() -> None:
    assert LanceTable.parse("lance://lake/sales/eu.orders").table.parts == ("sales", "eu.orders")


@pytest.mark.parametrize("authority", ["", "me@lake", "a/b", "a\n", "a" * 251])
def test_an_invalid_authority_is_refused_with_what_is_allowed(authority: str) -> None:
    with pytest.raises(ValueError, match=r"asset_authority=.*expected 1 to 250 printable characters"):
        lance_table("sales$orders", authority)


@pytest.mark.parametrize("uri", ["lance://lake", "lance:///sales/orders", "lance://lake/sales/orders?v=1"])
def test_an_invalid_uri_is_refused_with_the_right_form(uri: str) -> None:
    with pytest.raises(ValueError, match="is not the URI of a Lance table"):
        LanceTable.parse(uri)


def test_an_identity_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        LanceTable.of("lake", "sales$orders").authority = "other"  # type: ignore[misc]
