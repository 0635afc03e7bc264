"""DropTable keeps data that another catalog table points to, in any notation and any catalog."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import lance
import pyarrow as pa
import pytest
from lance_namespace import LanceNamespace
from lance_namespace.errors import ErrorCode

from airflow_provider_lancens.embedded import MetastoreServer
from tests.conformance.codes import refused_with
from tests.conformance.foreign import make_foreign_table
from tests.support.backends import BACKENDS, Backend, params

ROWS = pa.table({"x": [1]})


@pytest.fixture
def data_folder(namespace: LanceNamespace, db: list[str], tmp_path: Path) -> Iterator[Path]:
    """The location of the table ``t``; all its files exist after the test."""
    folder = tmp_path / "lake" / "a b.lance"
    lance.write_dataset(ROWS, str(folder))
    namespace.register_table({"id": [*db, "t"], "location": str(folder)})
    before = files(folder)
    yield folder
    assert files(folder) == before


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def spelled(data_folder: Path, how: str) -> str:
    """The same location in other notations, or one inside or around it."""
    link = data_folder.parent.parent / "link"
    link.symlink_to(data_folder.parent)
    return {
        "the same": f"file:{data_folder}",
        "a percent-encoded path": f"file://{quote(str(data_folder))}",
        "slashes and dots": f"file:///{data_folder.parent}//./x/../{data_folder.name}/",
        "a linked parent": f"file:{link}/{data_folder.name}",
        "a folder inside": f"file:{data_folder}/data/b.lance",
        "a folder inside through a link": f"file:{link}/{data_folder.name}/data/b.lance",
        "a folder around": f"file:{data_folder.parent}",
    }[how]


@pytest.mark.parametrize("backend", params(["hive2-on-2.3.10", "glue-double"]), indirect=True)
@pytest.mark.parametrize(
    "how",
    [
        "the same",
        "a percent-encoded path",
        "slashes and dots",
        "a linked parent",
        "a folder inside",
        "a folder inside through a link",
        "a folder around",
    ],
)
def test_data_used_by_a_foreign_table_is_not_dropped(
    backend: Backend, namespace: LanceNamespace, db: list[str], data_folder: Path, how: str
) -> None:
    other = backend.database()
    namespace.create_namespace({"id": other})
    make_foreign_table(backend, other, "others", location=spelled(data_folder, how))
    try:
        with refused_with(ErrorCode.INVALID_INPUT, "others"):
            namespace.drop_table({"id": [*db, "t"]})
    finally:
        allowed = {"context": {"cascade.foreign-tables": "*"}, "behavior": "cascade"}
        namespace.drop_namespace({"id": other, **allowed})


def test_data_inside_another_tables_location_is_not_dropped(
    namespace: LanceNamespace, db: list[str], data_folder: Path
) -> None:
    namespace.declare_table({"id": [*db, "inside"], "location": str(data_folder / "inside" / "b.lance")})
    for table in ("t", "inside"):
        with refused_with(ErrorCode.INVALID_INPUT, "inside" if table == "t" else "t"):
            namespace.drop_table({"id": [*db, table]})


def test_other_tables_in_the_same_folder_are_kept(
    namespace: LanceNamespace, db: list[str], tmp_path: Path
) -> None:
    folders = [tmp_path / name for name in ("a.lance", "a.lance2", "a")]
    for number, data_folder in enumerate(folders):
        lance.write_dataset(ROWS, str(data_folder))
        namespace.register_table({"id": [*db, f"t{number}"], "location": str(data_folder)})
    namespace.drop_table({"id": [*db, "t0"]})
    assert [data_folder.exists() for data_folder in folders] == [False, True, True]


WITHOUT_CATALOGS = [
    name for name, (server, kind, _) in BACKENDS.items() if kind == "Hive2Namespace" and server != "metastore"
]


@pytest.mark.parametrize("backend", params(WITHOUT_CATALOGS), indirect=True)
def test_tables_in_other_catalogs_protect_shared_data(
    backend: Backend, namespace: LanceNamespace, db: list[str], data_folder: Path
) -> None:
    catalog = f"cat_{uuid.uuid4().hex[:8]}"
    whole = Backend(backend.name, "Hive3Namespace", backend.properties).connect()
    whole.create_namespace({"id": [catalog]})
    whole.create_namespace({"id": [catalog, "theirs"]})
    whole.register_table({"id": [catalog, "theirs", "twin"], "location": str(data_folder)})
    try:
        with refused_with(ErrorCode.INVALID_INPUT, f"{catalog}$theirs$twin"):
            namespace.drop_table({"id": [*db, "t"]})
    finally:
        whole.drop_namespace({"id": [catalog], "behavior": "cascade"})


@pytest.mark.slow
def test_an_insert_only_hive_table_does_not_prevent_a_drop(hms3: MetastoreServer, tmp_path: Path) -> None:
    backend = Backend("hive2-on-3.1.3", "Hive2Namespace", {"uri": hms3.uri, "root": str(tmp_path)})
    insert_only = {"transactional": "true", "transactional_properties": "insert_only"}
    db = backend.database()
    with backend.connect() as namespace:  # type: ignore[attr-defined]
        namespace.create_namespace({"id": db})
        make_foreign_table(backend, db, "theirs", insert_only)
        lance.write_dataset(ROWS, namespace_client=namespace, table_id=[*db, "t"], mode="create")
        namespace.drop_table({"id": [*db, "t"]})
        foreign = {"context": {"cascade.foreign-tables": "*"}}
        namespace.drop_namespace({"id": db, "behavior": "cascade", **foreign})


def test_data_that_a_clone_refers_to_is_not_dropped_before_the_clone(
    namespace: LanceNamespace, db: list[str], tmp_path: Path
) -> None:
    source, clone = str(tmp_path / "lake" / "source.lance"), str(tmp_path / "lake" / "clone.lance")
    lance.write_dataset(ROWS, source).shallow_clone(clone, 1)
    lance.write_dataset(ROWS, str(tmp_path / "lake" / "other.lance"))
    for name in ("source", "clone", "other"):
        namespace.register_table({"id": [*db, name], "location": str(tmp_path / "lake" / f"{name}.lance")})
    namespace.declare_table({"id": [*db, "empty"]})
    namespace.register_table({"id": [*db, "lost"], "location": str(tmp_path / "lost.lance")})

    with refused_with(ErrorCode.INVALID_INPUT, "clone is a clone that refers to its data"):
        namespace.drop_table({"id": [*db, "source"]})
    assert lance.dataset(clone).to_table() == ROWS
    for name in ("other", "clone", "source"):
        namespace.drop_table({"id": [*db, name]})
    assert not Path(source).exists()
