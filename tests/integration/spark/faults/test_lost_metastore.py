"""A metastore that is unreachable from some step of a write on: nothing is lost, and a retry succeeds."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from lance_namespace.errors import ServiceUnavailableError

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.spark import NamespaceSpec
from tests.integration.spark.faults.orders_table import Orders
from tests.integration.spark.faults.table_files import clean_up, files_needed, files_of, folder_of
from tests.integration.spark.faults.table_kinds import HIVE, HIVE_MANAGED, HIVE_STORAGE, declare
from tests.integration.spark.faults.write_steps import STEPS, steps_of
from tests.servers.proxy import Proxy

EVERYDAY = {
    (HIVE_MANAGED, "before-any-fragment"),
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
    """A table with the rows 0 to 2."""
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
def test_the_retry_after_a_metastore_outage_leaves_exact_rows(
    orders: Orders, network: Proxy, kind: str, step: str
) -> None:
    # A storage-managed table needs no metastore to commit.
    done = kind == HIVE_STORAGE or STEPS[step].committed
    with gone_from(step, network):
        if done:
            assert orders.bring().is_done
        else:
            with pytest.raises(ServiceUnavailableError, match=network.uri.removeprefix("thrift://")):
                orders.bring()
    assert orders.ids == list(range(8 if done else 3))

    retry = orders.bring()
    assert (retry.version, retry.written, retry.is_done) == (2, 7, not done)
    assert orders.write("february", range(8, 9)).version == 3
    clean_up(orders.spec, orders.table)
    assert orders.ids == list(range(9))
    folder = folder_of(orders.spec, orders.table)
    assert files_of(folder) == files_needed(folder)
