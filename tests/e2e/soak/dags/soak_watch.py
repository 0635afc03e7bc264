"""Watches all tables as assets: an update for each advance, but no run, which would cost a task start."""

import json
import os

from airflow.sdk import DAG, Asset

from airflow_provider_lancens.assets import watched_table

TABLES = json.loads(os.environ["LANCE_TEST_TABLES"])
POLL_SECONDS = float(os.environ["LANCE_TEST_POLL"])
NEVER_UPDATED = Asset("soak_never_updated")

WATCHED = [
    # The last two of each ten: the triggerer has to read the transactions of their versions.
    watched_table(table, "lake", poll_interval=POLL_SECONDS, data_only=number % 10 >= 8)
    for number, table in enumerate(TABLES)
]

with DAG("soak_watch", schedule=[NEVER_UPDATED, *WATCHED], catchup=False) as dag:
    pass
