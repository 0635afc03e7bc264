"""The quick double of S3 answers as moto does: it may err in the order and the pages of listings."""

from collections.abc import Iterator
from typing import Any

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError
from obstore.store import S3Store

from tests.servers.glue_double import GlueDouble
from tests.servers.s3_double import S3Double

KEYS = ["a/1", "a/10", "a/2", "a/b/1", "a/b/2", "a/b-1", "a/c/d/1", "a0", "b/ä &<1>", "b/z"]


@pytest.fixture
def stores(glue: GlueDouble, database: str) -> Iterator[tuple[S3Store, S3Store]]:
    """The same objects in the double and in moto."""
    name = database.replace("_", "-")
    glue.client("s3").create_bucket(Bucket=name)
    with S3Double() as s3:
        stores = (_store(s3.bucket_name, s3.storage), _store(name, glue.storage))
        for store in stores:
            for key in KEYS:
                obstore.put(store, key, key.encode())
        yield stores


def _store(bucket: str, options: dict[str, str]) -> S3Store:
    config: dict[str, Any] = {key: value for key, value in options.items() if key != "allow_http"}
    return S3Store(bucket, config=config, client_options={"allow_http": True})


@pytest.mark.parametrize("prefix", [None, "a", "a/b", "b", "none"])
def test_listings_are_moto_s(stores: tuple[S3Store, S3Store], prefix: str | None) -> None:
    listed = [[one["path"] for page in obstore.list(store, prefix) for one in page] for store in stores]
    folders = [obstore.list_with_delimiter(store, prefix) for store in stores]

    assert listed[0] == listed[1]
    assert folders[0]["common_prefixes"] == folders[1]["common_prefixes"]
    assert [one["path"] for one in folders[0]["objects"]] == [one["path"] for one in folders[1]["objects"]]


def test_a_listing_goes_on_after_a_page(stores: tuple[S3Store, S3Store]) -> None:
    store = stores[0]
    for number in range(1200):
        obstore.put(store, f"many/{number}", b"")

    assert sum(len(page) for page in obstore.list(store, "many")) == 1200


def test_objects_and_conditions_are_moto_s(stores: tuple[S3Store, S3Store]) -> None:
    for store in stores:
        with pytest.raises(AlreadyExistsError):
            obstore.put(store, "a/1", b"other", mode="create")
        assert bytes(obstore.get_range(store, "a/10", start=1, end=3)) == b"/1"
        obstore.delete(store, ["a/1", "b/ä &<1>", "none"])
        assert [one["path"] for one in obstore.list(store, "b").collect()] == ["b/z"]
        with pytest.raises(FileNotFoundError):
            obstore.head(store, "a/1")
