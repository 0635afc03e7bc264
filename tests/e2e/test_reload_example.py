"""The examples of `docs/reruns.md` and `docs/backfill.md`, run twice: each loads its rows again."""

import json
import os
from contextlib import closing
from pathlib import Path

import lance
import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from tests.e2e.dag_run import TREE, dag_runs
from tests.e2e.outcomes import outcomes_in, xcom

EXAMPLES = TREE / "example_dags"
DAY, MONTH = (json.dumps({"logical_date": f"{year}-11-01T00:00:00+00:00"}) for year in (2026, 2025))

pytestmark = pytest.mark.thorough


def rows(namespace: Hive2Namespace, table: str, where: str | None = None) -> int:
    """The number of rows of a table that no other test uses."""
    return lance.dataset(namespace_client=namespace, table_id=["default", table]).count_rows(where)


@pytest.mark.usefixtures("lake")
def test_a_day_and_mapped_items_are_loaded_again(
    airflow_home: dict[str, str], metastore: MetastoreServer, tmp_path: Path
) -> None:
    dates = [("reload_a_day", DAY), ("mapped_regions", DAY), ("backfill_months", MONTH)] * 2
    runs = [argument for name, date in dates for argument in (str(EXAMPLES / f"{name}.py"), date)]
    settings = {"AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLES), "PYTHONPATH": f"{EXAMPLES}{os.pathsep}{TREE}"}
    with closing(Hive2Namespace(uri=metastore.uri, root=str(tmp_path))) as namespace:
        with dag_runs(["--session", "local[2]", *runs], {**os.environ, **airflow_home, **settings}) as run:
            run.result()
        regions = rows(namespace, "sales_by_region")
        days = rows(namespace, "sales_by_day", "day = date '2026-11-01'")
        november = rows(namespace, "sales_by_month", "day >= date '2025-11-01' AND day < date '2025-12-01'")

    loaded, mapped, filled, reloaded, mapped_again, filled_again = outcomes_in(run.log)
    assert xcom(reloaded, "load")["version"] == xcom(loaded, "load")["version"] + 1
    assert [xcom(one, "load")["outcome"] == "skipped" for one in (mapped, mapped_again)] == [False, False]
    assert {task["state"] for task in mapped_again.values()} == {"success"}
    assert (xcom(filled, "load")["inserted"], xcom(filled_again, "load")["deleted"]) == (60, 60)
    assert (days, regions, november) == (24, 40, 60)
