"""Declaring, deregistering and cascading, compared with the same calls over bare Thrift."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from tests.benchmarks.namespace.bare_thrift import LANCE_FILTER, declare, describe
from tests.benchmarks.timing import interleaved, timed
from tests.servers.proxy import Proxy

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

CASCADED = 200
_NUMBERS = itertools.count()


@pytest.fixture
def db(ours: Hive2Namespace, database: str) -> Iterator[str]:
    ours.create_namespace({"id": [database]})
    yield database
    ours.drop_namespace({"id": [database], "behavior": "cascade"})


def test_declaring_and_deregistering_take_as_long_as_bare_thrift_calls(
    ours: Hive2Namespace, bare: Any, db: str, root: Path, show: Callable[..., None]
) -> None:
    made: dict[str, list[str]] = {"ours": [], "bare": []}

    def declare_ours() -> None:
        name = f"ours_{next(_NUMBERS)}"
        ours.declare_table({"id": [db, name]})
        made["ours"].append(name)

    def declare_bare() -> None:
        name = f"bare_{next(_NUMBERS)}"
        location = bare.get_database(db).locationUri
        declare(bare, db, name, f"{location}/{name}.lance")
        made["bare"].append(name)

    def deregister_bare() -> None:
        name = made["bare"].pop()
        describe(bare, db, name)
        bare.drop_table(db, name, False)

    declaring = interleaved(150, {"ours": timed(declare_ours), "bare": timed(declare_bare)}, warm_up=20)
    show("declare a table", declaring)
    dropping = interleaved(
        150,
        {
            "ours": timed(lambda: ours.deregister_table({"id": [db, made["ours"].pop()]})),
            "bare": timed(deregister_bare),
        },
        warm_up=20,
    )
    show("deregister a table", dropping)
    assert declaring.ratio("ours", "bare") <= 1.3
    assert dropping.ratio("ours", "bare") <= 1.3


def test_a_cascade_takes_as_long_as_bare_thrift_calls(
    ours: Hive2Namespace, bare: Any, root: Path, show: Callable[..., None]
) -> None:
    def fill(db: str) -> None:
        ours.create_namespace({"id": [db]})
        for number in range(CASCADED):
            declare(bare, db, f"t{number}", f"file:{root}/{db}.db/t{number}.lance")

    def cascade_ours(db: str) -> None:
        ours.drop_namespace({"id": [db], "behavior": "cascade"})

    def cascade_bare(db: str) -> None:
        bare.get_database(db)
        names = bare.get_all_tables(db)
        bare.get_table_names_by_filter(db, LANCE_FILTER, -1)
        for name in names:
            bare.drop_table(db, name, False)
        bare.drop_database(db, False, False)

    def on_a_full_one(cascade: Callable[[str], None]) -> Callable[[], float]:
        def measure() -> float:
            db = f"cascaded_{next(_NUMBERS)}"
            fill(db)
            return timed(lambda: cascade(db))()

        return measure

    times = interleaved(
        6, {"ours": on_a_full_one(cascade_ours), "bare": on_a_full_one(cascade_bare)}, warm_up=1
    )
    show(f"cascade over {CASCADED} tables", times)
    assert times.ratio("ours", "bare") <= 1.3


def test_changes_take_few_metastore_calls(metastore: MetastoreServer, root: Path, database: str) -> None:
    with Proxy(metastore.uri) as proxy, Hive2Namespace(uri=proxy.uri, root=str(root)) as namespace:

        def calls_of(operation: str, **request: Any) -> int:
            before = len(proxy.calls)
            getattr(namespace, operation)(request)
            return len(proxy.calls) - before

        namespace.create_namespace({"id": [database]})
        table = [database, "t"]
        assert calls_of("declare_table", id=table) == 2
        assert calls_of("deregister_table", id=table) == 2
        assert calls_of("declare_table", id=table, location=f"{root}/elsewhere") == 2
        for number in range(CASCADED - 1):
            namespace.declare_table({"id": [database, f"t{number}"], "location": f"{root}/t{number}"})
        assert calls_of("drop_namespace", id=[database], behavior="cascade") <= CASCADED + 6 + CASCADED / 100
        assert proxy.connections == 1
