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
    LanceTagOperator,
    LanceUpsertOperator,
)
from airflow_provider_lancens.spark import TableLayout
from airflow_provider_lancens.spark.commit.delete import delete_rows
from airflow_provider_lancens.spark.maintenance.compact import compact_table
from airflow_provider_lancens.spark.read import read_table
from tests.integration.airflow.lifecycle import Attempt
from tests.support.maintained_tables import Maintained

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
                inputs={"changes": {"changes": found}, "orders": found},
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
    hive.spec.connect().declare_table(DeclareTableRequest(id=shop.revenue.split("$")))
    shop.ingest()
    return shop


@pytest.mark.parametrize("days", [5, pytest.param(60, marks=[pytest.mark.long, pytest.mark.timeout(1800)])])
def test_increments_give_what_a_full_computation_gives(shop: Shop, days: int) -> None:
    for _ in range(days):
        for _ in range(shop.chance.randrange(4)):
            shop.change()
        shop.increment(fails=shop.chance.random() < 0.3)
    shop.change()
    shop.increment()

    assert shop.kept() == pytest.approx(shop.computed())


def test_changes_are_found_until_the_bookmark_is_moved(shop: Shop) -> None:
    given = {"table": shop.orders.id, "bookmark": BOOKMARK}

    first = shop.run(LanceFindChangesOperator, **given)
    assert first == {"table": shop.orders.id, "previous_version": None, "version": 1}
    assert shop.run(LanceFindChangesOperator, **given) == first

    shop.run(LanceTagOperator, table=shop.orders.id, version=1, tag=BOOKMARK)
    with pytest.raises(AirflowSkipException, match="has no version after 1, its bookmark's"):
        shop.run(LanceFindChangesOperator, **given)
    shop.ingest()
    assert shop.run(LanceFindChangesOperator, **given)["previous_version"] == 1


def test_an_input_without_a_previous_version_is_refused(shop: Shop) -> None:
    pinned = {"table": shop.orders.id, "version": 1}

    with pytest.raises(AirflowFailException, match=r"inputs\['changes'\]\['changes'\]=.* 'previous_version'"):
        shop.run(
            LanceAppendOperator,
            table=shop.revenue,
            source=revenue,
            inputs={"changes": {"changes": pinned}, "orders": pinned},
        )


def test_a_cleared_append_of_later_changes_leaves_the_rows_of_the_earlier_ones(shop: Shop) -> None:
    def seen(spark: Any, changes: Any) -> Any:
        return changes.selectExpr("number", "_commit_version AS version")

    def copy(found: dict[str, Any], clears: int) -> None:
        instance = Attempt()
        instance.max_tries = clears
        task = LanceAppendOperator(
            task_id="copy",
            table=shop.revenue,
            lance_conn_id=shop.lake,
            source=seen,
            inputs={"changes": {"changes": found}},
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
