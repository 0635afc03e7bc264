"""What lists, plans and polls cost with more tables, compared with bare Thrift and lance-namespace-impls."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace import Hive2Namespace
from tests.benchmarks.figures import Figure
from tests.benchmarks.namespace.bare_thrift import LANCE_FILTER, bare_client, describe
from tests.benchmarks.timing import Measure, interleaved, timed
from tests.servers.many_tables import copy_table
from tests.servers.peer import peer_namespace
from tests.servers.proxy import Proxy
from tests.servers.releases import hms_2

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

TABLES = [100, 1000, 3000]
MOST_OF_THE_PEER = 1000
"""It makes a call for each table."""
WAITS = 100
ROUNDS = 3
DATABASE = "crowded"
COMPARED = (
    ("list", "list by bare Thrift"),
    ("poll", "poll by bare Thrift"),
    ("list", "list by the peer"),
)


def test_tables(tmp_path: Path, show: Callable[..., None]) -> None:
    figure = Figure("tables", axis="tables of the database")
    for tables in TABLES:
        folder = tmp_path / str(tables)
        with crowded_metastore(folder, tables) as server, ExitStack() as stack:
            measures = candidates(server.uri, str(folder / "root"), tables, stack)
            times = interleaved(ROUNDS, measures, warm_up=1)
            show(f"{tables:,} tables", times)
            pairs = [
                ("list", "list by bare Thrift"),
                ("poll", "poll by bare Thrift"),
                ("list", "list by the peer"),
            ]
            figure.add_times(tables, times, *(pair for pair in pairs if pair[1] in measures))
            for step, calls in calls_of_steps(server.uri, str(folder / "root"), tables).items():
                figure.add("calls", step, tables, [calls])
        figure.save()  # the next size takes longer than all before it

    assert set(figure.medians("calls", "list").values()) == {1}
    assert figure.medians("calls", "plan")[TABLES[-1]] <= TABLES[-1] / 500 + 10


@contextmanager
def crowded_metastore(folder: Path, tables: int) -> Iterator[MetastoreServer]:
    """A metastore with one database of so many tables."""
    server = MetastoreServer(hms_2(), folder / "metastore")
    with server, Hive2Namespace(uri=server.uri, root=str(folder / "root")) as namespace:
        namespace.create_namespace({"id": [DATABASE]})
        rows, table = pa.table({"x": [1]}), [DATABASE, "t"]
        lance.write_dataset(rows, namespace_client=namespace, table_id=table, mode="create")
    copy_table(hms_2(), server.folder, DATABASE, "t", tables)
    with server:
        yield server


def steps(namespace: Hive2Namespace, tables: int) -> Mapping[str, Callable[[], object]]:
    """The steps of this package."""
    waits = [TableId.parse(f"{DATABASE}${name}") for name in waited_for(tables)]
    return {
        "list": lambda: namespace.list_tables({"id": [DATABASE]}),
        "poll": lambda: namespace.poll_tables(waits),
        "plan": lambda: namespace.plan_drop_namespace({"id": [DATABASE]}),
    }


def waited_for(tables: int) -> list[str]:
    """The names of the tables that are polled, spread over the database."""
    return [f"t_{number:06}" for number in range(0, tables, tables // WAITS)]


def candidates(uri: str, root: str, tables: int, stack: ExitStack) -> dict[str, Measure]:
    """The steps, and what they are compared with."""
    namespace = stack.enter_context(Hive2Namespace(uri=uri, root=root))
    bare = bare_client(uri)

    def poll_by_bare_thrift() -> None:
        for name in waited_for(tables):
            describe(bare, DATABASE, name)

    measures = {name: timed(step) for name, step in steps(namespace, tables).items()}
    measures["list by bare Thrift"] = timed(
        lambda: bare.get_table_names_by_filter(DATABASE, LANCE_FILTER, -1)
    )
    measures["poll by bare Thrift"] = timed(poll_by_bare_thrift)
    if tables <= MOST_OF_THE_PEER:
        peer = stack.enter_context(peer_namespace("hive2", "Hive2Namespace", {"uri": uri, "root": root}))
        measures["list by the peer"] = lambda: peer.ask("list_tables", id=[DATABASE]).seconds
    return measures


def calls_of_steps(uri: str, root: str, tables: int) -> Mapping[str, int]:
    """Calls to the metastore, once it is connected."""
    counts = {}
    with Proxy(uri) as proxy, Hive2Namespace(uri=proxy.uri, root=root) as namespace:
        namespace.namespace_exists({"id": [DATABASE]})
        for name, step in steps(namespace, tables).items():
            before = len(proxy.calls)
            step()
            counts[name] = len(proxy.calls) - before
    return counts
