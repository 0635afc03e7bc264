"""A compare-and-set whose answer never comes: the commit is made once, and its writer knows."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import pytest

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.commits import Publication
from airflow_provider_lancens.namespace.glue.metastore import GlueMetastore
from airflow_provider_lancens.namespace.hive.metastore import HiveMetastore
from tests.integration.managed.conftest import Lake
from tests.integration.managed.deaths import Point
from tests.integration.managed.table import ManagedTable
from tests.servers.glue_double import GlueDouble
from tests.servers.glue_faults import LOST_REPLY, LOST_REQUEST
from tests.servers.proxy import Proxy

ALTER = "alter_table_with_environment_context"
RECORDED = Point(Publication, "record", after=True, committed=False)
ASKING = [
    Point(metastore, "_raw_table", after=False, committed=True)
    for metastore in (HiveMetastore, GlueMetastore)
]
Lose = Callable[[str, int], AbstractContextManager[object]]


@pytest.fixture
def network(
    lake: Lake, table: ManagedTable, request: pytest.FixtureRequest
) -> Iterator[tuple[ManagedTable, Lose]]:
    """The table, through a network that loses a compare-and-set: its request, or its reply."""
    if lake.kind == "GlueNamespace":
        glue: GlueDouble = request.getfixturevalue("glue")
        faults = {"request": LOST_REQUEST, "reply": LOST_REPLY}
        table.namespace._metastore.require_compare_and_set(TableId.of(table.parts).namespace)
        yield table, lambda what, times: glue.faults.on("UpdateTable", *[faults[what]] * times)
        return
    with Proxy(lake.properties["uri"]) as proxy, lake.connect(uri=proxy.uri) as far:
        far._metastore.require_compare_and_set(TableId.of(table.parts).namespace)

        def lose(what: str, times: int) -> AbstractContextManager[object]:
            getattr(proxy, f"lose_{what}")(ALTER, times)
            return nullcontext()

        yield table.through(far), lose


@contextmanager
def others_come_before_it_asks(other: ManagedTable, row: int) -> Iterator[None]:
    """When the writer asks what has become of its lost compare-and-set, somebody else has gone on."""
    hive, glue = (point.interrupted_by(lambda: other.append(row)) for point in ASKING)
    armed = []

    def arm() -> None:
        for point in (hive, glue):
            point.__enter__()
            armed.append(point)

    with RECORDED.interrupted_by(arm):
        yield
    for point in armed:
        point.__exit__(None, None, None)


@pytest.mark.parametrize("what", ["request", "reply"])
def test_a_commit_is_made_once(table: ManagedTable, network: tuple[ManagedTable, Lose], what: str) -> None:
    far, lose = network
    with lose(what, 1):
        assert far.append(2) == 2
    assert table.rows() == table.rows_by_path() == [1, 2]
    assert table.staged == table.recorded == []


def test_a_commit_that_others_have_built_on_is_made_once(
    lake: Lake, table: ManagedTable, network: tuple[ManagedTable, Lose]
) -> None:
    far, lose = network
    staged = far.stage(2)
    with (
        lake.connect() as another,
        others_come_before_it_asks(table.through(another), row=3),
        lose("reply", 1),
    ):
        assert far.commit(staged).version == 2
    assert table.rows() == table.rows_by_path() == [1, 2, 3]
    assert table.recorded == []


def test_lance_learns_that_a_commit_stands_whose_every_answer_is_lost(
    lake: Lake, table: ManagedTable, network: tuple[ManagedTable, Lose]
) -> None:
    far, lose = network
    with lose("reply", 4 if lake.kind == "GlueNamespace" else 2):
        assert far.append(2) == 2
    assert table.rows() == table.rows_by_path() == [1, 2]
