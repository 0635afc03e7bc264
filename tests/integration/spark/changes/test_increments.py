"""Tables that are kept up by increments equal a full computation, whatever happened in between."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from increments import revenue
from lance_namespace import DeclareTableRequest

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException, AirflowSkipException
from airflow_provider_lancens.operators import (
    LanceAppendOperator,
    LanceFindChangesOperator,
    LanceOverwriteOperator,
    LanceTagOperator,
    LanceUpsertOperator,
)
from airflow_provider_lancens.spark import TableLayout
from airflow_provider_lancens.spark.commit.delete import delete_rows
from airflow_provider_lancens.spark.maintenance.compact import compact_table
from tests.integration.airflow.lifecycle import Attempt
from tests.support.maintained_tables import Maintained
from tests.support.reads import read_table

pytestmark = pytest.mark.thorough

BOOKMARK = "revenue"
STABLE = TableLayout(stable_row_ids=True)


@dataclass
class Shop:
    """Orders that change at random, and the revenue of their days."""

    orders: Maintained
    lake: str
    chance: random.Random

    @property
    def revenue(self) -> str:
        return f"{self.orders.parts[0]}$revenue"

    def change(self) -> None:
        self.chance.choice([self.ingest, self.ingest, self.cancel, self.compact])()

    def ingest(self) -> None:
        """Write 20 orders: new ones, and corrections of others, which can move to another day."""
        numbers = self.chance.sample(range(300), 20)
        given = [(number, self.chance.randrange(30), self.chance.random()) for number in numbers]
        frame = self.orders.spark.createDataFrame(given, "number long, day int, amount double")
        self.orders.write(frame, mode="upsert", on=["number"], options=STABLE)

    def cancel(self) -> None:
        delete_rows(self.orders.spec, self.orders.id, f"day = {self.chance.randrange(30)}")

    def compact(self) -> None:
        compact_table(self.orders.spark, self.orders.spec, self.orders.id)

    def increment(self, fails: bool = False) -> None:
        """Run the tasks of the example; or fail before the last one."""
        try:
            found = self.run(LanceFindChangesOperator, table=self.orders.id, bookmark=BOOKMARK)
        except AirflowSkipException:
            return
        for _ in range(2):  # a task that is cleared writes nothing
            self.run(
                LanceUpsertOperator,
                table=self.revenue,
                source=revenue,
                inputs={"orders": found},
                on=["day"],
                delete_when="is_empty",
                key=f"revenue/{found}",
            )
        if not fails:
            self.run(LanceTagOperator, table=self.orders.id, version=found["version"], tag=BOOKMARK)

    def run(self, operator: type[Any], **arguments: Any) -> Any:
        task = operator(task_id="task", lance_conn_id=self.lake, **arguments)
        context: Any = {"ti": Attempt(), "run_id": "manual__1", "outlet_events": {}}
        return task.execute(context)

    def computed(self) -> dict[int, float]:
        """Compute the revenue of all days from the orders."""
        orders = read_table(self.orders.spark, self.orders.spec, self.orders.id)
        return {row["day"]: row["sum(amount)"] for row in orders.groupBy("day").sum("amount").collect()}

    def kept(self) -> dict[int, float]:
        rows = read_table(self.orders.spark, self.orders.spec, self.revenue).collect()
        assert len({row["day"] for row in rows}) == len(rows)
        return {row["day"]: row["revenue"] for row in rows}


@pytest.fixture
def shop(hive: Maintained, connect: Callable[..., str]) -> Shop:
    lake = connect(host=hive.spec.properties["uri"], extra={"root": hive.spec.properties["root"]})
    shop = Shop(hive, lake, random.Random(3))
    declare(shop, shop.revenue)
    shop.ingest()
    return shop


def declare(shop: Shop, table: str) -> None:
    shop.orders.spec.connect().declare_table(DeclareTableRequest(id=table.split("$")))


@pytest.mark.parametrize("days", [5, pytest.param(60, marks=[pytest.mark.long, pytest.mark.timeout(1800)])])
def test_increments_give_what_a_full_computation_gives(shop: Shop, days: int) -> None:
    for _ in range(days):
        for _ in range(shop.chance.randrange(4)):
            shop.change()
        shop.increment(fails=shop.chance.random() < 0.3)
        assert shop.kept() == pytest.approx(shop.computed())


def test_changes_are_found_until_the_bookmark_is_moved(shop: Shop) -> None:
    given = {"table": shop.orders.id, "bookmark": BOOKMARK}

    first = shop.run(LanceFindChangesOperator, **given)
    location = first["location"]
    assert first == {"table": shop.orders.id, "previous_version": None, "version": 1, "location": location}
    assert shop.run(LanceFindChangesOperator, **given) == first

    shop.run(LanceTagOperator, table=shop.orders.id, version=1, location=location, tag=BOOKMARK)
    with pytest.raises(AirflowSkipException, match="has no version after 1, its bookmark's"):
        shop.run(LanceFindChangesOperator, **given)
    shop.ingest()
    assert shop.run(LanceFindChangesOperator, **given)["previous_version"] == 1


def test_an_input_without_a_previous_version_is_refused(shop: Shop) -> None:
    for given in ({"table": shop.orders.id, "version": 1}, shop.orders.id):
        with pytest.raises(AirflowFailException, match="a result that has a 'previous_version'; got none"):
            shop.run(LanceAppendOperator, table=shop.revenue, source=revenue, inputs={"orders": given})


@pytest.mark.parametrize("since", [{"after_version": 0}, {"bookmark": BOOKMARK}])
def test_where_changes_of_an_input_begin_is_not_for_the_function_to_say(
    shop: Shop, since: dict[str, Any]
) -> None:
    def changed(spark: Any, orders: Any) -> Any:
        return orders.changes(**since).read()

    found = shop.run(LanceFindChangesOperator, table=shop.orders.id, bookmark=BOOKMARK)
    with pytest.raises(AirflowFailException, match="not allowed for a table of inputs"):
        shop.run(LanceAppendOperator, table=shop.revenue, source=changed, inputs={"orders": found})


def test_a_function_that_reads_no_changes_writes_in_place_of_its_rows_whatever_the_input_follows(
    shop: Shop,
) -> None:
    """The key has where changes begin only if they are read."""

    def number_of(spark: Any, orders: Any) -> Any:
        return orders.read(columns=["number"], filter="number >= 0").limit(3)

    for kind in (LanceAppendOperator, LanceOverwriteOperator):
        keys, rows = set(), []
        declare(shop, f"{shop.revenue}_{kind.__name__.lower()}")
        for clears in range(3):
            shop.ingest()
            found = {"table": shop.orders.id, "previous_version": clears, "version": clears + 1}
            instance = Attempt()
            instance.max_tries = clears
            task = kind(
                task_id=kind.__name__,
                table=f"{shop.revenue}_{kind.__name__.lower()}",
                lance_conn_id=shop.lake,
                source=number_of,
                inputs={"orders": found},
            )
            context: Any = {"ti": instance, "run_id": "manual__1", "outlet_events": {}}
            keys.add(task.execute(context)["key"])
            rows.append(read_table(shop.orders.spark, shop.orders.spec, task.table).count())
        assert rows == [3, 3, 3]
        assert len(keys) == 1
        assert "changes@" not in keys.pop()


def test_a_retry_finds_the_changes_that_it_has_appended_without_reading_them_again(shop: Shop) -> None:
    calls: list[int] = []

    def seen(spark: Any, orders: Any, others: Any) -> Any:
        calls.append(orders.version)
        others.read()
        return orders.changes().read(columns=["number"]).select("number")

    found = shop.run(LanceFindChangesOperator, table=shop.orders.id, bookmark=BOOKMARK)
    others = {**found, "previous_version": 7}
    given = {"table": shop.revenue, "source": seen, "inputs": {"orders": found, "others": others}}
    first, again = (shop.run(LanceAppendOperator, **given) for _ in range(2))

    assert (first["outcome"], again["outcome"], calls) == ("done", "found", [1])
    assert first["key"] == again["key"]
    assert first["key"].endswith(f"/changes@{shop.orders.id}/0")


def test_a_cleared_append_of_later_changes_leaves_the_rows_of_the_earlier_ones(shop: Shop) -> None:
    def seen(spark: Any, orders: Any) -> Any:
        return orders.changes().read().selectExpr("number", "_commit_version AS version")

    def copy(found: dict[str, Any], clears: int) -> None:
        instance = Attempt()
        instance.max_tries = clears
        task = LanceAppendOperator(
            task_id="copy",
            table=shop.revenue,
            lance_conn_id=shop.lake,
            source=seen,
            inputs={"orders": found},
        )
        task.execute({"ti": instance, "run_id": "manual__1", "outlet_events": {}})  # type: ignore[typeddict-item]

    def copied() -> set[int]:
        rows = read_table(shop.orders.spark, shop.orders.spec, shop.revenue).collect()
        return {row["version"] for row in rows if row["version"]}

    given = {"table": shop.orders.id, "bookmark": BOOKMARK}
    copy(shop.run(LanceFindChangesOperator, **given), clears=0)
    shop.run(LanceTagOperator, table=shop.orders.id, version=1, tag=BOOKMARK)
    shop.ingest()
    found = shop.run(LanceFindChangesOperator, **given)
    for clears in (1, 2):
        copy(found, clears)
        assert copied() == {1, 2}
