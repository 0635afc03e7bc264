"""A metastore that is gone from some step of a write on: nothing is lost, and a retry makes up for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from lance_namespace import DescribeTableRequest
from lance_namespace.errors import ServiceUnavailableError

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace.writes import digest
from airflow_provider_lancens.spark import NamespaceSpec
from tests.integration.spark.faults.leftovers import clean_up, files_needed, files_of, folder_of
from tests.integration.spark.faults.orders import Orders
from tests.integration.spark.faults.steps import STEPS, steps_of
from tests.integration.spark.faults.tables import HIVE, HIVE_MANAGED, HIVE_STORAGE, declare
from tests.servers.proxy import Proxy

EVERYDAY = {
    (HIVE_MANAGED, "when-its-manifest-is-recorded"),
    (HIVE_MANAGED, "when-the-metastore-has-advanced"),
    (HIVE_STORAGE, "before-the-commit"),
}


def moments() -> list[Any]:
    every = [(kind, step) for kind in (HIVE_MANAGED, HIVE_STORAGE) for step in steps_of(kind)]
    return [pytest.param(*one, marks=() if one in EVERYDAY else pytest.mark.long) for one in every]


@pytest.fixture
def network(metastore: MetastoreServer) -> Iterator[Proxy]:
    with Proxy(metastore.uri) as proxy:
        yield proxy


@pytest.fixture
def orders(network: Proxy, tmp_path: Path, database: str, kind: str) -> Orders:
    """A table that has the rows 0 to 2."""
    spec = NamespaceSpec(HIVE, {"uri": network.uri, "root": str(tmp_path)})
    made = Orders(spec, declare(spec, database, kind), "upsert")
    made.write("december", range(3))
    return made


@contextmanager
def gone_from(step: str, network: Proxy) -> Iterator[None]:
    with STEPS[step].interrupted_by(lambda: setattr(network, "gone", True)):
        yield
    assert network.gone
    network.gone = False


@pytest.mark.parametrize(("kind", "step"), moments())
def test_the_retry_makes_up_for_a_metastore_that_was_gone(
    orders: Orders, network: Proxy, kind: str, step: str
) -> None:
    # Where the storage decides, no metastore is needed to commit.
    done = kind == HIVE_STORAGE or STEPS[step].committed
    with gone_from(step, network):
        if done:
            assert orders.bring().committed
        else:
            with pytest.raises(ServiceUnavailableError, match=network.uri.removeprefix("thrift://")):
                orders.bring()
    assert orders.ids == list(range(8 if done else 3))

    retry = orders.bring()
    assert (retry.version, retry.rows, retry.committed) == (2, 7, not done)
    assert digest("january") in remembered(orders)
    assert orders.write("february", range(8, 9)).version == 3
    clean_up(orders.spec, orders.table)
    assert orders.ids == list(range(9))
    folder = folder_of(orders.spec, orders.table)
    assert files_of(folder) == files_needed(folder)


def remembered(orders: Orders) -> str:
    """What the table's entry remembers of its writes."""
    asked = DescribeTableRequest(id=orders.table.split("$"))
    return str(orders.spec.connect().describe_table(asked).properties["lancens.writes"])
