"""Run DAGs of this Airflow home with `dag.test()`, and print the results of each DAG's tasks in a line.

A separate process, since Airflow reads its home only when it is imported. Its arguments are, for each DAG,
the file and the run's parameters; `--session` and Spark's configuration as JSON, or only a master, start a
session that all later tasks use, rather than one each. Without arguments, each line of its input is a JSON
list of a file, the run's parameters as text, and environment variables to set during the run.
"""

import json
import os
import runpy
import sys
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import pendulum
from airflow import __version__
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.models.serialized_dag import SerializedDagModel
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from packaging.version import Version

SESSION = "--session"
_SERIALIZES = Version("3.1.8")
"""The lowest version that is known to do so in ``dag.test()``."""


def xcom(task: Any) -> Any:
    query = XComModel.get_many(
        run_id=task.run_id, dag_ids=task.dag_id, task_ids=task.task_id, key="return_value"
    )
    with create_session() as session:
        found = session.scalars(query).first()
        return None if found is None else XComModel.deserialize_value(found)


def links(dag_id: str, task: Any) -> dict[str, str]:
    """The task's links, as the API server finds them from the serialized DAG."""
    shown = SerializedDagModel.get_dag(dag_id).get_task(task.task_id)
    return {name: shown.get_extra_links(task, name) for name in shown.extra_links}


def serialize_dags() -> None:
    """Write all DAGs of the home into its database, which Airflow 3.1.0 requires before a test of one."""
    from airflow.models.dagbag import DagBag, sync_bag_to_db

    bundles = DagBundlesManager()
    bundles.sync_bundles_to_db()
    for bundle in bundles.get_all_dag_bundles():
        bundle.initialize()
        sync_bag_to_db(DagBag(bundle.path, bundle_path=bundle.path), bundle.name, bundle.version)


def session_on(given: str) -> AbstractContextManager[Any]:
    from airflow_provider_lancens.spark.session import spark_session
    from tests.servers.spark import PRELOADED

    conf = json.loads(given) if given.startswith("{") else {"spark.master": given}
    return spark_session("examples", {"spark.sql.shuffle.partitions": "2", **PRELOADED, **conf})


def main(file: str, conf: str) -> None:
    params = json.loads(conf)
    date = params.pop("logical_date", None)
    logical_date = pendulum.parse(date) if date else None
    dag = runpy.run_path(file)["dag"]
    if Version(__version__) < _SERIALIZES:
        serialize_dags()
    run = dag.test(run_conf=params, logical_date=logical_date)
    tasks = run.get_task_instances()
    outcome = {
        task.task_id: {"state": task.state, "xcom": xcom(task), "links": links(run.dag_id, task)}
        for task in tasks
    }
    sys.stdout.write(json.dumps(outcome) + "\n")
    sys.stdout.flush()


def main_with(file: str, conf: str, environment: dict[str, str]) -> None:
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        main(file, conf)
    finally:
        os.environ.clear()
        os.environ.update(before)


with ExitStack() as sessions:
    for dag in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        if dag[0] == SESSION:
            sessions.enter_context(session_on(dag[1]))
        else:
            main(*dag)
if len(sys.argv) == 1:
    for line in sys.stdin:
        main_with(*json.loads(line))
