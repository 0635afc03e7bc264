"""Interoperability with lance-namespace-impls."""

from collections.abc import Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace import LanceNamespace

from tests.servers.peer import Peer, peer_namespace
from tests.support.backends import Backend

SUPPORTED = {
    "hive2-on-2.3.10": "Hive2Namespace",
    "hive2-on-3.1.3": "Hive2Namespace",
    "hive3-on-3.1.3": "Hive3Namespace",
}
"""Backends that the peer can speak to, and by which of its classes."""

pytestmark = [pytest.mark.thorough, pytest.mark.parametrize("backend", SUPPORTED, indirect=True)]


@pytest.fixture
def peer(backend: Backend) -> Iterator[Peer]:
    kind = SUPPORTED[backend.name]
    with peer_namespace(kind.removesuffix("Namespace").lower(), kind, backend.properties) as found:
        yield found


def plain(location: str) -> str:
    return location.removeprefix("file:")


def test_lance_namespace_impls_reads_and_deregisters_our_table(
    peer: Peer, namespace: LanceNamespace, db: list[str]
) -> None:
    table = [*db, "ours"]
    answer = namespace.declare_table({"id": table, "properties": {"team": "search"}})
    assert peer.list_tables(id=db)["tables"] == ["ours"]
    described = peer.describe_table(id=table)
    assert plain(described["location"]) == answer.location
    peer.deregister_table(id=table)
    assert namespace.list_tables({"id": db}).tables == []


def test_a_table_of_lance_namespace_impls_is_read_and_deregistered(
    peer: Peer, namespace: LanceNamespace, db: list[str]
) -> None:
    table = [*db, "theirs"]
    answer = peer.declare_table(id=table)
    assert namespace.list_tables({"id": db}).tables == ["theirs"]
    assert namespace.describe_table({"id": table}).location == plain(answer["location"])
    namespace.deregister_table({"id": table})
    assert peer.list_tables(id=db)["tables"] == []


def test_data_in_a_table_of_lance_namespace_impls_survives_deregistration(
    peer: Peer, namespace: LanceNamespace, db: list[str], tmp_path: Path
) -> None:
    table = [*db, "theirs"]
    location = plain(peer.declare_table(id=table)["location"])
    lance.write_dataset(pa.table({"x": [1]}), namespace_client=namespace, table_id=table, mode="overwrite")
    namespace.deregister_table({"id": table})
    assert lance.dataset(location).count_rows() == 1


def test_namespaces_are_visible_to_both_implementations(
    peer: Peer, namespace: LanceNamespace, backend: Backend
) -> None:
    ours, theirs = backend.database(), backend.database()
    namespace.create_namespace({"id": ours, "properties": {"team": "search"}})
    peer.create_namespace(id=theirs, properties={"team": "ads"})
    assert peer.describe_namespace(id=ours)["properties"]["team"] == "search"
    assert namespace.describe_namespace({"id": theirs}).properties["team"] == "ads"
    for target in (ours, theirs):
        namespace.drop_namespace({"id": target})
