"""The example pipeline with real components: a Hive Metastore, Airflow, PySpark and Lance.

`python -m quickstart` (by `scripts/quickstart`) runs the DAG `lance_flights` for the next two months and
shows what it made; `python -m quickstart.ui` (by `scripts/airflow`) puts the same DAG, connection and
metastore into a running Airflow. Both keep everything in one folder: see `home`.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "example_dags"))  # as Airflow puts it in reach of the DAGs
