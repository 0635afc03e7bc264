"""A DAG that runs when the table of readings has a new version, and reads exactly that one, without Spark."""

from airflow.sdk import DAG, task

from airflow_provider_lancens.assets import lance_table, new_versions
from airflow_provider_lancens.hooks import LanceHook


@task
def mean_temperature(triggering_asset_events):
    import pyarrow.compute as pc

    # There is no record if it was triggered by hand.
    record = new_versions(triggering_asset_events).get("default$readings", "default$readings")
    readings = LanceHook.for_connection("lake").table(record)
    return pc.mean(readings.to_arrow(columns=["temperature"])["temperature"]).as_py()


with DAG(
    "lance_mean_temperature",
    schedule=[lance_table("default$readings", "lake")],
    catchup=False,
    default_args={"retries": 2},
) as dag:
    mean_temperature()
