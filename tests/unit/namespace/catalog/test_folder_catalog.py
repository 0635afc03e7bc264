"""A folder's catalog (``impl=dir``): drops delete no data of others, changes have the effect they report."""

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import lance
import lance_namespace
import pyarrow as pa
import pytest
from lance.namespace import RestAdapter
from lance_namespace import RegisterTableRequest
from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
)

from airflow_provider_lancens.namespace import CatalogNamespace
from airflow_provider_lancens.namespace.catalog import catalog_drop, catalog_search
from airflow_provider_lancens.namespace.catalog.folder_catalog import FolderCatalog
from airflow_provider_lancens.namespace.storage import purge
from airflow_provider_lancens.spark import LanceCatalog, connect
from airflow_provider_lancens.spark.keys import key_records
from tests.servers.s3_bucket import Stored
from tests.servers.s3_double import S3Double

ROWS = pa.table({"n": [1]})
ORDERS, LINES = ["s", "orders"], ["s", "lines"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "my lake"  # the implementation returns it quoted


@pytest.fixture
def namespace(root: Path) -> CatalogNamespace:
    """A namespace with the namespace ``s`` in it."""
    made = CatalogNamespace(root=str(root))
    made.create_namespace({"id": ["s"]})
    return made


@pytest.fixture
def catalog(namespace: CatalogNamespace) -> LanceCatalog:
    return LanceCatalog(lambda: namespace)


def write(location: Path, rows: int = 1) -> str:
    lance.write_dataset(pa.table({"n": range(rows)}), location, mode="append")
    return str(location)


def count(namespace: CatalogNamespace, table: list[str]) -> int:
    location = namespace.describe_table({"id": table}).location
    assert location is not None
    return int(lance.dataset(location).count_rows())


def refused(namespace: CatalogNamespace, table: list[str], match: str) -> None:
    """Check that a drop and its plan are refused alike, and change nothing."""
    before = sorted(str(path) for path in Path(namespace._config.root).rglob("*"))
    for operation in (namespace.plan_drop_table, namespace.drop_table):
        with pytest.raises(InvalidInputError, match=match):
            operation({"id": table})
    assert sorted(str(path) for path in Path(namespace._config.root).rglob("*")) == before


def test_the_data_of_another_entry_is_not_dropped(namespace: CatalogNamespace, root: Path) -> None:
    location = str(namespace.declare_table({"id": ORDERS}).location)
    write(Path(location))
    namespace.register_table({"id": LINES, "location": location})

    refused(namespace, ORDERS, r"table s\$lines points to the same data: .*; deregister one of them instead")
    refused(namespace, LINES, r"table s\$orders points to the same data")
    namespace.deregister_table({"id": LINES})
    namespace.drop_table({"id": ORDERS})
    assert not Path(location).exists()


@pytest.mark.parametrize("table", [ORDERS, LINES])
def test_the_data_of_an_entry_inside_is_not_dropped(
    namespace: CatalogNamespace, root: Path, table: list[str]
) -> None:
    namespace.register_table({"id": ORDERS, "location": write(root / "outer")})
    namespace.register_table({"id": LINES, "location": write(root / "outer" / "inner", 2)})

    refused(namespace, table, "points to the same data")
    assert (count(namespace, ORDERS), count(namespace, LINES)) == (1, 2)


def test_the_data_of_a_table_of_the_topmost_level_is_not_dropped(
    namespace: CatalogNamespace, root: Path
) -> None:
    location = write(root / "plain.lance")
    namespace.register_table({"id": ORDERS, "location": location})

    refused(namespace, ORDERS, r"deregister table s\$orders instead, then drop the other one")
    refused(namespace, ["plain"], "deregister the other one first")


def test_the_entries_of_the_catalog_are_neither_registered_nor_dropped(
    namespace: CatalogNamespace, root: Path
) -> None:
    with pytest.raises(InvalidInputError, match="has the entries of the catalog"):
        namespace.register_table({"id": ORDERS, "location": str(root / "__manifest")})
    other = lance_namespace.connect("dir", {"root": str(root)})  # which does
    other.register_table(RegisterTableRequest(id=ORDERS, location="__manifest"))

    refused(namespace, ORDERS, "has the entries of the catalog")
    namespace.deregister_table({"id": ORDERS})


@pytest.mark.parametrize("folder", ["tree/trial", "data/inner.lance"])
def test_no_table_is_declared_or_registered_in_a_folder_of_another_dataset(
    namespace: CatalogNamespace, root: Path, folder: str
) -> None:
    location = write(root / "lake" / "orders.lance")
    for operation in (namespace.declare_table, namespace.register_table):
        with pytest.raises(InvalidInputError, match="of the dataset at"):
            operation({"id": ORDERS, "location": f"{location}/{folder}"})


def test_datasets_inside_that_have_no_entry_are_kept(namespace: CatalogNamespace, root: Path) -> None:
    for place in ("lake2/orders.lance", "lake2/more/lines.lance"):
        write(root / place)
    namespace.register_table({"id": ORDERS, "location": str(root / "lake2")})
    plan = namespace.plan_drop_table({"id": ORDERS})
    others = plan.other_files
    namespace.drop_table({"id": ORDERS})

    assert plan.files == 0
    assert others == sum(path.is_file() for path in (root / "lake2").rglob("*")) > 0
    assert namespace.list_tables({"id": ["s"]}).tables == []


def test_other_files_are_kept(
    namespace: CatalogNamespace, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    location = Path(str(namespace.declare_table({"id": ORDERS}).location))
    write(location)
    (location / "README.txt").write_text("mine")
    files = sum(path.is_file() for path in location.rglob("*"))
    plan = namespace.plan_drop_table({"id": ORDERS})
    with caplog.at_level(logging.WARNING):
        namespace.drop_table({"id": ORDERS})

    assert (plan.files, plan.other_files) == (files - 1, 1)
    assert str(plan).endswith("; 1 other files are kept")
    assert [path.name for path in location.iterdir()] == ["README.txt"]
    assert "files or links that are not Lance's: README.txt" in caplog.text


def test_a_folder_with_other_files_is_no_table_that_can_be_dropped(
    namespace: CatalogNamespace, root: Path
) -> None:
    namespace.declare_table({"id": ["orders"]})
    write(root / "orders.lance")
    (root / "orders.lance" / "README.txt").write_text("mine")

    refused(namespace, ["orders"], r"has 1 files that are not Lance's .* README\.txt; move them away first")
    (root / "orders.lance" / "README.txt").unlink()
    namespace.drop_table({"id": ["orders"]})
    assert not (root / "orders.lance").exists()


def test_an_interrupted_first_write_does_not_prevent_a_drop(namespace: CatalogNamespace, root: Path) -> None:
    namespace.declare_table({"id": ["orders"]})
    for name in ("data/a.lance", f"{key_records.KEYS}/a.json"):
        file = root / "orders.lance" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")

    assert namespace.plan_drop_table({"id": ["orders"]}).files == 3
    namespace.drop_table({"id": ["orders"]})
    assert namespace.list_tables({"id": []}).tables == []


def test_a_table_that_others_write_to_after_the_removal_is_not_reported_as_dropped(
    namespace: CatalogNamespace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace.declare_table({"id": ["orders"]})
    remove = purge.remove

    def removed(location: str, *arguments: object) -> int:
        found = remove(location, *arguments)  # type: ignore[arg-type]
        write(root / "orders.lance")
        return found

    monkeypatch.setattr(purge, "remove", removed)
    with pytest.raises(ConcurrentModificationError, match="others wrote there meanwhile"):
        namespace.drop_table({"id": ["orders"]})
    assert count(namespace, ["orders"]) == 1


@pytest.mark.parametrize("place", ["sub/t.lance", "sub/sp ace%20/ü", "missing"])
def test_a_table_at_any_place_below_the_root_is_dropped(
    namespace: CatalogNamespace, root: Path, place: str
) -> None:
    if place != "missing":
        write(root / place)
    namespace.register_table({"id": ORDERS, "location": str(root / place)})
    described = namespace.describe_table({"id": ORDERS}).location
    dropped = namespace.drop_table({"id": ORDERS})

    assert described == dropped.location == str(root / place)
    assert not (root / place).exists()
    with pytest.raises(TableNotFoundError):
        namespace.drop_table({"id": ORDERS})


@pytest.mark.parametrize("own", [True, False], ids=["own", "pylance"])
def test_rows_are_below_a_root_whose_name_must_be_quoted(
    catalog: LanceCatalog, root: Path, own: bool
) -> None:
    others = lance_namespace.connect("dir", {"root": str(root)})
    catalog = catalog if own else connect("dir", {"root": str(root)})
    catalog.create_namespace("s")
    for name in ("orders", "s.orders"):
        catalog.declare_table(name).append(pa.table({"n": [1]}), key="1")

    assert lance.dataset(namespace_client=others, table_id=ORDERS).count_rows() == 1
    assert [path.name for path in root.parent.iterdir()] == [root.name]
    assert catalog.declare_table("s.orders").location == catalog.table("s.orders").location


def test_a_table_of_the_topmost_level_is_registered_only_in_its_folder(
    namespace: CatalogNamespace, root: Path
) -> None:
    location = write(root / "data" / "x.lance")
    with pytest.raises(InvalidInputError, match=r"rename the folder of the data.* in a namespace"):
        namespace.register_table({"id": ["orders"], "location": location})
    with pytest.raises(InvalidInputError, match="doesn't exist, or has no files"):
        namespace.register_table({"id": ["orders"], "location": str(root / "orders.lance")})
    namespace.declare_table({"id": ["orders"]})
    with pytest.raises(TableAlreadyExistsError):
        namespace.register_table({"id": ["orders"], "location": location})
    namespace.register_table({"id": ORDERS, "location": location})

    assert count(namespace, ORDERS) == 1


def test_a_registration_in_its_folder_is_found_again(catalog: LanceCatalog, root: Path) -> None:
    location = write(root / "orders.lance")

    for _ in range(2):
        assert catalog.register_table("orders", location).count_rows() == 1


@pytest.mark.parametrize("declared", [True, False])
def test_a_table_of_the_topmost_level_is_not_deregistered(
    namespace: CatalogNamespace, root: Path, declared: bool
) -> None:
    if declared:
        namespace.declare_table({"id": ["orders"]})
    write(root / "orders.lance")

    for _ in range(2):
        with pytest.raises(UnsupportedOperationError, match="; instead: rename the folder"):
            namespace.deregister_table({"id": ["orders"]})
    shutil.move(root / "orders.lance", root / "purchases.lance")
    assert namespace.list_tables({"id": []}).tables == ["purchases"]
    with pytest.raises(TableNotFoundError):
        namespace.deregister_table({"id": ["orders"]})
    namespace.declare_table({"id": ["orders"]})
    namespace.drop_table({"id": ["purchases"]})
    assert namespace.list_tables({"id": []}).tables == ["orders"]


def test_a_folder_that_others_wrote_is_a_table_that_exists(namespace: CatalogNamespace, root: Path) -> None:
    write(root / "orders.lance")

    with pytest.raises(TableAlreadyExistsError):
        namespace.declare_table({"id": ["orders"]})
    namespace.drop_table({"id": ["orders"]})
    assert namespace.list_tables({"id": []}).tables == []


def test_an_empty_folder_of_others_keeps_a_table_of_the_topmost_level(
    namespace: CatalogNamespace, root: Path
) -> None:
    write(root / "orders.lance")
    (root / "orders.lance" / "notes").mkdir()

    with pytest.raises(ConcurrentModificationError, match="empty folders; remove these"):
        namespace.drop_table({"id": ["orders"]})
    with pytest.raises(InvalidInputError, match="empty folders; remove these"):  # which no retry mends
        namespace.drop_table({"id": ["orders"]})
    (root / "orders.lance" / "notes").rmdir()
    (root / "orders.lance").rmdir()
    assert namespace.list_tables({"id": []}).tables == []


def test_a_table_whose_folder_was_removed_is_declared_again(namespace: CatalogNamespace, root: Path) -> None:
    namespace.declare_table({"id": ["orders"]})
    shutil.rmtree(root / "orders.lance")

    namespace.declare_table({"id": ["orders"]})
    assert namespace.list_tables({"id": []}).tables == ["orders"]


def test_without_entries_a_table_is_deregistered_and_dropped(root: Path) -> None:
    namespace = CatalogNamespace(root=str(root), **{"property.manifest_enabled": "false"})
    for name in ("orders", "lines"):
        namespace.declare_table({"id": [name]})
        write(root / f"{name}.lance")
    namespace.deregister_table({"id": ["orders"]})
    with pytest.raises(InvalidInputError, match=r"remove its file \.lance-deregistered"):
        namespace.declare_table({"id": ["orders"]})
    (root / "orders.lance" / ".lance-deregistered").unlink()

    assert count(namespace, ["orders"]) == 1
    namespace.drop_table({"id": ["lines"]})
    assert namespace.list_tables({"id": []}).tables == ["orders"]


def test_while_entries_come_first_a_table_is_registered_elsewhere_and_dropped(root: Path) -> None:
    given = {"property.dir_listing_to_manifest_migration_enabled": "true"}
    namespace = CatalogNamespace(root=str(root), **given)
    namespace.register_table({"id": ["orders"], "location": write(root / "data" / "x.lance")})
    namespace.declare_table({"id": ["lines"]})

    assert count(namespace, ["orders"]) == 1
    for name in ("orders", "lines"):
        namespace.drop_table({"id": [name]})
    assert namespace.list_tables({"id": []}).tables == []


def test_a_table_that_cannot_be_described_is_reported(
    namespace: CatalogNamespace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for table in (ORDERS, LINES):
        namespace.declare_table({"id": table})

    def location_of(parts: tuple[str, ...]) -> str | None:
        raise InvalidInputError(f"not {parts}")

    monkeypatch.setattr(catalog_drop.CatalogDrop, "_compared", lambda _, table: location_of(table))
    monkeypatch.setattr(catalog_search, "_BATCH", 1)
    with caplog.at_level(logging.WARNING):
        namespace.plan_drop_table({"id": ORDERS})
    assert r"another table may have its data, which a drop deletes: s$lines can't be described" in caplog.text


@pytest.fixture
def service(root: Path) -> Iterator[CatalogNamespace]:
    """A REST service over the folder, which its implementation changes."""
    with RestAdapter("dir", {"root": str(root)}, port=0) as adapter:
        yield CatalogNamespace(impl="rest", uri=f"http://127.0.0.1:{adapter.port}/")


def test_a_service_is_believed_only_what_it_did(service: CatalogNamespace) -> None:
    service.declare_table({"id": ["orders"]})

    with pytest.raises(UnsupportedOperationError, match="reported success, but the table still exists"):
        service.deregister_table({"id": ["orders"]})


def test_a_service_may_delete_other_files(service: CatalogNamespace, root: Path) -> None:
    service.create_namespace({"id": ["s"]})
    location = Path(str(service.declare_table({"id": ORDERS}).location))
    (location / "README.txt").write_text("mine")

    plan = service.plan_drop_table({"id": ORDERS})
    assert location.parent == root
    assert str(plan).endswith("; 1 other files are there, which the catalog may delete too")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, (True, True, False)),
        ({"dir_listing_enabled": "No"}, (False, True, False)),
        ({"manifest_enabled": "0"}, (True, False, False)),
        ({"dir_listing_to_manifest_migration_enabled": "on"}, (True, True, True)),
    ],
)
def test_the_properties_of_the_implementation_are_read(
    given: dict[str, str], expected: tuple[bool, bool, bool]
) -> None:
    folder = FolderCatalog.of("/lake/", given)

    assert (folder.lists_folders, folder.has_entries, folder.entries_first) == expected
    assert folder.own_folder(["orders"]) == ("/lake/orders.lance" if expected[0] else None)
    assert folder.own_folder(ORDERS) is None


@pytest.mark.parametrize("name", ["lake", "my lake"])
def test_a_table_in_a_bucket_is_dropped(name: str) -> None:
    with S3Double() as s3:
        storage = {f"storage.{option}": value for option, value in s3.storage.items()}
        namespace = CatalogNamespace(root=f"s3://lake/{name}", **storage)
        namespace.create_namespace({"id": ["s"]})
        for table in (["orders"], ORDERS):
            location = str(namespace.declare_table({"id": table}).location)
            readme = f"{unquote(location).removeprefix('s3://lake/')}/README.txt"
            lance.write_dataset(ROWS, location, storage_options=s3.storage, mode="append")
            files = len(tables_in(s3))
            s3.bucket.put(readme, Stored.of(b"mine"))
            if table == ORDERS:
                plan = namespace.plan_drop_table({"id": table})
                assert (plan.files, plan.other_files) == (files, 1)
            else:
                with pytest.raises(InvalidInputError, match="move them away first"):
                    namespace.drop_table({"id": table})
                s3.bucket.remove(readme)
            namespace.drop_table({"id": table})
            with pytest.raises(TableNotFoundError):
                namespace.describe_table({"id": table})
        assert tables_in(s3) == [readme]


def tables_in(s3: S3Double) -> list[str]:
    return [key for key in s3.bucket.objects if "/__manifest/" not in key]
