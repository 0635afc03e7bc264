"""Lost replies to a compare-and-set: the commit is made once, and its writer detects that."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import pytest

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.glue.metastore import GlueMetastore
from airflow_provider_lancens.namespace.hive.metastore import HiveMetastore
from airflow_provider_lancens.namespace.managed.publication import Publication
from tests.integration.managed.commit_points import Point
from tests.integration.managed.managed_table import ManagedTable
from tests.servers.glue_double import GlueDouble
from tests.servers.glue_faults import LOST_REPLY, LOST_REQUEST
from tests.servers.proxy import Proxy
from tests.support.lakes import Lake

ALTER = "alter_table_with_environment_context"
RECORDED = Point(Publication, "record", after=True, committed=False)
ASKING = [
    Point(HiveMetastore, "_raw_table", after=False, committed=True),
    Point(GlueMetastore, "_raw_table", after=False, committed=True),
]
Lose = Callable[[str, int], AbstractContextManager[object]]


@pytest.fixture
def network(
    lake: Lake, table: ManagedTable, request: pytest.FixtureRequest
) -> Iterator[tuple[ManagedTable, Lose]]:
    """The table, through a proxy that loses the request or the reply of a compare-and-set."""
    if lake.kind == "GlueNamespace":
        glue: GlueDouble = request.getfixturevalue("glue")
        faults = {"request": LOST_REQUEST, "reply": LOST_REPLY}
        table.namespace._metastore.require_compare_and_set(TableId.of(table.parts).namespace)
        yield table, lambda what, times: glue.faults.on("UpdateTable", *[faults[what]] * times)
        return
    with Proxy(lake.properties["uri"]) as proxy, lake.connect(uri=proxy.uri) as proxied:
        proxied._metastore.require_compare_and_set(TableId.of(table.parts).namespace)

        def lose(what: str, times: int) -> AbstractContextManager[object]:
            getattr(proxy, f"lose_{what}")(ALTER, times)
            return nullcontext()

        yield table.through(proxied), lose


@contextmanager
def other_client_commits_first(other: ManagedTable, row: int) -> Iterator[None]:
    """Let another client commit before the writer checks the result of its lost compare-and-set."""
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
def test_a_lost_reply_makes_one_commit(
    table: ManagedTable, network: tuple[ManagedTable, Lose], what: str
) -> None:
    proxied, lose = network
    with lose(what, 1):
        assert proxied.append(2) == 2
    assert table.rows() == table.rows_by_path() == [1, 2]
    assert table.staged == table.recorded == []


def test_a_lost_reply_followed_by_other_commits_makes_one_commit(
    lake: Lake, table: ManagedTable, network: tuple[ManagedTable, Lose]
) -> None:
    proxied, lose = network
    staged = proxied.stage(2)
    with (
        lake.connect() as another,
        other_client_commits_first(table.through(another), row=3),
        lose("reply", 1),
    ):
        assert proxied.commit(staged).version == 2
    assert table.rows() == table.rows_by_path() == [1, 2, 3]
    assert table.recorded == []


def test_lance_detects_its_commit_although_every_reply_was_lost(
    lake: Lake, table: ManagedTable, network: tuple[ManagedTable, Lose]
) -> None:
    proxied, lose = network
    with lose("reply", 4 if lake.kind == "GlueNamespace" else 2):
        assert proxied.append(2) == 2
    assert table.rows() == table.rows_by_path() == [1, 2]
