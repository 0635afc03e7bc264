"""Unsafe locations, in catalog tables of other clients and from callers: refused by name."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import ErrorCode, LanceNamespaceError

from airflow_provider_lancens.identifiers import TableId
from tests.conformance.codes import refused_with
from tests.conformance.foreign import make_foreign_table
from tests.support.backends import Backend

HUSH = "hu5h-hu5h"
REFUSED = {
    "relative": "x/y",
    "relative-uri": "file:x/y",
    "credentials": f"s3://KEY:{HUSH}/{HUSH}@bucket/t.lance",
    "signature": f"https://bucket/t.lance?X-Amz-Signature={HUSH}",
    "decoded-nul": "file:///a%00b",
    "number-sign": "s3://bucket/run#1.lance",
    "other-scheme": "hdfs://namenode/t.lance",
}
on_both = pytest.mark.parametrize("backend", ["hive2-on-2.3.10", "glue-double"], indirect=True)
# Hive itself can't drop a table whose location it can't open.
on_glue = pytest.mark.parametrize("backend", ["glue-double"], indirect=True)


@pytest.fixture
def home(backend: Backend, namespace: Any) -> list[str]:
    """A database that is kept: Hive can't drop a table whose location it can't open."""
    database = backend.database()
    namespace.create_namespace({"id": database})
    return database


@pytest.fixture(params=REFUSED)
def invalid_table(request: pytest.FixtureRequest, backend: Backend, home: list[str]) -> list[str]:
    """A Lance table of another client with a location that is refused."""
    where = {"location": REFUSED[request.param], "kind": "VIRTUAL_VIEW"}
    make_foreign_table(backend, home, "t", {"table_type": "lance"}, **where)
    return [*home, "t"]


@contextmanager
def refused(*texts: str) -> Iterator[None]:
    """Expect the block to fail with code 13 and this text, and no secret in the chain of causes."""
    with pytest.raises(LanceNamespaceError) as caught:
        yield
    assert HUSH not in "".join(traceback.format_exception(caught.value))
    with refused_with(ErrorCode.INVALID_INPUT, *texts):
        raise caught.value


@on_both
def test_a_catalog_table_with_an_invalid_location_is_refused_by_name(
    namespace: Any, invalid_table: list[str]
) -> None:
    texts = ("$".join(invalid_table), "deregister the table, and register it")
    with refused(*texts):
        namespace.describe_table({"id": invalid_table})
    with refused(*texts):
        namespace.describe_table({"id": invalid_table, "check_declared": True})
    with refused(*texts):
        namespace.list_table_versions({"id": invalid_table})
    with refused(*texts):
        namespace.drop_table({"id": invalid_table})


@on_both
def test_an_invalid_location_affects_no_other_table(
    namespace: Any, invalid_table: list[str], home: list[str]
) -> None:
    good = [*home, "good"]
    namespace.declare_table({"id": good})
    refused_table, good_table = TableId.of(invalid_table), TableId.of(good)
    found = namespace.poll_tables([refused_table, good_table])
    assert found[refused_table].code == ErrorCode.INVALID_INPUT
    assert HUSH not in str(found[refused_table])
    assert found[good_table].location
    assert namespace.list_tables({"id": home}).tables == ["good", "t"]
    namespace.drop_table({"id": good})


@on_glue
def test_a_table_with_an_invalid_location_can_be_registered_again(
    namespace: Any, backend: Backend, invalid_table: list[str]
) -> None:
    gone = namespace.deregister_table({"id": invalid_table})
    assert HUSH not in f"{gone.location} {gone!r}"
    namespace.register_table({"id": invalid_table, "location": f"{backend.properties['root']}/t.lance"})
    assert namespace.describe_table({"id": invalid_table}).location.endswith("t.lance")


@on_both
@pytest.mark.parametrize("location", REFUSED)
def test_an_invalid_location_cannot_be_declared_or_registered(
    namespace: Any, db: list[str], location: str
) -> None:
    for operation in (namespace.declare_table, namespace.register_table):
        with refused("location: expected an absolute path or URL"):
            operation({"id": [*db, "t"], "location": REFUSED[location]})


@on_both
@pytest.mark.parametrize(
    "folder", ["tree/trial", "tree/team/trial", "data/inner.lance", "_indices/inner.lance"]
)
def test_no_table_is_declared_or_registered_in_a_folder_of_another_dataset(
    namespace: Any, db: list[str], tmp_path: Path, folder: str
) -> None:
    orders = tmp_path / "orders.lance"
    lance.write_dataset(pa.table({"id": [1]}), orders).create_branch("trial")
    (tmp_path / "link").symlink_to(orders / Path(folder).parts[0])
    for location in (orders / folder, tmp_path / "link" / Path(*Path(folder).parts[1:])):
        for operation in (namespace.declare_table, namespace.register_table):
            with refused(folder.partition("/")[0], str(orders)):
                operation({"id": [*db, "t"], "location": str(location)})
    assert namespace.list_tables({"id": db}).tables == []


@on_both
def test_a_table_in_a_folder_that_is_named_as_one_of_lance_is_registered(
    namespace: Any, db: list[str], tmp_path: Path
) -> None:
    location = str(tmp_path / "data" / "tree" / "orders.lance")
    lance.write_dataset(pa.table({"id": [1]}), location)
    namespace.register_table({"id": [*db, "t"], "location": location})
    assert namespace.describe_table({"id": [*db, "t"]}).location == location
