"""The driver of an earlier try, which a cluster still runs if the worker of that try was lost.

It is found by an identity that is computed from the task instance and its job, on any version of Airflow. A
state store, which Airflow has from 3.3, would know a driver only some time after it was submitted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.operators._spark.submission import submittable
from airflow_provider_lancens.redaction import is_secret, redact, secret_values

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_lancens.hooks.spark_connection import SparkDeployment
    from airflow_provider_lancens.spark.submit import EarlierDriver, Job


def driver_identity(job: Job, context: Context) -> str:
    """Return the identity of a task instance's drivers, the same in all its tries of one job.

    It is shown on the cluster, and depends on no secret property of the namespace and no argument with the
    name of a secret, which may change between tries. A task that is cleared to write again has another
    identity.

    Raises:
        AirflowFailException: an argument of the source is nothing that JSON can hold.
    """
    from airflow_provider_lancens.namespace.property_keys import STORAGE_PREFIX, storage_options
    from airflow_provider_lancens.spark.keys import REPEATING

    instance = context["ti"]
    task = [instance.dag_id, instance.task_id, context["run_id"], instance.map_index]
    request = job.request
    if request.identity.on_existing_key not in REPEATING:
        request = replace(request, identity=replace(request.identity, execution_id=None))
    secrets = secret_values(storage_options(job.properties))
    public = {
        name: redact(value)
        for name, value in job.properties.items()
        if not is_secret(name) and not (name.startswith(STORAGE_PREFIX) and value in secrets)
    }
    kwargs = {name: value for name, value in job.kwargs.items() if not is_secret(name)}
    with submittable():
        described = replace(job, properties=public, kwargs=kwargs, request=request)
        text = json.dumps([task, described.as_dict()])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def wait_for_earlier(earlier: EarlierDriver, log: Any) -> bool:
    """Wait for drivers of earlier tries that are still running; return whether one succeeded."""
    from airflow_provider_lancens.spark.submit import ClusterError

    try:
        while name := earlier.find():
            log.info(
                "Reattached to driver %s, which an earlier try of this task submitted and the cluster still "
                "runs; waiting for it rather than submitting another one. To see its log, run: %s",
                name,
                earlier.log_command,
            )
            if earlier.wait():
                log.info("Driver %s has succeeded", name)
                return True
            log.warning("Driver %s failed or was killed; to see its log, run: %s", name, earlier.log_command)
    except ClusterError as error:
        log.warning(
            "The search for the driver of an earlier try failed, so another one is submitted. If "
            "the earlier one is still running, one of them commits, and the other finds that commit: %s",
            error,
        )
    return False


@contextmanager
def searching(deployment: SparkDeployment, conf: Mapping[str, str], identity: str) -> Iterator[EarlierDriver]:
    """Search for the driver of an earlier try; it is stopped if the block is left by an exception.

    Raises:
        AirflowFailException: nothing can be submitted so.
    """
    from airflow_provider_lancens.spark.submit import earlier_driver

    where = {"deploy_mode": deployment.deploy_mode, "binary": deployment.binary}
    with ExitStack() as started:
        with submittable():
            earlier = started.enter_context(earlier_driver(conf, identity=identity, **where))
        yield earlier
